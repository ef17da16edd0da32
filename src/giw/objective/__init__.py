"""Per-sample losses in, one scalar out."""

from giw.objective.dynamic import DynamicWeights, Weigh, effective_share
from giw.objective.generalized import generalized_risk
from giw.objective.giw_objective import GIWObjective
from giw.objective.in_step_weights import cross_width, dynamic_kmm
from giw.objective.relative import DynamicRelativeWeights
from giw.objective.weighted import weighted_risk

__all__ = [
    "DynamicRelativeWeights",
    "DynamicWeights",
    "GIWObjective",
    "Weigh",
    "cross_width",
    "dynamic_kmm",
    "effective_share",
    "generalized_risk",
    "weighted_risk",
]
