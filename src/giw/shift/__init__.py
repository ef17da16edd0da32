"""From a clean sample to a problem in which training and test part ways."""

from giw.shift.class_prior import class_prior
from giw.shift.four_squares import four_squares_problem
from giw.shift.label_noise import label_noise
from giw.shift.problem import ShiftProblem, Truth
from giw.shift.support import support_shift
from giw.shift.trial import TrialSeeds, trial_seeds

__all__ = [
    "ShiftProblem",
    "TrialSeeds",
    "Truth",
    "class_prior",
    "four_squares_problem",
    "label_noise",
    "support_shift",
    "trial_seeds",
]
