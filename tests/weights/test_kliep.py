import numpy as np
from numpy.testing import assert_allclose
from tests.cases.gaussian_pairs import gaussian_pair

import giw
from giw.weights.kliep import log_linear_coefficients, tilted_moments


def test_indicator_features_give_the_ratio_of_frequencies():
    train = np.eye(3)[[0, 0, 1, 1, 1, 1, 2, 2]]  # p = 1/4, 1/2, 1/4
    target = np.array([0.25, 0.25, 0.5])  # q

    theta, log_mean = log_linear_coefficients(
        lambda: [train], target, ridge=1e-9, start=np.zeros(3), tolerance=1e-14
    )

    assert_allclose(np.exp(theta - log_mean), [1.0, 0.5, 2.0], rtol=1e-4)


def test_the_ratio_solves_the_documented_problem():
    """The weighted training mean of every function is its validation mean less the penalty."""
    pair = gaussian_pair(0, n=80, m=20, d=2)
    est = giw.KLIEP(bandwidth=1.0, ridge=0.1).fit(pair.train, pair.val)
    phi, phi_val = (est.model_.basis(est.units_(x)) for x in (pair.train, pair.val))

    assert_allclose(est.weight_ @ phi / 80, phi_val.mean(0) - 0.1 * est.model_.theta, atol=1e-4)


def test_blocks_add_up_to_the_whole():
    phi, theta = np.random.default_rng(0).normal(size=(30, 3)), np.array([0.5, -1.0, 0.2])

    parts = tilted_moments(np.split(phi, [7, 14, 21]), theta)

    for one, other in zip(tilted_moments([phi], theta), parts, strict=True):
        assert_allclose(one, other)


def test_large_coefficients_do_not_overflow():
    phi = np.array([[1.0], [0.0], [-1.0]])

    log_mean, mean, covariance = tilted_moments(phi[:, None], np.array([-5_000.0]))

    assert_allclose(log_mean, 5_000 - np.log(3))
    assert_allclose(mean, [-1.0])
    assert_allclose(covariance, [[0.0]], atol=1e-12)
