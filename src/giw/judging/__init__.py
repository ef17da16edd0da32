"""How good is a model on the validation distribution, and what to label next?"""

from giw.judging.risk import RiskEstimate, estimate_risk, labels_needed, risk_from_losses
from giw.judging.selection import Selection, label_first, select

__all__ = [
    "RiskEstimate",
    "Selection",
    "estimate_risk",
    "label_first",
    "labels_needed",
    "risk_from_losses",
    "select",
]
