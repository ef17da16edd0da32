"""Generalized importance weighting: train where training data and the real world part ways."""

from giw.estimators import GIWClassifier, load
from giw.objective import GIWObjective
from giw.support import SupportSplit, SupportSplitter
from giw.weights import KMM, effective_sample_size, kmm

__version__ = "0.1.0"

__all__ = [
    "KMM",
    "GIWClassifier",
    "GIWObjective",
    "SupportSplit",
    "SupportSplitter",
    "__version__",
    "effective_sample_size",
    "kmm",
    "load",
]
