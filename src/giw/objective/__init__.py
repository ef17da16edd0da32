"""Per-sample losses in, one scalar out."""

from giw.objective.giw_objective import GIWObjective
from giw.objective.terms import (
    DynamicRelativeWeights,
    DynamicWeights,
    Weigh,
    dynamic_kmm,
    effective_share,
    generalized_risk,
    weighted_risk,
)

__all__ = [
    "DynamicRelativeWeights",
    "DynamicWeights",
    "GIWObjective",
    "Weigh",
    "dynamic_kmm",
    "effective_share",
    "generalized_risk",
    "weighted_risk",
]
