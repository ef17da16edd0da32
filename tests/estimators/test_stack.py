import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from giw.estimators.candidates import Candidate
from giw.estimators.stack import (
    calibrated,
    calibration_powers,
    difference,
    folds_of,
    mean_weights,
    prior_rows,
    stack_weights,
)


def test_two_candidates_that_are_certain_share_the_rows():
    """Three rows for the first, one for the second, prior (1/2, 1/2) like two rows: 4/6 and 2/6."""
    loss = np.array([[0.0, 0.0, 0.0, 50.0], [50.0, 50.0, 50.0, 0.0]])
    found = stack_weights(loss, prior=np.array([0.5, 0.5]), strength=2.0)
    assert_allclose(found, [4 / 6, 2 / 6])


def test_row_weights_count_like_copies():
    loss = np.random.default_rng(0).exponential(size=(3, 4))
    prior = np.ones(3) / 3
    copies = stack_weights(np.repeat(loss, [1, 2, 1, 1], axis=1), prior=prior, strength=1.0)
    weighted = stack_weights(loss, prior=prior, strength=1.0, weight=np.array([1.0, 2.0, 1.0, 1.0]))
    assert_allclose(copies, weighted, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_no_direction_on_the_simplex_improves_the_penalised_likelihood(seed, q, m):
    rng = np.random.default_rng(seed)
    loss, prior = rng.exponential(size=(q, m)), rng.dirichlet(np.ones(q)) * 0.9 + 0.1 / q
    found = stack_weights(loss, prior=prior, strength=q, steps=5000)
    slope = np.exp(-loss) @ (1 / (found @ np.exp(-loss))) + q * prior / found
    assert_allclose(slope, m + q, rtol=1e-3)  # the same for all candidates: a stationary point


def test_without_rows_the_prior_stays():
    prior = np.array([0.2, 0.3, 0.5])
    assert_allclose(stack_weights(np.zeros((3, 0)), prior=prior, strength=3.0), prior)


def test_the_better_of_two_numbers_wins_and_their_mean_where_errors_cancel():
    y = np.arange(8.0)
    off = np.array([1.0, -1.0] * 4)
    prior = np.ones(2) / 2
    found = mean_weights(np.stack([y + off, y + 3 + off]), y, prior=prior, strength=1e-9)
    assert_allclose(found, [1, 0], atol=1e-4)
    found = mean_weights(np.stack([y + off, y - off]), y, prior=prior, strength=1e-9)
    assert_allclose(found, [0.5, 0.5], atol=1e-4)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_a_general_solver_finds_no_better_mean(seed):
    rng = np.random.default_rng(seed)
    y, left_out = rng.normal(size=12), rng.normal(size=(3, 12))
    prior, strength = rng.dirichlet(np.ones(3)), 2.0
    unit = np.square(left_out - y).mean(axis=1).min()

    def risk(a):
        return np.square(y - a @ left_out).sum() / unit + strength * np.square(a - prior).sum()

    found = mean_weights(left_out, y, prior=prior, strength=strength)
    sum_to_one = {"type": "eq", "fun": lambda a: a.sum() - 1}
    other = minimize(risk, prior, bounds=[(0, 1)] * 3, constraints=sum_to_one, tol=1e-12)
    assert risk(found) <= other.fun + 1e-4 * (1 + abs(other.fun))


def test_the_order_of_candidates_does_not_matter():
    rng = np.random.default_rng(0)
    loss, prior = rng.exponential(size=(4, 20)), rng.dirichlet(np.ones(4))
    order = np.array([2, 0, 3, 1])
    found = stack_weights(loss, prior=prior, strength=4.0)
    assert_allclose(stack_weights(loss[order], prior=prior[order], strength=4.0), found[order])
    left_out, y = rng.normal(size=(4, 20)), rng.normal(size=20)
    found = mean_weights(left_out, y, prior=prior, strength=4.0)
    again = mean_weights(left_out[order], y, prior=prior[order], strength=4.0)
    assert_allclose(again, found[order], atol=1e-8)
    assert found.sum() == pytest.approx(1)


def test_a_model_that_is_three_times_too_sure_is_raised_to_a_third():
    """Of 40 rows with log-odds 3 log 3 three in four are right: power 1/3, by the closed form."""
    sure = 3**3 / (1 + 3**3)
    y = np.repeat([0, 1], [30, 10])
    left_out = np.tile([sure, 1 - sure], (1, 40, 1))
    (power,) = calibration_powers(left_out, y, strength=1e-9, steps=1201)
    assert power == pytest.approx(1 / 3, rel=0.01)
    np.testing.assert_allclose(
        calibrated(left_out, np.array([1 / 3])),
        0.5 + 0.25 * np.array([1, -1]) * np.ones((1, 40, 2)),
    )


def test_a_strong_prior_and_no_rows_leave_probabilities_as_they_are():
    rng = np.random.default_rng(0)
    left_out, y = rng.dirichlet(np.ones(3), size=(2, 9)), rng.integers(0, 3, 9)
    np.testing.assert_array_equal(calibration_powers(left_out, y, strength=1e9), 1)
    np.testing.assert_array_equal(calibration_powers(left_out[:, :0], y[:0], strength=1.0), 1)
    np.testing.assert_allclose(calibrated(left_out, np.ones(2)), left_out)


def test_a_power_never_changes_which_class_is_likeliest():
    probability = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 20))
    found = calibrated(probability, np.array([0.05, 0.7, 3.0]))
    np.testing.assert_array_equal(found.argmax(axis=2), probability.argmax(axis=2))


def test_folds_share_every_class_evenly():
    label = np.array(["a"] * 10 + ["b"] * 5)
    fold = folds_of(label, 5, np.random.default_rng(0))
    assert np.bincount(fold).tolist() == [3] * 5
    for value, count in (("a", 2), ("b", 1)):
        assert np.bincount(fold[label == value]).tolist() == [count] * 5


def test_rows_of_a_group_stay_together_and_folds_are_nearly_even():
    groups = np.repeat(np.arange(8), [5, 1, 1, 1, 3, 2, 2, 1])
    fold = folds_of(np.zeros(16), 3, np.random.default_rng(0), groups)
    assert all(len(set(fold[groups == g])) == 1 for g in range(8))
    assert sorted(np.bincount(fold).tolist()) == [5, 5, 6]


def test_a_difference_of_two_standard_errors():
    """Training losses 0 and 2 have variance 1; four validation rows of each are off by z = 2."""
    loss, is_val = np.array([0.0, 2.0] * 400 + [2.0] * 4), np.arange(804) >= 800
    z2 = 1 / (1 / 4 + 1 / 800)
    assert difference(loss, is_val, np.ones(804)) == pytest.approx(1 - np.exp(-z2 / 2))
    assert difference(np.ones(804), is_val, np.ones(804)) == 0


def test_the_prior_by_hand():
    """Twenty rows of two classes and no sign of a difference: half for what is right then."""
    some = [Candidate("a", len, if_alike=True), Candidate("b", len), Candidate("c", len)]
    assert_allclose(prior_rows(some, 0.0, 20, 2), [1.5 + 0.25, 0.25, 0.25])
    assert_allclose(prior_rows(some, 1.0, 20, 2), [0.5] * 3)
    assert_allclose(prior_rows(some[1:], 0.0, 20, 2), [0.5] * 2)
    assert_allclose(prior_rows(some, 0.0, 10, None), [6 + 2, 2, 2])
