import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.cases.gaussian_pairs import gaussian_pair

import giw
from giw.weights.least_squares import (
    leave_one_out,
    nonnegative_coefficients,
    pearson_score,
)
from giw.weights.ratio import with_constant


def random_features(seed=0, n=12, m=7, b=4):
    rng = np.random.default_rng(seed)
    train, val = with_constant(rng.random((n, b))), with_constant(rng.random((m, b)))
    return train, val, rng.dirichlet(np.ones(m))


def solve(gram, target, ridge):
    """The normal equations as they are written."""
    penalty = np.full(len(target), ridge)
    penalty[0] = 0
    return np.linalg.solve(gram + np.diag(penalty), target)


def gaussians_around(centers, width, x):
    return np.exp(-((x - centers.T) ** 2) / (2 * width**2))


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_the_ratio_solves_the_documented_problem(eta):
    """Normal equations with Gaussian functions around the validation points and a free constant."""
    pair = gaussian_pair(0, n=60, m=15)
    phi, phi_val = (
        with_constant(gaussians_around(pair.val, 0.8, x)) for x in (pair.train, pair.val)
    )
    gram = (1 - eta) * phi.T @ phi / 60 + eta * phi_val.T @ phi_val / 15
    theta = solve(gram, phi_val.mean(0), 0.2)
    ratio = (phi @ theta).clip(0)

    weight = giw.rulsif(
        pair.train, pair.val, eta=eta, bandwidth=0.8, ridge=0.2, standardize=False, raw=True
    )

    assert_allclose(weight, ratio, atol=1e-9)


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_leave_one_out_is_what_refitting_without_the_point_says(eta):
    phi, val, share = random_features()
    n, ridge = len(phi), 0.05
    gram = (1 - eta) / n * phi.T @ phi + eta * (val * share[:, None]).T @ val
    target = share @ val

    train, held_val = leave_one_out(
        phi[:, 1:], val[:, 1:], share, ridges=np.array([ridge, 1.0]), eta=eta
    )

    for i in range(n):
        rest = gram - (1 - eta) / n * np.outer(phi[i], phi[i])
        assert_allclose(train[0, i], max(0.0, phi[i] @ solve(rest, target, ridge)), rtol=1e-6)
    for j in range(len(val)):
        rest = gram - eta * share[j] * np.outer(val[j], val[j])
        without = (target - share[j] * val[j]) / (1 - share[j])
        assert_allclose(held_val[0, j], max(0.0, val[j] @ solve(rest, without, ridge)), rtol=1e-6)


def test_the_true_relative_ratio_has_the_lowest_score():
    """On a finite set with p = (½, ½) and q = (¼, ¾): r = q / (½ p + ½ q) = (⅔, 6/5)."""
    share, true = np.array([0.25, 0.75]), np.array([2 / 3, 6 / 5])
    others = true + np.array([[0.1, 0.0], [0.0, -0.1], [0.3, -0.3]])

    best = pearson_score(true, true, share, eta=0.5)

    assert (pearson_score(others, others, share, eta=0.5) > best).all()
    plain = np.array([1 / 2, 3 / 2])  # is scored by its relative form
    assert_allclose(pearson_score(plain, plain, share, eta=0.0), best)


def test_an_eta_of_zero_is_the_plain_ratio():
    pair = gaussian_pair(0, n=100, m=40)

    relative = giw.rulsif(pair.train, pair.val, eta=0.0, bandwidth=1.0, ridge=0.1)

    assert_allclose(relative, giw.ulsif(pair.train, pair.val, bandwidth=1.0, ridge=0.1))


def test_an_eta_of_one_gives_equal_weights():
    pair = gaussian_pair(0, n=100, m=40)

    assert_allclose(giw.rulsif(pair.train, pair.val, eta=1.0), np.ones(100), atol=1e-6)


def test_the_raw_relative_ratio_is_bounded_and_proportional_to_the_weights():
    pair = gaussian_pair(0, n=400, m=200, shift=1.5)

    raw = giw.rulsif(pair.train, pair.val, eta=0.5, raw=True)
    weight = giw.rulsif(pair.train, pair.val, eta=0.5)

    assert raw.max() < 2.2  # 1 / eta, and a little for estimation
    assert raw.mean() < 0.95  # the mean is one under the mixture, not under training data
    assert_allclose(weight, raw / raw.mean())


def test_the_raw_relative_ratio_is_the_closed_form():
    pair = gaussian_pair(1, n=2_000, m=1_000)
    truth = pair.ratio / (0.5 * pair.ratio + 0.5)

    raw = giw.rulsif(pair.train, pair.val, eta=0.5, raw=True)

    assert np.mean((raw - truth) ** 2) < 0.1 * np.var(truth)


@pytest.mark.parametrize("eta", [-0.1, 1.1])
def test_an_impossible_eta_is_refused(eta):
    with pytest.raises(ValueError, match="eta must lie between 0 and 1"):
        giw.rulsif([[0.0]], [[0.0]], eta=eta)


@pytest.mark.parametrize("weights", [giw.ulsif, giw.lsif, giw.kliep])
def test_a_strong_ridge_gives_equal_weights(weights):
    pair = gaussian_pair(0, n=100, m=40)

    assert_allclose(weights(pair.train, pair.val, ridge=1e9), np.ones(100), atol=1e-6)


@pytest.mark.parametrize("estimator", [giw.ULSIF, giw.LSIF, giw.KLIEP])
def test_a_given_bandwidth_and_ridge_are_used(estimator):
    pair = gaussian_pair(0, n=100, m=40)

    est = estimator(bandwidth=0.7, ridge=0.2).fit(pair.train, pair.val)

    assert (est.bandwidth_, est.ridge_) == (0.7, 0.2)


@pytest.mark.parametrize("weights", [giw.ulsif, giw.lsif, giw.kliep])
def test_without_standardizing_the_bandwidth_has_the_units_of_the_features(weights):
    pair = gaussian_pair(0, n=100, m=40)

    small = weights(pair.train, pair.val, bandwidth=1.0, ridge=0.1, standardize=False)
    large = weights(30 * pair.train, 30 * pair.val, bandwidth=30.0, ridge=0.1, standardize=False)

    assert_allclose(small, large, rtol=1e-6)


# non-negative coefficients


def test_the_non_negative_ratio_solves_the_documented_problem():
    """The gradient vanishes where a coefficient is positive and pushes down where it is zero."""
    pair = gaussian_pair(0, n=60, m=15)
    est = giw.LSIF(bandwidth=0.8, ridge=0.05, standardize=False).fit(pair.train, pair.val)
    centers = est.model_.features.centers + est.units_.mean_
    phi, phi_val = (
        with_constant(gaussians_around(centers, 0.8, x)) for x in (pair.train, pair.val)
    )

    theta = est.model_.theta
    penalty = np.r_[0.0, np.full(len(centers), 0.05)]
    gradient = phi.T @ (phi @ theta) / 60 - phi_val.mean(0) + penalty * (1 + theta)
    assert (theta >= 0).all()
    assert (theta == 0).any()
    assert_allclose(gradient[theta > 0], 0, atol=1e-4)
    assert (gradient[theta == 0] >= -1e-4).all()


def test_indicator_features_give_the_shrunken_ratio_of_frequencies():
    """Orthogonal cells with shares p and q: θ = (q − λ) / (p + λ) where that is positive."""
    gram, target = np.diag([1e-9, 0.25, 0.5, 0.25]), np.array([0.0, 0.3, 0.68, 0.02])

    theta = nonnegative_coefficients(gram, target, ridge=0.05)

    assert_allclose(theta[1:], [0.25 / 0.3, 0.63 / 0.55, 0.0], atol=1e-6)


def test_the_non_negative_ratio_is_so_even_far_away():
    pair = gaussian_pair(0, n=100, m=40)

    est = giw.LSIF().fit(pair.train, pair.val)

    assert (est.weigh(np.linspace(-50, 50, 101)[:, None]) >= 0).all()
