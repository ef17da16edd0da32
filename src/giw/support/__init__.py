"""Is a validation point inside or outside the training support? Arrays in, a split out."""

from giw.support.one_class_svm import PUBLISHED_THRESHOLDS
from giw.support.scores import KNN, conformal_p, evidence, mean_evidence, nearest
from giw.support.split import SupportSplit, soft_membership
from giw.support.splitter import SupportSplitter

__all__ = [
    "KNN",
    "PUBLISHED_THRESHOLDS",
    "SupportSplit",
    "SupportSplitter",
    "conformal_p",
    "evidence",
    "mean_evidence",
    "nearest",
    "soft_membership",
]
