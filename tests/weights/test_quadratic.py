import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.cases.mean_matching import gaussian_kernel

from giw.weights.quadratic import (
    DenseKernel,
    FactoredKernel,
    interior_point,
    likely_weights,
    pivoted_cholesky,
    sum_bounds,
)


def a_problem(n, d=1, gamma=0.5, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(8, d)) + 1
    kernel = gaussian_kernel(x, x, gamma=gamma)
    return x, kernel, n * gaussian_kernel(x, y, gamma=gamma).mean(1)


def factored(x, gamma, cut=1e-13):
    rows, left = pivoted_cholesky(x, gamma=gamma, cut=cut, most=len(x))
    assert left < cut
    return FactoredKernel(rows)


def test_the_factor_gives_the_kernel_back():
    x = np.random.default_rng(0).normal(size=(60, 2))

    rows, left = pivoted_cholesky(x, gamma=0.1, cut=1e-8, most=60)

    assert left < 1e-8
    assert len(rows) - 1 < 60
    assert_allclose(rows[:-1].T @ rows[:-1], gaussian_kernel(x, x, gamma=0.1), atol=1e-7)


def test_what_is_left_out_is_told():
    x = np.arange(50.0)[:, None]

    rows, left = pivoted_cholesky(x, gamma=10.0, cut=1e-8, most=20)

    assert left > 0.9
    assert len(rows) == 21


def test_two_far_points_by_hand():
    """K = I: each weight is κ / (1 + ρ)."""
    kappa = np.array([1.3, 0.6])

    w = interior_point(
        DenseKernel(np.eye(2)), kappa, ridge=0.25, upper=50.0, total=sum_bounds(2), tolerance=1e-7
    )

    assert_allclose(w, kappa / 1.25, atol=1e-6)


@pytest.mark.parametrize(
    ("kappa", "expected"),
    [
        ([3.0, 2.5, 2.0, 1.5], [2.25, 1.75, 1.25, 0.75]),
        ([0.4, 0.3, 0.2, 0.1], [0.65, 0.55, 0.45, 0.35]),
    ],
)
@pytest.mark.parametrize("kind", ["dense", "factored"])
def test_active_bounds_on_the_sum_by_hand(kappa, expected, kind):
    """K = I and n = 4: the sum stays between 2 and 6, and every weight gives the same for it."""
    kernel = DenseKernel(np.eye(4)) if kind == "dense" else FactoredKernel(np.eye(5)[:, :4].copy())
    problem = {"ridge": 1e-9, "upper": 50.0, "total": sum_bounds(4)}

    w = interior_point(kernel, np.array(kappa), **problem)

    assert_allclose(w, expected, atol=1e-6)


@pytest.mark.parametrize("upper", [1.001, 1.5, 1e6])
@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 50.0])
@pytest.mark.parametrize("kind", ["dense", "factored"])
def test_forces_balance_at_the_solution(kind, ridge, upper):
    """Gradient − price: zero between the bounds, not negative at zero, not positive at the top."""
    x, kernel, kappa = a_problem(80)
    solver = DenseKernel(kernel) if kind == "dense" else factored(x, 0.5)
    low, high = sum_bounds(80)

    w = interior_point(solver, kappa, ridge=ridge, upper=upper, total=(low, high), tolerance=1e-6)

    gradient = kernel @ w + ridge * w - kappa
    at_zero, at_top = w < 1e-4 * upper, w > upper - 1e-4 * min(upper - 1, 1)
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


@pytest.mark.parametrize(("n", "d", "gamma"), [(300, 1, 0.5), (300, 1, 20.0), (100, 4, 0.05)])
def test_few_rows_and_all_entries_give_the_same_weights(n, d, gamma):
    x, kernel, kappa = a_problem(n, d, gamma)
    problem = {"ridge": 1e-3, "upper": 5.0, "total": sum_bounds(n), "tolerance": 1e-5}

    w = interior_point(factored(x, gamma), kappa, **problem)

    assert_allclose(w, interior_point(DenseKernel(kernel), kappa, **problem), atol=1e-5)


def test_blocks_of_columns_change_nothing(monkeypatch):
    x, _, kappa = a_problem(100)
    problem = {"ridge": 1e-2, "upper": 5.0, "total": sum_bounds(100)}
    whole = interior_point(factored(x, 0.5), kappa, **problem)
    monkeypatch.setattr("giw.weights.quadratic.BLOCK", 7)

    assert_allclose(interior_point(factored(x, 0.5), kappa, **problem), whole, atol=1e-6)


@pytest.mark.parametrize("tolerance", [0.1, 1e-2, 1e-3])
def test_the_tolerance_is_an_error_of_the_weights(tolerance):
    x, _, kappa = a_problem(200)
    problem = {"ridge": 1e-4, "upper": 50.0, "total": sum_bounds(200)}
    exact = interior_point(factored(x, 0.5), kappa, **problem, tolerance=1e-6)

    w = interior_point(factored(x, 0.5), kappa, **problem, tolerance=tolerance)

    assert np.sqrt(np.mean((w - exact) ** 2)) < tolerance


@given(
    n=st.integers(2, 40),
    upper=st.sampled_from([1.001, 1.5, 50.0, 1e6]),
    shift=st.floats(0, 30),
    seed=st.integers(0, 99),
)
def test_the_start_lies_inside_all_bounds(n, upper, shift, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 1)), rng.normal(size=(5, 1)) + shift
    reach = gaussian_kernel(x, x, gamma=0.5).sum(1)

    w = likely_weights(reach, n * gaussian_kernel(x, y, gamma=0.5).mean(1), upper=upper)

    assert_allclose(w.sum(), n)
    assert w.min() > 0.29
    assert w.max() < upper
