import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.cases.mean_matching import gaussian_kernel, minimum_by_cvxopt

import giw
from giw.weights import EffectiveSampleSizeWarning
from giw.weights.ratio import GaussianBasis
from giw.weights.samples import Samples, median_distance


def two_samples(seed=0, n=60, m=15, d=2, shift=0.7):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)) + shift


@pytest.mark.parametrize("rule", ["paper", "median"])
def test_the_problem_is_the_papers(rule):
    """Same minimum as an independent solver on kernel and κ written out by their definition."""
    train, val = two_samples()
    member = np.linspace(0.1, 1, 15)
    median = median_distance(train)
    gamma = {"paper": median, "median": 0.5 / median**2}[rule]
    kernel = gaussian_kernel(train, train, gamma=gamma)
    kappa = 60 * gaussian_kernel(train, val, gamma=gamma) @ member / member.sum()
    raw = minimum_by_cvxopt(kernel, kappa, ridge=0.1, upper=3.0)

    w = giw.kmm(train, val, bandwidth=rule, ridge=0.1, upper=3.0, val_weight=member)

    assert_allclose(w, raw / raw.mean(), atol=1e-3)


def samples(kind, n):
    """Losses or features whose validation points lie partly beyond training."""
    rng = np.random.default_rng(n)
    if kind == "features":
        return rng.normal(size=(n, 5)), rng.normal(size=(20, 5)) + 0.5
    easy = rng.random(n) < 0.6
    losses = {
        "same": (rng.exponential(1, n), rng.exponential(1, 20)),
        "two modes": (
            np.where(easy, rng.exponential(0.05, n), rng.normal(3, 0.7, n)),
            rng.exponential(0.1, 20),
        ),
        "tiny": (rng.exponential(1e-3, n), rng.exponential(2e-3, 20)),
        "larger": (rng.exponential(0.5, n), 1 + rng.exponential(1.5, 20)),
    }
    train, val = losses[kind]
    return train[:, None], val[:, None]


@pytest.mark.filterwarnings("ignore::giw.weights.EffectiveSampleSizeWarning")
@pytest.mark.parametrize("n", [64, 256, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ridge", [1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("rule", ["paper", "median", "narrow", "wide"])
@pytest.mark.parametrize("kind", ["same", "two modes", "tiny", "larger", "features"])
def test_the_weights_are_those_of_an_independent_solver(kind, rule, ridge, n):
    """Not only the objective: with a tiny ridge it hardly feels most directions of the weights."""
    train, val = samples(kind, n)
    median = 0.5 / median_distance(train) ** 2
    gamma = {
        "paper": median_distance(train),
        "median": median,
        "narrow": 100 * median,
        "wide": 0.01 * median,
    }[rule]
    kernel = gaussian_kernel(train, train, gamma=gamma)
    kappa = n * gaussian_kernel(train, val, gamma=gamma).mean(1)
    exact = minimum_by_cvxopt(kernel, kappa, ridge=ridge, upper=50.0, tolerance=1e-12)
    exact = exact / exact.mean()

    w = giw.kmm(train, val, gamma=gamma, ridge=ridge, upper=50.0)

    if exact.std() > 0.01:
        assert np.corrcoef(w, exact)[0, 1] >= 0.999
    else:
        assert_allclose(w, exact, atol=1e-3)


def test_weights_of_losses_are_solved_for_beyond_the_points_whose_kernel_is_held_in_full():
    """Every training point twice is the same problem, its weights twice over."""
    train, val = samples("two modes", 1_500)
    once = giw.kmm(train, val, gamma=0.5, ridge=1e-3)

    twice = giw.kmm(np.r_[train, train], val, gamma=0.5, ridge=2e-3)

    assert np.corrcoef(twice, np.r_[once, once])[0, 1] > 0.999
    assert_allclose(twice, np.r_[once, once], atol=0.02)


def test_gamma_and_bandwidth_name_the_same_kernel():
    train, val = two_samples()

    assert_allclose(
        giw.kmm(train, val, bandwidth=2.0, ridge=1.0), giw.kmm(train, val, gamma=1 / 8, ridge=1.0)
    )


def test_constant_features_give_weights_of_one():
    assert_allclose(giw.kmm(np.ones((6, 2)), np.zeros((3, 2)), ridge=1e-5), np.ones(6), atol=1e-6)


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


def test_validation_points_out_of_reach_warn_of_few_effective_points():
    rng = np.random.default_rng(0)
    with pytest.warns(EffectiveSampleSizeWarning, match="KMM: the effective sample size"):
        w = giw.kmm(rng.normal(size=200), rng.normal(size=5) + 30, ridge=1e-5)

    assert np.isfinite(w).all()
    assert_allclose(w.mean(), 1.0)


def test_the_default_satisfies_the_optimality_conditions():
    """Weights strictly between the bounds are 1 + φᵀθ, which is what new points get."""
    train, val = two_samples(n=200, m=60, shift=1.5)
    est = giw.KMM().fit(train, val)

    ratio = est.weight_ * est.scale_

    assert (ratio == 0).any()  # some bounds are active
    assert_allclose(est.weigh(train), est.weight_, atol=1e-8)


def test_a_given_width_asks_for_features_in_their_own_units():
    train, val = two_samples()

    est = giw.KMM(bandwidth=1.7).fit(train, val)

    assert est.bandwidth_ == pytest.approx(1.7)
    assert est.units_.scale_ is None


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

    w = giw.kmm(train, val, gamma=1e4, ridge=0.5, upper=40.0, tolerance=1e-6)

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


@pytest.mark.parametrize("settings", [{}, {"ridge": 1.0}])
def test_a_batch_is_each_problem_alone(settings):
    pairs = [two_samples(seed) for seed in range(3)]
    train, val = (np.stack(part) for part in zip(*pairs, strict=True))

    together = giw.kmm(train, val, **settings)

    for pair, w in zip(pairs, together, strict=True):
        assert_allclose(w, giw.kmm(*pair, **settings), atol=1e-9)


def test_with_a_given_ridge_the_estimator_is_the_function_on_features_in_their_own_units():
    train, val = (part * [1, 10] for part in two_samples())

    est = giw.KMM(bandwidth="median", ridge=1.0).fit(train, val)

    assert_allclose(est.weight_, giw.kmm(train, val, bandwidth="median", ridge=1.0), rtol=1e-6)
    assert (est.weigh(val) > 0).all()


def test_the_price_of_a_sum_at_its_bound_is_the_same_for_every_point():
    """Far apart, κ = (0.4, 0, 0, 0): w = (κ + ρ + λ) / (1 + ρ), and the sum is √n = 2."""
    train, val = np.array([[0.0], [10.0], [20.0], [30.0]]), np.repeat([[0.0], [15.0]], [1, 9], 0)
    samples = Samples.of(train, val, None, False)
    est = giw.KMM(tolerance=1e-6)
    est.ridge_ = 0.01 / 4  # a share of n

    basis = GaussianBasis.whitened(samples.train, 1.0)
    w = est._fit_chosen(basis, samples)(samples.train)

    price = (2 * 1.01 - 0.44) / 4
    raw = np.array([0.41, 0.01, 0.01, 0.01]) + price
    assert_allclose(w, raw / 1.01, atol=1e-4)
