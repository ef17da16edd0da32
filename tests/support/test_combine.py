"""Ranks and their combination, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from giw.support import cauchy, conformal_p


def test_a_p_value_is_a_rank_among_held_out_scores():
    held_out = np.array([1.0, 2.0, 3.0, 4.0])
    assert_allclose(conformal_p(np.array([0.0, 2.5, 9.0]), held_out), [1.0, 3 / 5, 1 / 5])


def test_ties_count_against_strangeness():
    held_out = np.array([1.0, 2.0, 2.0, 3.0])
    assert_allclose(conformal_p(np.array([2.0]), held_out), [(1 + 3) / 5])


@given(st.permutations(list(range(20))))
def test_each_rank_is_as_likely_as_any_other(order):
    """Of exchangeable scores the last one's p-value takes every k / n equally often."""
    scores = np.array(order, dtype=float)
    p = [conformal_p(np.roll(scores, i)[-1:], np.roll(scores, i)[:-1])[0] for i in range(20)]
    assert_allclose(np.sort(p), np.arange(1, 21) / 20)


def test_cauchy_of_two_by_hand():
    """tan(pi/4) = 1 and tan(0) = 0: the mean is 1/2."""
    combined = cauchy({"a": np.array([0.25]), "b": np.array([0.5])})
    assert_allclose(combined, 0.5 - np.arctan(0.5) / np.pi)


def test_cauchy_of_equal_p_values_is_that_value():
    p = np.array([0.001, 0.05, 0.4])
    assert_allclose(cauchy({"a": p, "b": p, "c": p}), p)


def test_one_p_value_is_not_changed():
    p = np.array([0.0, 0.97, 1.0])
    assert_allclose(cauchy({"a": p}), p)


@pytest.mark.parametrize("others", [1, 9])
def test_in_the_tail_one_small_p_value_counts_times_the_number_of_tests(others):
    p = {"small": np.array([1e-4])} | {str(i): np.array([0.5]) for i in range(others)}
    assert_allclose(cauchy(p), 1e-4 * (others + 1), rtol=0.01)


def test_an_ordinary_look_does_not_undo_a_strange_one():
    combined = cauchy({"strange": np.array([0.001]), "ordinary": np.array([1.0])})
    assert combined[0] < 0.003
