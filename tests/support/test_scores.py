"""Ranks and their combination by hand, exact neighbours by a second road."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import KDTree

from giw.support import conformal_p, evidence, mean_evidence, nearest
from giw.support.scores import _nearest_on_device


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


def test_weights_of_held_out_rows_count_as_so_many_rows():
    held_out = np.array([1.0, 2.0, 3.0, 4.0])
    weight = np.array([0.0, 2.0, 1.0, 3.0])
    assert_allclose(conformal_p(np.array([0.0, 2.5, 9.0]), held_out, weight), [1.0, 5 / 7, 1 / 7])


def test_evidence_is_one_over_twice_the_root_of_p():
    held_out = np.array([1.0, 2.0, 3.0, 4.0])
    assert_allclose(evidence(np.array([0.0, 2.5]), held_out), [1 / 2, 0.5 / np.sqrt(3 / 5)])


def test_beyond_all_held_out_scores_p_falls_exponentially():
    """Of 0, 1, ..., 8 the three largest exceed the fourth by 2 on average."""
    beyond = evidence(np.array([8.0, 12.0, 16.0]), np.arange(9.0))
    assert_allclose(beyond[1:] / beyond[0], np.exp([1, 2]) * np.sqrt(2), rtol=1e-9)


def test_evidence_is_averaged_by_inverse_variance():
    """Weights 3/4 and 1/4; the arithmetic mean times the geometric one."""
    each = [np.array([1.0, 2.0]), np.array([4.0, 0.5])]
    geometric = [4**0.25, 2**0.75 * 0.5**0.25]
    assert_allclose(mean_evidence(each, [1.0, 3.0]), np.multiply([1.75, 1.625], geometric))


def test_a_representation_without_variance_does_not_decide_alone():
    mean = mean_evidence([np.array([1.0]), *[np.array([4.0])] * 9], [0.0] + [1.0] * 9)
    assert_allclose(mean, (10 * 1 + 9 * 4) / 19 * 4 ** (9 / 19))
    assert_allclose(mean_evidence([np.array([3.0])] * 2, [0.0, 0.0]), 9.0)


def test_many_that_are_rather_large_say_more_than_their_mean():
    even = mean_evidence([np.array([4.0]), np.array([4.0])], [1.0, 1.0])
    assert even > mean_evidence([np.array([1.0]), np.array([7.0])], [1.0, 1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_are_those_of_a_tree(dtype):
    rng = np.random.default_rng(0)
    reference, z = rng.normal(size=(500, 6)).astype(dtype), rng.normal(size=(40, 6)).astype(dtype)
    distance, index = nearest(z, reference, 4)
    expected, rows = KDTree(reference).query(z, 4)
    assert_array_equal(index, rows)
    assert_allclose(distance, expected, rtol=1e-5)


def test_the_torch_road_finds_the_same(torch):
    rng = np.random.default_rng(1)
    reference, z = rng.normal(size=(300, 5)), rng.normal(size=(70, 5))
    distance, index = nearest(z, reference, 3)
    other = _nearest_on_device(torch.as_tensor(z), torch.as_tensor(reference), 3)
    assert_array_equal(other[1], index)
    assert_allclose(other[0], distance)


def test_no_more_neighbours_than_rows():
    assert nearest(np.zeros((2, 1)), np.ones((3, 1)), 9)[0].shape == (2, 3)
