import numpy as np
import pytest
import torch
from benchmarks.loss_shapes import loss_shapes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.cases.mean_matching import minimum_by_cvxopt, objective

from giw.weights.kernels import gaussian_kernel, paper_gamma, scale_free_gamma
from giw.weights.quadratic import DenseKernel, interior_point, sum_bounds
from giw.weights.small import likely_weights, pivoted_cholesky, small_interior_point

SHAPES = loss_shapes(seed=1)


@pytest.mark.parametrize("gamma", [paper_gamma, scale_free_gamma])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_loose_tolerance_is_within_1e_4_of_the_minimum(shape, gamma):
    train, val = SHAPES[shape]
    width = gamma(train)
    kernel = gaussian_kernel(train, train, gamma=width)
    kappa = len(train) * gaussian_kernel(train, val, gamma=width).mean(1)
    theirs = minimum_by_cvxopt(kernel, kappa, ridge=1e-5, upper=50.0)
    lowest = objective(theirs, kernel, kappa, ridge=1e-5)

    features, _ = pivoted_cholesky(train[:, None], gamma=width)
    w = small_interior_point(
        features, kappa, ridge=1e-5, upper=50.0, bounds=sum_bounds(len(kappa)), tolerance=1e-4
    )

    assert objective(w, kernel, kappa, ridge=1e-5) - lowest <= 1e-4 * abs(lowest)
    assert w.min() >= 0
    assert w.max() <= 50
    low, high = sum_bounds(len(kappa))
    assert low - 1e-9 <= w.sum() <= high + 1e-9


def test_the_factor_gives_the_kernel_back():
    x = np.random.default_rng(0).normal(size=(60, 2))

    features, left = pivoted_cholesky(x, gamma=0.1, tolerance=1e-8)

    assert left < 1e-8
    assert features.shape[1] < 60
    assert_allclose(features @ features.T, gaussian_kernel(x, x, gamma=0.1), atol=1e-7)


def test_what_is_left_out_is_told():
    x = np.arange(50.0)[:, None]

    _, left = pivoted_cholesky(x, gamma=10.0, most=20)

    assert left > 0.9


@pytest.mark.parametrize(
    ("kappa", "expected"),
    [
        ([3.0, 2.5, 2.0, 1.5], [2.25, 1.75, 1.25, 0.75]),
        ([0.4, 0.3, 0.2, 0.1], [0.65, 0.55, 0.45, 0.35]),
    ],
)
def test_active_bounds_on_the_sum_by_hand(kappa, expected):
    """K = I and n = 4: the sum stays between 2 and 6, and every weight gives the same for it."""
    w = small_interior_point(
        np.eye(4), np.array(kappa), ridge=1e-9, upper=50.0, bounds=sum_bounds(4), tolerance=1e-10
    )

    assert_allclose(w, expected, atol=1e-6)


@given(
    n=st.integers(2, 40),
    upper=st.sampled_from([1.001, 1.5, 50.0, 1e6]),
    shift=st.floats(0, 30),
    seed=st.integers(0, 99),
)
def test_the_start_lies_inside_all_bounds(n, upper, shift, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 1)), rng.normal(size=(5, 1)) + shift
    features, _ = pivoted_cholesky(x, gamma=0.5)

    w = likely_weights(features.T, n * gaussian_kernel(x, y, gamma=0.5).mean(1), upper=upper)

    assert_allclose(w.sum(), n)
    assert w.min() > 0.29
    assert w.max() < upper


def test_the_start_is_the_ratio_of_kernel_densities():
    """Three groups of equal points out of each other's reach: validation over training counts."""
    x = np.repeat([0.0, 100.0, 200.0], [10, 20, 10])[:, None]
    features, _ = pivoted_cholesky(x, gamma=1.0)
    kappa = 40 * np.repeat([0.5, 0.5, 0.0], [10, 20, 10])  # half of the validation points each

    w = likely_weights(features.T, kappa, upper=50.0)

    # 2, 1 and 0, held back from zero: 1 + 0.7 (ratio − 1)
    assert_allclose(w[[0, 10, 30]], [1.7, 1.0, 0.3], atol=1e-3)


def test_no_validation_point_within_reach_starts_from_equal_weights():
    assert_allclose(likely_weights(np.ones((1, 5)), np.zeros(5), upper=2.0), np.ones(5))


@pytest.mark.parametrize("upper", [1.001, 1.5, 1e6])
@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 50.0])
def test_unusual_bounds_and_ridges_reach_the_minimum_of_the_general_method(upper, ridge):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(5, 2)) + 1
    kernel = gaussian_kernel(x, x, gamma=0.3)
    kappa = 60 * gaussian_kernel(x, y, gamma=0.3).mean(1)
    problem = {"ridge": ridge, "upper": upper, "bounds": sum_bounds(60), "tolerance": 1e-9}

    features, _ = pivoted_cholesky(x, gamma=0.3, tolerance=1e-12)
    ours = small_interior_point(features, kappa, **problem)

    general = interior_point(
        DenseKernel(torch.as_tensor(kernel)), torch.as_tensor(kappa), **problem
    )
    lowest = objective(general.numpy(), kernel, kappa, ridge=ridge)
    assert_allclose(objective(ours, kernel, kappa, ridge=ridge), lowest, rtol=1e-6)
    assert 0 <= ours.min() <= ours.max() <= upper


def test_forces_balance_at_the_solution():
    """Gradient = 0 between the bounds, ≥ 0 at zero, ≤ 0 at the upper bound."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 1)), rng.normal(size=(10, 1)) + 1
    features, _ = pivoted_cholesky(x, gamma=0.5, tolerance=1e-12)
    kappa = 80 * gaussian_kernel(x, y, gamma=0.5).mean(1)

    w = small_interior_point(
        features, kappa, ridge=0.1, upper=1.5, bounds=sum_bounds(80), tolerance=1e-8
    )

    gradient = features @ (features.T @ w) + 0.1 * w - kappa
    free = (w > 1e-4) & (w < 1.5 - 1e-4)
    assert free.sum() > 3
    assert (w > 1.5 - 1e-4).sum() > 3
    assert_allclose(gradient[free], 0, atol=1e-3)
    assert gradient[w < 1e-4].min() > -1e-3
    assert gradient[w > 1.5 - 1e-4].max() < 1e-3
