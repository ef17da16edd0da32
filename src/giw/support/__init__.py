"""Is a validation point inside or outside the training support? Arrays in, a split out."""

from giw.support.scorers import KNN, OSVM, PUBLISHED_THRESHOLDS, Detector, Scorer
from giw.support.split import SupportSplit
from giw.support.splitter import SupportSplitter

__all__ = [
    "KNN",
    "OSVM",
    "PUBLISHED_THRESHOLDS",
    "Detector",
    "Scorer",
    "SupportSplit",
    "SupportSplitter",
]
