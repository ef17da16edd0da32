"""Is a validation point inside or outside the training support? Arrays in, a split out."""

from giw.support.lists import benjamini_hochberg
from giw.support.mixture import Assumptions
from giw.support.pictures import draw_outside, draw_p_values, draw_scores
from giw.support.representation import RepresentationChoice, choose_representation
from giw.support.scorers import (
    KNN,
    OSVM,
    PUBLISHED_THRESHOLDS,
    Detector,
    Mahalanobis,
    SameLabel,
    Scorer,
)
from giw.support.split import SupportSplit
from giw.support.splitter import SupportSplitter
from giw.support.verdict import CaseVerdict, which_case

__all__ = [
    "KNN",
    "OSVM",
    "PUBLISHED_THRESHOLDS",
    "Assumptions",
    "CaseVerdict",
    "Detector",
    "Mahalanobis",
    "RepresentationChoice",
    "SameLabel",
    "Scorer",
    "SupportSplit",
    "SupportSplitter",
    "benjamini_hochberg",
    "choose_representation",
    "draw_outside",
    "draw_p_values",
    "draw_scores",
    "which_case",
]
