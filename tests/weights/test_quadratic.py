import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.cases.mean_matching import gaussian_kernel

from giw.weights.quadratic import interior_point, pivoted_cholesky


def a_problem(n, d=1, gamma=0.5, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(8, d)) + 1
    kernel = gaussian_kernel(x, x, gamma=gamma)
    return x, kernel, n * gaussian_kernel(x, y, gamma=gamma).mean(1)


def identity(n):
    """F with FᵀF = I, and its row of room."""
    return np.eye(n + 1)[:, :n].copy()


@pytest.mark.parametrize(("gamma", "most"), [(0.1, 60), (50.0, 60)])
def test_the_factor_gives_the_kernel_back(gamma, most):
    x = np.random.default_rng(0).normal(size=(60, 2))

    rows = pivoted_cholesky(x, gamma=gamma, cut=1e-8, most=most)[:-1]

    assert len(rows) <= 60
    assert_allclose(rows.T @ rows, gaussian_kernel(x, x, gamma=gamma), atol=1e-7)


def test_a_factor_of_too_few_rows_ends_there():
    assert len(pivoted_cholesky(np.arange(50.0)[:, None], gamma=10.0, cut=1e-8, most=20)) == 21


def test_two_far_points_by_hand():
    """K = I: each weight is κ / (1 + ρ)."""
    kappa = np.array([1.3, 0.6])

    w = interior_point(identity(2), kappa, ridge=0.25, upper=50.0, tolerance=1e-7)

    assert_allclose(w, kappa / 1.25, atol=1e-6)


@pytest.mark.parametrize(
    ("kappa", "expected"),
    [
        ([3.0, 2.5, 2.0, 1.5], [2.25, 1.75, 1.25, 0.75]),
        ([0.4, 0.3, 0.2, 0.1], [0.65, 0.55, 0.45, 0.35]),
    ],
)
def test_active_bounds_on_the_sum_by_hand(kappa, expected):
    """K = I and n = 4: the sum stays between 2 and 6, and every weight gives the same for it."""
    w = interior_point(identity(4), np.array(kappa), ridge=1e-9, upper=50.0)

    assert_allclose(w, expected, atol=1e-6)


@pytest.mark.parametrize("upper", [1.001, 1.5, 1e6])
@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 50.0])
@pytest.mark.parametrize("gamma", [0.5, 50.0])  # few rows, and as many as points
def test_forces_balance_at_the_solution(gamma, ridge, upper):
    """Gradient − price: zero between the bounds, not negative at zero, not positive at the top."""
    x, kernel, kappa = a_problem(80, gamma=gamma)
    low, high = np.sqrt(80), 160 - np.sqrt(80)
    rows = pivoted_cholesky(x, gamma=gamma, cut=1e-13, most=80)

    w = interior_point(rows, kappa, ridge=ridge, upper=upper, tolerance=1e-6)

    gradient = kernel @ w + ridge * w - kappa
    at_zero, at_top = w < 1e-4 * min(upper, 10), w > upper - 1e-4 * min(upper - 1, 1)
    free = ~(at_zero | at_top)
    assert low - 1e-9 <= w.sum() <= high + 1e-9
    inside = low * 1.001 < w.sum() < high * 0.999
    price = 0.0 if inside else gradient[free].mean()
    slack = 1e-5 * (1 + ridge) * max(1.0, kappa.max() / 80)
    assert_allclose(gradient[free] - price, 0, atol=slack)
    assert (gradient[at_zero] - price > -slack).all()
    assert (gradient[at_top] - price < slack).all()
    assert (w >= 0).all()
    assert (w <= upper).all()


def test_blocks_of_columns_change_nothing(monkeypatch):
    x, _, kappa = a_problem(100)
    problem = {"ridge": 1e-2, "upper": 5.0}
    whole = interior_point(pivoted_cholesky(x, gamma=0.5, cut=1e-13, most=len(x)), kappa, **problem)
    monkeypatch.setattr("giw.weights.quadratic.BLOCK", 7)

    assert_allclose(
        interior_point(pivoted_cholesky(x, gamma=0.5, cut=1e-13, most=len(x)), kappa, **problem),
        whole,
        atol=1e-6,
    )


@pytest.mark.parametrize("tolerance", [0.1, 1e-2, 1e-3])
def test_the_tolerance_is_an_error_of_the_weights(tolerance):
    x, _, kappa = a_problem(200)
    problem = {"ridge": 1e-4, "upper": 50.0}
    exact = interior_point(
        pivoted_cholesky(x, gamma=0.5, cut=1e-13, most=len(x)), kappa, **problem, tolerance=1e-6
    )

    w = interior_point(
        pivoted_cholesky(x, gamma=0.5, cut=1e-13, most=len(x)),
        kappa,
        **problem,
        tolerance=tolerance,
    )

    assert np.sqrt(np.mean((w - exact) ** 2)) < tolerance
