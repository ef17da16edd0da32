"""Which of the four cases is this, what has shifted, and what to do about it?"""

from giw.diagnosis.diagnose import STEPS, diagnose
from giw.diagnosis.result import Diagnosis, Sizes

__all__ = ["STEPS", "Diagnosis", "Sizes", "diagnose"]
