"""Per-sample losses in, one scalar out."""

from giw.objective.generalized import generalized_risk
from giw.objective.weighted import weighted_risk

__all__ = ["generalized_risk", "weighted_risk"]
