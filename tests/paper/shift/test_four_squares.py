"""The paper's toy problem, point by point."""

import numpy as np
import pytest

from giw.paper.shift import four_squares_problem


@pytest.mark.parametrize("example", [1, 2])
def test_the_problem_has_the_paper_s_numbers(example):
    problem, truth = four_squares_problem(example=example, random_state=0)

    np.testing.assert_array_equal(np.bincount(truth.train_group), [100, 100])
    np.testing.assert_array_equal(truth.val_group, [0, 1, 2, 3])
    np.testing.assert_array_equal(np.bincount(truth.test_group), [500] * 4)
    assert (problem.train.x[:, 0] < 0).all()
    np.testing.assert_allclose(problem.val.x[2:], [[0.55, 0.55], [0.55, -0.55]])
    np.testing.assert_array_equal(truth.inside, [True, True, False, False])
    np.testing.assert_array_equal(truth.weight, 1.0)
    assert truth.alpha == truth.support_share == 0.5


def test_inside_validation_points_are_random_and_not_training_points():
    first, _ = four_squares_problem(example=1, random_state=0)
    other, _ = four_squares_problem(example=1, random_state=1)

    assert (first.val.x[:2] != other.val.x[:2]).all()
    assert not (first.train.x[:, None] == first.val.x[None]).all(axis=2).any()


def test_the_second_example_flips_only_the_right():
    first, _ = four_squares_problem(example=1, random_state=0)
    second, _ = four_squares_problem(example=2, random_state=0)
    right = first.test.x[:, 0] > 0

    np.testing.assert_array_equal(first.train.y, second.train.y)
    np.testing.assert_array_equal(first.test.y != second.test.y, right)
