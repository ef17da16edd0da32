"""A method sees the problem and never the truth."""

import numpy as np

from giw.paper.shifts import Sample, ShiftProblem, Truth


def sample(n=2, d=3, classes=("a", "b"), group=7):
    return Sample(np.zeros((n, d)), np.zeros(n, int), np.full(n, group), classes=classes)


def test_groups_do_not_pass_the_door():
    problem = ShiftProblem(sample(group=1), sample(group=2), sample(group=3))

    for part in (problem.train, problem.val, problem.test):
        assert set(part.group) == {0}


def test_taking_rows_keeps_points_labels_and_groups_together():
    whole = Sample(np.arange(6.0).reshape(3, 2), [0, 1, 0], [4, 5, 6], ("a", "b"))
    taken = whole.take([2, 0])

    np.testing.assert_array_equal(taken.x, [[4.0, 5.0], [0.0, 1.0]])
    np.testing.assert_array_equal(taken.y, [0, 0])
    np.testing.assert_array_equal(taken.group, [6, 4])
    assert len(whole.take([False, True, False])) == 1


def test_alpha_is_the_share_of_this_very_draw():
    truth = Truth(np.array([True, False, False, True, False]))

    assert truth.alpha == 0.4
