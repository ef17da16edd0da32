import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.cases.mean_matching import loss_shapes, minimum_by_cvxopt, objective

from giw.kernels import gaussian_kernel, paper_gamma, scale_free_gamma
from giw.weights.quadratic import sum_bounds
from giw.weights.small import pivoted_cholesky, small_interior_point

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
