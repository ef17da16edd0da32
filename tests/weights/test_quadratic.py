import numpy as np
import pytest
import torch
from benchmarks.loss_shapes import loss_shapes
from tests.cases.mean_matching import minimum_by_cvxopt, objective

from giw.weights.kernels import gaussian_kernel, paper_gamma, scale_free_gamma
from giw.weights.quadratic import DenseKernel, accelerated_gradient, interior_point, sum_bounds

SHAPES = loss_shapes()
RULES = {"paper": paper_gamma, "median": scale_free_gamma}


def problem(shape, rule):
    train, val = SHAPES[shape]
    gamma = RULES[rule](train)
    kernel = gaussian_kernel(train, train, gamma=gamma)
    kappa = len(train) * gaussian_kernel(train, val, gamma=gamma).mean(1)
    return kernel, kappa


def by_interior_point(kernel, kappa, ridge=1e-5, upper=50.0):
    matrix = torch.as_tensor(kernel)
    return interior_point(
        DenseKernel(matrix),
        torch.as_tensor(kappa),
        ridge=ridge,
        upper=upper,
        bounds=sum_bounds(len(kappa)),
    ).numpy()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_interior_point_method_finds_the_minimum_that_cvxopt_finds(shape, rule):
    kernel, kappa = problem(shape, rule)
    ours = by_interior_point(kernel, kappa)
    theirs = minimum_by_cvxopt(kernel, kappa, ridge=1e-5, upper=50.0)
    lowest = objective(theirs, kernel, kappa, ridge=1e-5)

    gap = objective(ours, kernel, kappa, ridge=1e-5) - lowest

    assert gap <= 1e-5 * abs(lowest)
    assert ours.min() >= 0
    assert ours.max() <= 50
    low, high = sum_bounds(len(kappa))
    assert low - 1e-6 <= ours.sum() <= high + 1e-6


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sixty_gradient_steps_come_near_the_minimum(shape, rule):
    """Within 0.5 % of the objective, or where that is near zero of what there was to gain."""
    kernel, kappa = problem(shape, rule)
    lowest = objective(by_interior_point(kernel, kappa), kernel, kappa, ridge=1e-5)
    start = objective(np.ones_like(kappa), kernel, kappa, ridge=1e-5)

    w = accelerated_gradient(
        torch.as_tensor(kernel + 1e-5 * np.eye(len(kappa))),
        torch.as_tensor(kappa),
        upper=50.0,
        bounds=sum_bounds(len(kappa)),
        n_steps=60,
    ).numpy()

    gap = objective(w, kernel, kappa, ridge=1e-5) - lowest
    assert gap <= 5e-3 * max(abs(lowest), start - lowest)
    assert w.min() >= 0
    assert w.max() <= 50


def test_two_far_points_by_hand():
    """K = I: each weight is κ / (1 + ρ), clipped."""
    w = by_interior_point(np.eye(2), np.array([1.3, 0.6]), ridge=0.25)

    np.testing.assert_allclose(w, np.array([1.3, 0.6]) / 1.25, atol=1e-6)


def test_an_active_upper_bound_on_the_sum_by_hand():
    """K = I, n = 4: the sum may not exceed 2n − √n = 6, so every weight gives up the same."""
    w = by_interior_point(np.eye(4), np.array([3.0, 2.5, 2.0, 1.5]), ridge=1e-9)

    np.testing.assert_allclose(w, np.array([3.0, 2.5, 2.0, 1.5]) - 0.75, atol=1e-6)


def test_an_active_lower_bound_on_the_sum_by_hand():
    """K = I, n = 4: the sum may not fall under √n = 2."""
    kappa = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)

    exact = by_interior_point(np.eye(4), kappa.numpy(), ridge=1e-9)
    steps = accelerated_gradient(
        torch.eye(4).double(), kappa, upper=50.0, bounds=sum_bounds(4), n_steps=200
    )

    np.testing.assert_allclose(exact, kappa.numpy() + 0.25, atol=1e-6)
    np.testing.assert_allclose(steps.numpy(), kappa.numpy() + 0.25, atol=1e-4)
