"""Estimators for tables, as scikit-learn has them."""

from giw.estimators.reweighted import ReweightedClassifier, ReweightedRegressor
from giw.estimators.reweighted_base import ShrunkWeightsWarning
from giw.estimators.saving import load

__all__ = ["ReweightedClassifier", "ReweightedRegressor", "ShrunkWeightsWarning", "load"]
