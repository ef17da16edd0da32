"""Per-sample losses in, one scalar out."""

from giw.objective.dynamic import DynamicWeights, effective_share
from giw.objective.generalized import generalized_risk
from giw.objective.giw_objective import GIWObjective
from giw.objective.weighted import weighted_risk

__all__ = [
    "DynamicWeights",
    "GIWObjective",
    "effective_share",
    "generalized_risk",
    "weighted_risk",
]
