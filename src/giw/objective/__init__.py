"""Per-sample losses in, one scalar out."""

from giw.objective.giw_objective import GIWObjective
from giw.objective.in_step_weights import (
    DynamicWeights,
    Weigh,
    cross_width,
    dynamic_kmm,
    effective_share,
)
from giw.objective.relative import DynamicRelativeWeights
from giw.objective.risks import generalized_risk, weighted_risk

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
