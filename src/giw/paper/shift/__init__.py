"""From a clean sample to a problem in which training and test part ways."""

from giw.paper.shift.class_prior import class_prior
from giw.paper.shift.color import color_shift
from giw.paper.shift.four_squares import four_squares_problem
from giw.paper.shift.label_noise import label_noise
from giw.paper.shift.paper import (
    PAPER_SETTINGS,
    SHIFTS,
    PaperSetting,
    paper_problem,
    paper_samples,
    paper_setting,
)
from giw.paper.shift.problem import ShiftProblem, Truth
from giw.paper.shift.support import support_shift
from giw.paper.shift.trial import TrialSeeds, trial_seeds

__all__ = [
    "PAPER_SETTINGS",
    "SHIFTS",
    "PaperSetting",
    "ShiftProblem",
    "TrialSeeds",
    "Truth",
    "class_prior",
    "color_shift",
    "four_squares_problem",
    "label_noise",
    "paper_problem",
    "paper_samples",
    "paper_setting",
    "support_shift",
    "trial_seeds",
]
