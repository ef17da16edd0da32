"""Estimators for tables, as scikit-learn has them."""

from giw.estimators.reweighted import ReweightedClassifier, ReweightedRegressor
from giw.estimators.saving import load

__all__ = ["ReweightedClassifier", "ReweightedRegressor", "load"]
