"""The scikit-learn face."""

from giw.estimators.giw_classifier import GIWClassifier
from giw.estimators.reweighted import ReweightedClassifier, ReweightedRegressor
from giw.estimators.reweighted_base import ShrunkWeightsWarning
from giw.estimators.risk import RiskEstimate, estimate_risk, labels_needed, risk_from_losses
from giw.estimators.saving import load
from giw.estimators.selection import Selection, label_first, select

__all__ = [
    "GIWClassifier",
    "ReweightedClassifier",
    "ReweightedRegressor",
    "RiskEstimate",
    "Selection",
    "ShrunkWeightsWarning",
    "estimate_risk",
    "label_first",
    "labels_needed",
    "load",
    "risk_from_losses",
    "select",
]
