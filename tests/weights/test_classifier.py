import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from tests.cases.gaussian_pairs import gaussian_pair

import giw
from giw.weights.classifier import logistic_coefficients


@pytest.mark.parametrize("odds", [0.4, 1.0, 3.0])
def test_the_gradient_vanishes_at_the_solution(odds):
    rng = np.random.default_rng(0)
    train = torch.as_tensor(np.c_[np.ones(50), rng.normal(size=(50, 2))])
    val = torch.as_tensor(np.c_[np.ones(20), rng.normal(size=(20, 2)) + 0.5])
    share = torch.as_tensor(rng.dirichlet(np.ones(20)))

    theta = logistic_coefficients(
        lambda: [train[:20], train[20:]],
        50,
        val,
        share,
        ridge=0.1,
        odds=odds,
        start=torch.zeros(3).double(),
        tolerance=1e-18,
    )

    f_train, f_val = train @ theta, val @ theta
    gradient = (f_train.exp() / (1 + odds * f_train.exp())) @ train / 50
    gradient -= (share / (1 + odds * f_val.exp())) @ val
    penalty = torch.tensor([0.0, 0.1, 0.1]) / max(1.0, odds)
    assert_allclose(gradient + penalty * theta, 0, atol=1e-7)


def test_without_a_penalty_every_point_weighs_the_same():
    """Scores of the two samples balance: Σ_train P(val | x) φ = Σ_val P(train | x) φ."""
    pair = gaussian_pair(0, n=300, m=40, d=2)
    est = giw.ClassifierRatio("linear", ridge=1e-9).fit(pair.train, pair.val)

    def side(x, power):
        ratio = est.weigh(x) * est.scale_
        chance = 40 * ratio / (300 + 40 * ratio)
        return (chance if power else 1 - chance) @ np.c_[np.ones(len(x)), x]

    assert_allclose(side(pair.train, True), side(pair.val, False), atol=1e-3)


def test_soft_members_are_a_smaller_sample():
    """Half of the points with no weight at all: the odds are those of the other half."""
    pair = gaussian_pair(0, n=100, m=40, d=1)
    member = np.arange(40) % 2

    assert_allclose(
        giw.classifier_ratio(pair.train, pair.val, features="linear", ridge=0.1, val_weight=member),
        giw.classifier_ratio(pair.train, pair.val[1::2], features="linear", ridge=0.1),
        rtol=1e-6,
    )


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


def test_any_probabilistic_classifier_can_take_its_place():
    pair = gaussian_pair(0, n=400, m=200)

    weight = giw.classifier_ratio(pair.train, pair.val, classifier=LogisticRegression())

    assert pair.reduction(weight) > 0.5


def test_squares_are_chosen_where_the_spread_differs():
    rng = np.random.default_rng(0)

    est = giw.ClassifierRatio().fit(rng.normal(size=(500, 2)), 0.4 * rng.normal(size=(200, 2)))

    assert est.features_ in ("quadratic", "kernel")
    assert est.weigh([[0.0, 0.0]]) > 3 * est.weigh([[1.5, 1.5]])


def test_unknown_features_are_refused():
    with pytest.raises(ValueError, match="features must be one of"):
        giw.classifier_ratio([[0.0]], [[0.0]], features="cubic")
