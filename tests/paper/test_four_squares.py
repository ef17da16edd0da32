"""The paper's two examples: their geometry, the problem point by point, and who solves it."""

import numpy as np
import pytest
from examples.plot_four_squares import four_squares_problem, run_four_squares
from scipy.stats import ttest_rel


def squares(x):
    """How many points lie in each square."""
    return np.bincount(2 * (x[:, 0] > 0) + (x[:, 1] < 0), minlength=4)


@pytest.mark.parametrize("example", [1, 2])
def test_the_problem_has_the_paper_s_numbers(example):
    problem, truth = four_squares_problem(example=example, random_state=0)

    assert (len(problem.train), len(problem.val), len(problem.test)) == (200, 4, 2000)
    np.testing.assert_array_equal(squares(problem.train.x), [100, 100, 0, 0])
    np.testing.assert_array_equal(squares(problem.val.x), [1] * 4)
    np.testing.assert_array_equal(squares(problem.test.x), [500] * 4)
    assert (problem.train.x[:, 0] < 0).all()
    np.testing.assert_allclose(problem.val.x[2:], [[0.55, 0.55], [0.55, -0.55]])
    np.testing.assert_array_equal(truth.inside, [True, True, False, False])
    assert truth.alpha == 0.5


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


def accuracies(example, trials):
    records = run_four_squares(example, trials=trials)
    return {m: np.array([r.final_accuracy() for r in found]) for m, found in records.items()}


def test_importance_weighting_fails_where_the_right_half_contradicts_the_left_and_giw_does_not():
    found = accuracies(2, trials=2)
    assert found["diw"].mean() <= 0.60
    assert found["giw"].mean() > 0.85


@pytest.mark.slow
def test_first_example_twenty_seeds():
    found = accuracies(1, trials=20)
    assert found["diw"].mean() >= 0.95
    assert found["giw"].mean() >= 0.95


@pytest.mark.slow
def test_second_example_twenty_seeds():
    found = accuracies(2, trials=20)
    assert found["giw"].mean() > 0.90
    assert found["diw"].mean() <= 0.60
    assert found["giw"].mean() > found["val_only"].mean()
    assert ttest_rel(found["giw"], found["val_only"]).pvalue < 0.05


@pytest.mark.parametrize("example", [1, 2])
def test_points_fill_four_unit_squares_with_a_margin_of_a_tenth(example):
    x = four_squares_problem(example=example, n_test=4000, random_state=0)[0].test.x

    for square in range(4):
        points = x[2 * (x[:, 0] > 0) + (x[:, 1] < 0) == square]
        assert len(points) == 1000
        assert np.all(np.ptp(points, axis=0) <= 1.0)
        assert np.all(np.ptp(points, axis=0) > 0.98)
    assert np.abs(x).min() >= 0.05 - 1e-7  # half the margin
    assert np.abs(x).max() <= 1.05 + 1e-6


def test_the_first_example_is_red_on_the_top_and_the_second_a_checkerboard():
    first, _ = four_squares_problem(example=1, random_state=0)
    second, _ = four_squares_problem(example=2, random_state=0)
    right, top = first.test.x[:, 0] > 0, first.test.x[:, 1] > 0

    np.testing.assert_array_equal(first.test.y, top)
    np.testing.assert_array_equal(second.test.y, top ^ right)


def test_what_the_paper_does_not_have_is_refused():
    with pytest.raises(ValueError, match="example must be 1 or 2, got 3"):
        four_squares_problem(example=3)
