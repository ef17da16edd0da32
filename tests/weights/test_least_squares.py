import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from tests.cases.gaussian_pairs import gaussian_pair

import giw
from giw.weights.least_squares import (
    leave_one_out,
    pearson_score,
    ratio_coefficients,
    with_constant,
)


def random_features(seed=0, n=12, m=7, b=4):
    rng = np.random.default_rng(seed)
    return (
        with_constant(torch.as_tensor(rng.random((n, b)))),
        with_constant(torch.as_tensor(rng.random((m, b)))),
        torch.as_tensor(rng.dirichlet(np.ones(m))),
    )


def solve(gram, target, ridge):
    """The normal equations as they are written."""
    penalty = torch.full_like(target, ridge)
    penalty[0] = 0
    return torch.linalg.solve(gram + torch.diag(penalty), target)


def test_indicator_features_give_the_ratio_of_frequencies():
    """Two of three cells as features beside the constant: exact without a ridge."""
    train = torch.eye(3).double()[[0, 0, 1, 1, 1, 1, 2, 2]][:, :2]  # p = 1/4, 1/2, 1/4
    val = torch.eye(3).double()[[0, 1, 2, 2]][:, :2]  # q = 1/4, 1/4, 1/2
    phi = with_constant(train)

    theta = ratio_coefficients(phi.T @ phi / 8, with_constant(val).mean(0), ridge=0.0)

    assert_allclose(with_constant(torch.eye(3).double()[:, :2]) @ theta, [1.0, 0.5, 2.0])


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
def test_eliminating_the_constant_solves_the_normal_equations(ridge):
    phi, val, share = random_features()
    gram, target = phi.T @ phi / len(phi), share @ val

    theta = ratio_coefficients(gram, target, ridge=ridge)

    torch.testing.assert_close(theta, solve(gram, target, ridge))


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_leave_one_out_is_what_refitting_without_the_point_says(eta):
    phi, val, share = random_features()
    n, ridge = len(phi), 0.05
    gram = (1 - eta) / n * phi.T @ phi + eta * (val * share[:, None]).T @ val
    target = share @ val

    train, held_val = leave_one_out(phi, val, share, ridges=torch.tensor([ridge, 1.0]), eta=eta)

    for i in range(n):
        rest = gram - (1 - eta) / n * torch.outer(phi[i], phi[i])
        assert_allclose(train[0, i], max(0.0, phi[i] @ solve(rest, target, ridge)), rtol=1e-6)
    for j in range(len(val)):
        rest = gram - eta * share[j] * torch.outer(val[j], val[j])
        without = (target - share[j] * val[j]) / (1 - share[j])
        assert_allclose(held_val[0, j], max(0.0, val[j] @ solve(rest, without, ridge)), rtol=1e-6)


def test_the_true_ratio_has_the_lowest_score():
    """On a finite set with p = (½, ½) and q = (¼, ¾) the ratio is (½, 3/2)."""
    share = torch.tensor([0.25, 0.75])
    true = torch.tensor([0.5, 1.5])
    others = true + torch.tensor([[0.1, 0.0], [0.0, -0.1], [0.5, -0.5]])

    best = pearson_score(true, true, share, eta=0.0)

    assert (pearson_score(others, others, share, eta=0.0) > best).all()


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


def test_a_strong_ridge_gives_equal_weights():
    pair = gaussian_pair(0, n=100, m=40)

    assert_allclose(giw.ulsif(pair.train, pair.val, ridge=1e9), np.ones(100), atol=1e-6)


def test_a_given_bandwidth_and_ridge_are_used():
    pair = gaussian_pair(0, n=100, m=40)

    est = giw.ULSIF(bandwidth=0.7, ridge=0.2).fit(pair.train, pair.val)

    assert (est.bandwidth_, est.ridge_) == (0.7, 0.2)


def test_without_standardizing_the_bandwidth_has_the_units_of_the_features():
    pair = gaussian_pair(0, n=100, m=40)

    small = giw.ulsif(pair.train, pair.val, bandwidth=1.0, ridge=0.1, standardize=False)
    large = giw.ulsif(30 * pair.train, 30 * pair.val, bandwidth=30.0, ridge=0.1, standardize=False)

    assert_allclose(small, large, rtol=1e-6)
