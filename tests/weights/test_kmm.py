import sys

import numpy as np
import pytest
import torch
from benchmarks.loss_shapes import loss_shapes
from numpy.testing import assert_allclose
from tests.cases.mean_matching import minimum_by_cvxopt, objective

import giw
from giw.weights import EffectiveSampleSizeWarning
from giw.weights.basis import GaussianBasis
from giw.weights.kernels import gaussian_kernel, paper_gamma, scale_free_gamma

kmm_module = sys.modules["giw.weights.kmm"]  # the function of that name hides it
MatchedRatio = kmm_module.MatchedRatio


def two_samples(seed=0, n=60, m=15, d=2, shift=0.7):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)) + shift


@pytest.mark.parametrize("rule", ["paper", "median"])
def test_the_problem_is_the_papers(rule):
    """Same minimum as an independent solver on kernel and κ written out by their definition."""
    train, val = two_samples()
    member = np.linspace(0.1, 1, 15)
    gamma = {"paper": paper_gamma, "median": scale_free_gamma}[rule](train)
    kernel = gaussian_kernel(train, train, gamma=gamma)
    kappa = 60 * gaussian_kernel(train, val, gamma=gamma) @ member / member.sum()
    raw = minimum_by_cvxopt(kernel, kappa, ridge=0.1, upper=3.0)

    w = giw.kmm(train, val, bandwidth=rule, ridge=0.1, upper=3.0, val_weight=member, tolerance=1e-9)

    assert_allclose(w, raw / raw.mean(), atol=1e-3)


def test_a_tiny_ridge_reaches_the_minimum_even_if_not_the_same_weights():
    train, val = loss_shapes()["same"]
    gamma = paper_gamma(train)
    kernel = gaussian_kernel(train, train, gamma=gamma)
    kappa = len(train) * gaussian_kernel(train, val, gamma=gamma).mean(1)
    lowest = objective(
        minimum_by_cvxopt(kernel, kappa, ridge=1e-5, upper=50.0), kernel, kappa, ridge=1e-5
    )

    w = giw.kmm(train, val, bandwidth="paper", ridge=1e-5, upper=50.0)

    # here the sum is free to be n, so that rescaling costs nothing
    assert objective(w, kernel, kappa, ridge=1e-5) - lowest <= 1e-5 * abs(lowest)


def test_a_batch_is_each_problem_alone():
    pairs = [two_samples(seed) for seed in range(3)]
    train, val = (np.stack(part) for part in zip(*pairs, strict=True))

    together = giw.kmm(train, val, ridge=1.0, tolerance=1e-9)

    for (x, y), w in zip(pairs, together, strict=True):
        assert_allclose(w, giw.kmm(x, y, ridge=1.0, tolerance=1e-9), atol=1e-3)


def test_torch_and_numpy_agree():
    train, val = two_samples()

    w = giw.kmm(torch.as_tensor(train), torch.as_tensor(val), ridge=1.0)

    assert isinstance(w, torch.Tensor)
    assert_allclose(w.numpy(), giw.kmm(train, val, ridge=1.0))


def test_gamma_and_bandwidth_name_the_same_kernel():
    train, val = two_samples()

    assert_allclose(
        giw.kmm(train, val, bandwidth=2.0, ridge=1.0), giw.kmm(train, val, gamma=1 / 8, ridge=1.0)
    )


def test_a_point_with_no_membership_counts_for_nothing():
    train, val = two_samples()

    w = giw.kmm(train, val, val_weight=np.arange(15) < 10, ridge=1.0)

    assert_allclose(w, giw.kmm(train, val[:10], ridge=1.0), atol=1e-6)


@pytest.mark.parametrize("ridge", ["auto", 1e-5])
def test_one_training_point_weighs_one(ridge):
    assert_allclose(giw.kmm([[3.0]], [[5.0], [6.0]], ridge=ridge), [1.0])


def test_constant_features_give_weights_of_one():
    assert_allclose(giw.kmm(np.ones((6, 2)), np.zeros((3, 2)), ridge=1e-5), np.ones(6), atol=1e-6)


def test_nothing_inside_is_refused():
    with pytest.raises(ValueError, match="val_weight is zero for every validation point"):
        giw.kmm([[0.0], [1.0]], [[0.0]], val_weight=[0.0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bandwidth": "silverman"}, "bandwidth must be one of"),
        ({"bandwidth": -1.0}, "bandwidth must be positive"),
        ({"gamma": 0.0}, "gamma must be positive"),
        ({"ridge": -1e-5}, "ridge must be positive"),
        ({"upper": 0.5}, "upper must be at least one"),
    ],
)
def test_impossible_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        giw.kmm(*two_samples(), **parameters)


@pytest.mark.parametrize("most_small", [0, 1_000])
def test_validation_points_out_of_reach_warn_of_few_effective_points(monkeypatch, most_small):
    monkeypatch.setattr(kmm_module, "MOST_SMALL", most_small)
    rng = np.random.default_rng(0)
    with pytest.warns(EffectiveSampleSizeWarning, match="kmm: the effective sample size"):
        w = giw.kmm(rng.normal(size=200), rng.normal(size=5) + 30, ridge=1e-5)

    assert np.isfinite(w).all()
    assert_allclose(w.mean(), 1.0)


def test_the_estimator_holds_the_weights_of_the_function():
    train, val = two_samples()

    est = giw.KMM(ridge=1.0).fit(train, val)

    assert_allclose(est.weight_, giw.kmm(train, val, ridge=1.0))
    assert est.weigh(train[:4]).shape == (4,)
    assert (est.weigh(val) > 0).all()


@pytest.mark.filterwarnings("ignore::giw.weights.EffectiveSampleSizeWarning")
def test_the_solver_for_few_points_agrees_with_the_general_one(monkeypatch):
    train, val = loss_shapes()["larger"]
    small = giw.kmm(train, val, ridge=0.1, tolerance=1e-9)
    monkeypatch.setattr(kmm_module, "MOST_SMALL", 0)

    assert_allclose(giw.kmm(train, val, ridge=0.1, tolerance=1e-9), small, atol=1e-3)


def test_the_approximate_kernel_for_many_points_agrees_with_the_exact_one(monkeypatch):
    train, val = two_samples(n=300, m=40, d=1)
    monkeypatch.setattr(kmm_module, "MOST_SMALL", 0)
    exact = giw.kmm(train, val, ridge=1.0)
    monkeypatch.setattr(kmm_module, "MOST_DENSE", 0)

    assert_allclose(giw.kmm(train, val, ridge=1.0), exact, atol=1e-2)


def test_a_default_batch_is_each_problem_alone():
    pairs = [two_samples(seed) for seed in range(2)]
    train, val = (np.stack(part) for part in zip(*pairs, strict=True))

    together = giw.kmm(train, val)

    assert together.shape == (2, 60)
    assert_allclose(together[1], giw.kmm(*pairs[1]))


def test_the_default_satisfies_the_optimality_conditions():
    """Weights strictly between the bounds are 1 + φᵀθ, which is what new points get."""
    train, val = two_samples(n=200, m=60, shift=1.5)
    est = giw.KMM().fit(train, val)

    ratio = est.weight_ * est.scale_

    assert (ratio == 0).any()  # some bounds are active
    assert_allclose(est.weigh(train), est.weight_, atol=1e-8)
    assert abs(est.model_.price) < 1e-3


def test_a_given_width_asks_for_features_in_their_own_units():
    train, val = two_samples()

    est = giw.KMM(bandwidth=1.7).fit(train, val)

    assert est.bandwidth_ == pytest.approx(1.7)
    assert (est.units_.scale == 1).all()


@pytest.mark.parametrize("ridge", ["auto", 1e-5])
def test_an_upper_bound_of_one_leaves_equal_weights(ridge):
    assert_allclose(giw.kmm(*two_samples(), ridge=ridge, upper=1.0), np.ones(60))


@pytest.mark.filterwarnings("ignore::giw.weights.EffectiveSampleSizeWarning")
def test_a_kernel_that_few_columns_do_not_span_is_solved_in_full():
    """So narrow a kernel knows only equal points: w = min(u, κ / (1 + ρ)), before rescaling."""
    train = np.arange(200.0)
    counts = np.zeros(200)
    counts[[3, 70, 199]] = [1, 2, 1]
    val = np.repeat(train, counts.astype(int))
    raw = (200 * counts / 4 / 1.5).clip(max=40)  # the sum, 106.7, is within its bounds

    w = giw.kmm(train, val, gamma=1e4, ridge=0.5, upper=40.0, tolerance=1e-10)

    assert_allclose(w, raw / raw.mean(), rtol=1e-3, atol=1e-3)


def test_new_points_follow_the_weights_of_their_neighbours():
    """With a given ridge: Σ k(x, x_i) w_i / Σ k(x, x_i)."""
    train, val = two_samples()
    est = giw.KMM(gamma=0.7, ridge=1.0).fit(train, val)
    kernel = gaussian_kernel(val, train, gamma=0.7)

    assert_allclose(est.weigh(val), kernel @ est.weight_ / kernel.sum(1), rtol=1e-6)


def test_new_points_keep_to_the_upper_bound():
    train, val = two_samples(n=200, m=60, shift=1.5)

    est = giw.KMM(upper=2.0).fit(train, val)

    assert (est.weigh(np.r_[train, val]) * est.scale_).max() == pytest.approx(2.0)


def test_small_differences_far_from_the_origin_are_seen():
    train, val = two_samples()

    far = giw.kmm(1e6 + 1e-3 * train, 1e6 + 1e-3 * val, bandwidth="median", ridge=1.0)

    assert_allclose(far, giw.kmm(train, val, bandwidth="median", ridge=1.0), atol=1e-3)


def test_the_price_of_the_sum_is_taken_off():
    basis = GaussianBasis(torch.zeros(1, 1).double(), 1.0)
    x = torch.zeros(1, 1).double()

    def ratio(theta, price):
        return float(MatchedRatio(basis, torch.tensor([theta]).double(), price, 2.0)(x))

    assert ratio(0.5, 0.2) == pytest.approx(1.3)
    assert ratio(5.0, 0.2) == 2.0
    assert ratio(-5.0, 0.2) == 0.0
