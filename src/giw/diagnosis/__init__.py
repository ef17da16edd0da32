"""Which of the four cases is this, what has shifted, and what to do about it?"""

from giw.diagnosis.diagnose import STEPS, diagnose
from giw.diagnosis.result import Diagnosis, Sizes
from giw.diagnosis.share import (
    CaseVerdict,
    SupportShare,
    outside_list,
    support_share,
    which_case,
)

__all__ = [
    "STEPS",
    "CaseVerdict",
    "Diagnosis",
    "Sizes",
    "SupportShare",
    "diagnose",
    "outside_list",
    "support_share",
    "which_case",
]
