"""How strange is a point to the training features? One small contract, one file per scorer."""

from __future__ import annotations

from typing import Any

from giw.support.scorers.contract import Scorer
from giw.support.scorers.detector import Detector
from giw.support.scorers.knn import KNN
from giw.support.scorers.mahalanobis import Mahalanobis
from giw.support.scorers.osvm import OSVM, PUBLISHED_THRESHOLDS
from giw.support.scorers.same_label import SameLabel

NAMED = {"knn": KNN, "osvm": OSVM, "mahalanobis": Mahalanobis}

__all__ = [
    "KNN",
    "NAMED",
    "OSVM",
    "PUBLISHED_THRESHOLDS",
    "Detector",
    "Mahalanobis",
    "SameLabel",
    "Scorer",
    "as_scorer",
]


def as_scorer(scorer: Any) -> Scorer:
    """A scorer from its name, from a scorer object or from a scikit-learn outlier detector."""
    if isinstance(scorer, str):
        if scorer not in NAMED:
            raise ValueError(f"no scorer is called {scorer!r}; choose from {sorted(NAMED)}")
        return NAMED[scorer]()
    if isinstance(scorer, type):
        raise ValueError(f"pass a scorer, not its class: {scorer.__name__}()")
    if isinstance(scorer, Scorer):
        # scikit-learn's detectors have a score method of another meaning in places
        return scorer if not hasattr(scorer, "get_params") else Detector(scorer)
    return Detector(scorer)
