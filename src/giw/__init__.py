"""Generalized importance weighting: train where training data and the real world part ways."""

from giw.diagnosis import Diagnosis, diagnose
from giw.estimators import (
    GIWClassifier,
    ReweightedClassifier,
    ReweightedRegressor,
    estimate_risk,
    label_first,
    labels_needed,
    load,
    select,
)
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

__version__ = "0.1.0"

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
    "ulsif",
]
