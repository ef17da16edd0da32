import numpy as np
import torch
from numpy.testing import assert_allclose
from tests.cases.gaussian_pairs import gaussian_pair

import giw
from giw.weights.kliep import log_linear_coefficients, tilted_moments


def test_indicator_features_give_the_ratio_of_frequencies():
    train = torch.eye(3).double()[[0, 0, 1, 1, 1, 1, 2, 2]]  # p = 1/4, 1/2, 1/4
    target = torch.tensor([0.25, 0.25, 0.5]).double()  # q

    theta, log_mean = log_linear_coefficients(
        lambda: [train], target, ridge=1e-9, start=torch.zeros(3).double(), tolerance=1e-14
    )

    assert_allclose((theta - log_mean).exp(), [1.0, 0.5, 2.0], rtol=1e-4)


def test_the_gradient_vanishes_at_the_solution():
    rng = np.random.default_rng(0)
    phi, target = (
        torch.as_tensor(rng.normal(size=(50, 4))),
        torch.tensor([0.3, 0.0, -0.2, 0.1]).double(),
    )

    theta, log_mean = log_linear_coefficients(
        lambda: [phi], target, ridge=0.1, start=torch.zeros(4).double(), tolerance=1e-16
    )

    weight = (phi @ theta - log_mean).exp()
    assert_allclose(weight.mean(), 1.0)
    assert_allclose((weight[:, None] * phi).mean(0) - target + 0.1 * theta, 0, atol=1e-7)


def test_blocks_add_up_to_the_whole():
    phi = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)).double()
    theta = torch.tensor([0.5, -1.0, 0.2]).double()

    whole = tilted_moments([phi], theta)
    parts = tilted_moments(phi.split(7), theta)

    for one, other in zip(whole, parts, strict=True):
        assert_allclose(one, other)


def test_large_coefficients_do_not_overflow():
    phi = torch.tensor([[1.0], [0.0], [-1.0]]).double()

    log_mean, mean, covariance = tilted_moments(phi.split(1), torch.tensor([-5_000.0]).double())

    assert_allclose(log_mean, 5_000 - np.log(3))
    assert_allclose(mean, [-1.0])
    assert_allclose(covariance, [[0.0]], atol=1e-12)


def test_a_strong_ridge_gives_equal_weights():
    pair = gaussian_pair(0, n=100, m=40)

    assert_allclose(giw.kliep(pair.train, pair.val, ridge=1e9), np.ones(100), atol=1e-6)
