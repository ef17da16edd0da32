"""Generalized importance weighting: classifiers for data that differ from the training data."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from giw.diagnosis import Diagnosis, support_share
    from giw.diagnosis.diagnose import diagnose
    from giw.estimators import ReweightedClassifier, ReweightedRegressor, load
    from giw.judging import estimate_risk, label_first, labels_needed, select
    from giw.nets import GIWClassifier
    from giw.objective import GIWObjective
    from giw.support import SupportSplit, SupportSplitter
    from giw.weights import (
        KLIEP,
        KMM,
        LSIF,
        RULSIF,
        ULSIF,
        ClassifierRatio,
        classifier_ratio,
        effective_sample_size,
        kliep,
        kmm,
        lsif,
        rulsif,
        ulsif,
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
__all__ = [
    "KLIEP",
    "KMM",
    "LSIF",
    "RULSIF",
    "ULSIF",
    "ClassifierRatio",
    "Diagnosis",
    "GIWClassifier",
    "GIWObjective",
    "ReweightedClassifier",
    "ReweightedRegressor",
    "SupportSplit",
    "SupportSplitter",
    "__version__",
    "classifier_ratio",
    "diagnose",
    "effective_sample_size",
    "estimate_risk",
    "kliep",
    "kmm",
    "label_first",
    "labels_needed",
    "load",
    "lsif",
    "rulsif",
    "select",
    "support_share",
    "ulsif",
]


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
