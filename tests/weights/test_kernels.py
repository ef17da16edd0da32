"""A ratio hardly feels the kernel's width, so the kernel has tests of its own."""

import numpy as np
from numpy.testing import assert_allclose

from giw.weights.kernels import (
    evenly_spread,
    median_distance,
    pair_squares,
)


def test_distances_of_a_right_triangle():
    x, y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]])

    assert_allclose(pair_squares(x, y), [[25.0, 0.0]])


def test_far_from_the_origin_distances_keep_their_digits():
    x = np.array([[1e6, 0.0], [1e6 + 1, 0.0]])

    assert_allclose(pair_squares(x, x), [[0, 1], [1, 0]], atol=1e-6)


def test_median_distance_of_three_points():
    """0, 1, 5 lie 1, 4 and 5 apart."""
    assert median_distance([0.0, 1.0, 5.0]) == 4.0


def test_median_distance_of_four_points_is_the_mean_of_the_middle_two():
    """0, 1, 3, 7 lie 1, 2, 3, 4, 6 and 7 apart."""
    assert_allclose(median_distance([0.0, 1.0, 3.0, 7.0]), 3.5)


def test_where_most_pairs_coincide_the_root_mean_square_takes_over():
    """0, 0, 0, 0, 1: six of ten distances are zero and four are one."""
    assert_allclose(median_distance([0.0, 0.0, 0.0, 0.0, 1.0]), np.sqrt(0.4))


def test_a_sample_of_many_points_gives_nearly_their_median():
    """Between standard normals the distance is √2·|z|, with median √2 · 0.6745."""
    x = np.random.default_rng(0).normal(size=20_000)

    assert_allclose(median_distance(x), np.sqrt(2) * 0.6745, rtol=0.01)


def test_some_rows_evenly_spread_do_not_depend_on_their_order():
    x = np.random.default_rng(0).normal(size=1_000)
    shuffled = np.random.default_rng(1).permutation(x)

    assert_allclose(x[evenly_spread(x, 70)], shuffled[evenly_spread(shuffled, 70)])
    assert len(evenly_spread(x, 70)) == 70
    assert (evenly_spread(x, 1_000) == np.arange(1_000)).all()


def test_points_that_all_coincide_have_no_scale():
    assert median_distance(np.ones((4, 2))) == 0
