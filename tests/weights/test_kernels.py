"""A ratio hardly feels the kernel's width, so the kernel has tests of its own."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from giw.weights.kernels import (
    evenly_spread,
    gaussian_kernel,
    median_distance,
    pair_squares,
    paper_gamma,
    scale_free_gamma,
)


def test_distances_of_a_right_triangle():
    x, y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]])

    assert_allclose(pair_squares(x, y), [[25.0, 0.0]])


def test_one_dimension_is_one_feature():
    assert_allclose(gaussian_kernel([0.0, 1.0], [3.0], gamma=1.0), np.exp([[-9.0], [-4.0]]))


def test_far_from_the_origin_distances_keep_their_digits():
    x = np.array([[1e6, 0.0], [1e6 + 1, 0.0]])

    assert_allclose(pair_squares(x, x), [[0, 1], [1, 0]], atol=1e-6)


def test_bandwidth_is_a_width():
    """At distance σ the kernel is exp(−1/2), whatever the units."""
    assert_allclose(gaussian_kernel([[0.0]], [[30.0]], bandwidth=30.0), [[np.exp(-0.5)]])


def test_gamma_is_an_inverse_square_width():
    assert_allclose(gaussian_kernel([[0.0]], [[3.0]], gamma=0.5), [[np.exp(-4.5)]])


@pytest.mark.parametrize("both", [{}, {"bandwidth": 1.0, "gamma": 0.5}])
def test_one_of_bandwidth_and_gamma_is_needed(both):
    with pytest.raises(ValueError, match="exactly one of bandwidth"):
        gaussian_kernel([[0.0]], [[1.0]], **both)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf, True, "wide"])
def test_an_impossible_gamma_is_refused(gamma):
    with pytest.raises(ValueError, match="gamma must be"):
        gaussian_kernel([[0.0]], [[1.0]], gamma=gamma)


def test_a_batch_is_a_kernel_for_each_problem():
    x = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))

    together = gaussian_kernel(x, x, bandwidth=1.0)

    for one, alone in zip(x, together, strict=True):
        torch.testing.assert_close(alone, gaussian_kernel(one, one, bandwidth=1.0))


def test_torch_stays_torch_and_keeps_its_precision():
    kernel = gaussian_kernel(torch.zeros(2, 3), torch.zeros(4, 3), bandwidth=1.0)

    assert isinstance(kernel, torch.Tensor)
    assert kernel.dtype == torch.float32
    assert kernel.shape == (2, 4)


def test_median_distance_of_three_points():
    """0, 1, 5 lie 1, 4 and 5 apart."""
    assert median_distance([0.0, 1.0, 5.0]) == 4.0


def test_median_distance_of_four_points_is_the_mean_of_the_middle_two():
    """0, 1, 3, 7 lie 1, 2, 3, 4, 6 and 7 apart."""
    assert_allclose(median_distance([0.0, 1.0, 3.0, 7.0]), 3.5)


def test_where_most_pairs_coincide_the_root_mean_square_takes_over():
    """0, 0, 0, 0, 1: six of ten distances are zero and four are one."""
    assert_allclose(median_distance([0.0, 0.0, 0.0, 0.0, 1.0]), np.sqrt(0.4))


def test_the_two_rules_are_what_their_names_say():
    x = [0.0, 1.0, 5.0]

    assert paper_gamma(x) == 4.0
    assert scale_free_gamma(x) == 1 / (2 * 4.0**2)


def test_points_that_all_coincide_have_no_scale():
    assert median_distance(np.ones((4, 2))) == 0
    with pytest.raises(ValueError, match="all points coincide"):
        scale_free_gamma(np.ones((4, 2)))


@settings(deadline=None, max_examples=30)
@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 100))
def test_only_the_scale_free_rule_is_scale_free(scale, seed):
    x = np.random.default_rng(seed).normal(size=(20, 3))

    assert_allclose(scale_free_gamma(scale * x) * scale**2, scale_free_gamma(x))
    assert_allclose(paper_gamma(scale * x), scale * paper_gamma(x))


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
