"""The scikit-learn face."""

from giw.estimators.giw_classifier import GIWClassifier
from giw.estimators.reweighted import (
    ReweightedClassifier,
    ReweightedRegressor,
    ShrunkWeightsWarning,
)
from giw.estimators.saving import load

__all__ = [
    "GIWClassifier",
    "ReweightedClassifier",
    "ReweightedRegressor",
    "ShrunkWeightsWarning",
    "load",
]
