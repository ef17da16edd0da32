"""Log-linear ratios: KLIEP and the classifier."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from tests.cases.gaussian_pairs import gaussian_pair

import giw
from giw.weights.log_linear import VANISHING, logistic_coefficients
from giw.weights.ratio import with_constant


@pytest.mark.parametrize("odds", [0.4, 1.0, 3.0])
def test_the_gradient_vanishes_at_the_solution(odds):
    rng = np.random.default_rng(0)
    train = np.c_[np.ones(50), rng.normal(size=(50, 2))]
    val = np.c_[np.ones(20), rng.normal(size=(20, 2)) + 0.5]
    share = rng.dirichlet(np.ones(20))

    theta = logistic_coefficients(train, val, share, ridge=0.1, odds=odds, tolerance=1e-18)

    f_train, f_val = train @ theta, val @ theta
    gradient = (np.exp(f_train) / (1 + odds * np.exp(f_train))) @ train / 50
    gradient -= (share / (1 + odds * np.exp(f_val))) @ val
    penalty = np.array([0.0, 0.1, 0.1]) / max(1.0, odds)
    assert_allclose(gradient + penalty * theta, 0, atol=1e-7)


def test_newton_steps_that_go_too_far_are_shortened():
    """Small odds and samples far apart: the loss is nearly exponential, a full step overshoots."""
    rng = np.random.default_rng(0)
    train = np.c_[np.ones(200), rng.normal(size=200)]
    val = np.c_[np.ones(5), rng.normal(size=5) + 12]
    share = np.full(5, 0.2)

    theta = logistic_coefficients(train, val, share, ridge=0.01, odds=0.001)

    f_train, f_val = train @ theta, val @ theta
    gradient = (np.exp(f_train) / (1 + 0.001 * np.exp(f_train))) @ train / 200
    gradient -= (share / (1 + 0.001 * np.exp(f_val))) @ val
    assert_allclose(gradient + np.array([0.0, 0.01]) * theta, 0, atol=1e-4)


@pytest.mark.parametrize("n", [300, 1_500])
def test_without_a_penalty_every_point_weighs_the_same(n):
    """Scores of the two samples balance: Σ_train P(val | x) φ = Σ_val P(train | x) φ."""
    pair = gaussian_pair(0, n=n, m=40, d=2)
    est = giw.ClassifierRatio("linear", ridge=1e-9).fit(pair.train, pair.val)

    def side(x, power):
        ratio = est.weigh(x) * est.scale_
        chance = 40 * ratio / (n + 40 * ratio)
        return (chance if power else 1 - chance) @ np.c_[np.ones(len(x)), x]

    assert_allclose(side(pair.train, True), side(pair.val, False), atol=1e-3)


@pytest.mark.parametrize("n_val", [20, 200])
def test_a_linear_truth_gets_linear_features(n_val):
    """Among random splits a richer set clearly wins by chance in few cases, not in half of them."""
    chosen = [
        giw.ClassifierRatio().fit(pair.train, pair.val).features_
        for pair in (gaussian_pair(seed, n=300, m=n_val, d=1) for seed in range(10))
    ]

    assert chosen.count("linear") >= 8


@pytest.mark.parametrize("balanced", [False, True])
def test_linear_odds_are_those_of_scikit_learn(balanced):
    pair = gaussian_pair(0, n=200, m=100, d=2)
    ours = giw.classifier_ratio(
        pair.train,
        pair.val,
        features="linear",
        ridge=0.01,
        standardize=False,
        balanced=balanced,
    )
    x, y = np.r_[pair.train, pair.val], np.r_[np.zeros(200), np.ones(100)]
    each = np.r_[np.full(200, 1 / 200 if balanced else 1 / 100), np.full(100, 1 / 100)]

    theirs = LogisticRegression(C=1 / 0.01, tol=1e-10).fit(x, y, sample_weight=each)

    odds = np.exp(theirs.decision_function(pair.train))
    assert_allclose(ours, odds / odds.mean(), rtol=1e-3)


def test_squares_are_chosen_where_the_spread_differs():
    rng = np.random.default_rng(0)

    est = giw.ClassifierRatio().fit(rng.normal(size=(500, 2)), 0.4 * rng.normal(size=(200, 2)))

    assert est.features_ in ("quadratic", "kernel")
    assert est.weigh([[0.0, 0.0]]) > 3 * est.weigh([[1.5, 1.5]])


def test_unknown_features_are_refused():
    with pytest.raises(ValueError, match="features must be one of"):
        giw.classifier_ratio([[0.0]], [[0.0]], features="cubic")


@pytest.mark.parametrize(("d", "chosen"), [(50, "quadratic"), (51, "kernel"), (301, "kernel")])
def test_many_features_leave_the_richer_sets_out(d, chosen):
    """Wherever the spread differs squares would win, if they were tried."""
    rng = np.random.default_rng(0)

    est = giw.ClassifierRatio().fit(rng.normal(size=(300, d)), 0.3 * rng.normal(size=(300, d)))

    assert est.features_ == chosen


def test_members_of_hardly_any_weight_are_hardly_points():
    pair = gaussian_pair(0, n=100, m=40, d=1)
    member = np.where(np.arange(40) % 2, 1.0, 1e-6)

    assert_allclose(
        giw.classifier_ratio(pair.train, pair.val, features="linear", ridge=0.1, val_weight=member),
        giw.classifier_ratio(pair.train, pair.val[1::2], features="linear", ridge=0.1),
        rtol=1e-3,
    )


def test_two_validation_points_take_the_strongest_penalty():
    pair = gaussian_pair(0, n=100, m=2, d=1)

    est = giw.ClassifierRatio().fit(pair.train, pair.val)

    assert (est.features_, est.ridge_) == ("linear", 10.0)


def test_indicator_features_give_the_ratio_of_frequencies():
    cells = with_constant(np.eye(3))
    train = cells[[0, 0, 1, 1, 1, 1, 2, 2]]  # p = 1/4, 1/2, 1/4
    share = np.array([0.25, 0.25, 0.5])  # q

    theta = logistic_coefficients(train, cells, share, ridge=1e-9, odds=VANISHING, tolerance=1e-14)

    assert_allclose(np.exp(cells @ theta), [1.0, 0.5, 2.0], rtol=1e-4)


def test_the_ratio_solves_the_documented_problem():
    """The weighted training mean of every function is its validation mean less the penalty."""
    pair = gaussian_pair(0, n=80, m=20, d=2)
    est = giw.KLIEP(bandwidth=1.0, ridge=0.1).fit(pair.train, pair.val)
    phi, phi_val = (est.model_.features(est.units_.transform(x)) for x in (pair.train, pair.val))

    assert_allclose(est.weight_ @ phi / 80, phi_val.mean(0) - 0.1 * est.model_.theta[1:], atol=1e-4)


def test_any_probabilistic_classifier_can_take_its_place():
    pair = gaussian_pair(0, n=400, m=200)

    weight = giw.classifier_ratio(pair.train, pair.val, classifier=LogisticRegression(C=1e6))

    # both samples weigh the same, so that these are the odds without a penalty
    expected = giw.classifier_ratio(
        pair.train, pair.val, features="linear", ridge=1e-9, standardize=False, balanced=True
    )
    assert_allclose(weight, expected, rtol=1e-3)
