"""Per-sample losses in, one scalar out."""

from giw.objective.dynamic import DynamicWeights, Weigh, effective_share
from giw.objective.generalized import generalized_risk
from giw.objective.giw_objective import GIWObjective
from giw.objective.relative import DynamicRelativeWeights
from giw.objective.weighted import weighted_risk

__all__ = [
    "DynamicRelativeWeights",
    "DynamicWeights",
    "GIWObjective",
    "Weigh",
    "effective_share",
    "generalized_risk",
    "weighted_risk",
]
