"""A method sees the problem and never the truth."""

import numpy as np
import pytest

from giw.paper.sample import Sample
from giw.paper.shifts import ShiftProblem, Truth


def sample(n=2, d=3, classes=("a", "b"), group=7):
    return Sample(np.zeros((n, d)), np.zeros(n, int), np.full(n, group), classes=classes)


def test_groups_do_not_pass_the_door():
    problem = ShiftProblem(sample(group=1), sample(group=2), sample(group=3))

    for part in (problem.train, problem.val, problem.test):
        assert set(part.group) == {0}


@pytest.mark.parametrize(
    ("val", "message"),
    [
        (sample(n=0), "the val sample is empty"),
        (sample(classes=("a", "c")), "val has classes"),
        (sample(d=4), "points of val have shape"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(val, message):
    with pytest.raises(ValueError, match=message):
        ShiftProblem(sample(), val, sample())


def test_alpha_is_the_share_of_this_very_draw():
    truth = Truth(np.array([True, False, False, True, False]), None, np.zeros(3, bool))

    assert truth.alpha == 0.4
