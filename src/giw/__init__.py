"""Generalized importance weighting: classifiers for data that differ from the training data."""

# isort: skip_file
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from giw.diagnosis import Diagnosis as Diagnosis, support_share as support_share
    from giw.diagnosis.diagnose import diagnose as diagnose
    from giw.estimators import (
        ReweightedClassifier as ReweightedClassifier,
        ReweightedRegressor as ReweightedRegressor,
        load as load,
    )
    from giw.judging import (
        estimate_risk as estimate_risk,
        label_first as label_first,
        labels_needed as labels_needed,
        select as select,
    )
    from giw.nets import GIWClassifier as GIWClassifier
    from giw.objective import GIWObjective as GIWObjective
    from giw.support import SupportSplit as SupportSplit, SupportSplitter as SupportSplitter
    from giw.weights import (
        KLIEP as KLIEP,
        KMM as KMM,
        LSIF as LSIF,
        RULSIF as RULSIF,
        ULSIF as ULSIF,
        ClassifierRatio as ClassifierRatio,
        classifier_ratio as classifier_ratio,
        effective_sample_size as effective_sample_size,
        kliep as kliep,
        kmm as kmm,
        lsif as lsif,
        rulsif as rulsif,
        ulsif as ulsif,
    )

__version__ = "0.2.0"

_ROOMS = {
    "diagnosis": ("Diagnosis", "diagnose", "support_share"),
    "estimators": ("ReweightedClassifier", "ReweightedRegressor", "load"),
    "judging": ("estimate_risk", "label_first", "labels_needed", "select"),
    "nets": ("GIWClassifier",),
    "objective": ("GIWObjective",),
    "support": ("SupportSplit", "SupportSplitter"),
    "weights": (
        "KLIEP", "KMM", "LSIF", "RULSIF", "ULSIF", "ClassifierRatio", "classifier_ratio",
        "effective_sample_size", "kliep", "kmm", "lsif", "rulsif", "ulsif",
    ),
}  # fmt: skip
__all__ = ["__version__", *(name for names in _ROOMS.values() for name in names)]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first touched, and with it no more than it needs."""
    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"giw.{room}"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise ImportError(f"giw.{name} needs torch: pip install 'giw[torch]'") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
