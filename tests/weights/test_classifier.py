import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from tests.cases.gaussian_pairs import gaussian_pair

import giw
from giw.weights.classifier import logistic_coefficients


def test_the_gradient_vanishes_at_the_solution():
    rng = np.random.default_rng(0)
    train = torch.as_tensor(np.c_[np.ones(50), rng.normal(size=(50, 2))])
    val = torch.as_tensor(np.c_[np.ones(20), rng.normal(size=(20, 2)) + 0.5])
    share = torch.as_tensor(rng.dirichlet(np.ones(20)))

    theta = logistic_coefficients(
        lambda: [train], 50, val, share, ridge=0.1, start=torch.zeros(3).double(), tolerance=1e-18
    )

    gradient = torch.sigmoid(train @ theta) @ train / 50
    gradient -= (share * torch.sigmoid(-(val @ theta))) @ val
    assert_allclose(gradient + torch.tensor([0.0, 0.1, 0.1]) * theta, 0, atol=1e-7)


def test_linear_odds_are_those_of_scikit_learn():
    pair = gaussian_pair(0, n=200, m=100, d=2)
    ours = giw.classifier_ratio(
        pair.train, pair.val, features="linear", ridge=0.01, standardize=False
    )
    x, y = np.r_[pair.train, pair.val], np.r_[np.zeros(200), np.ones(100)]
    balance = np.r_[np.full(200, 1 / 200), np.full(100, 1 / 100)]

    theirs = LogisticRegression(C=1 / 0.01, tol=1e-10).fit(x, y, sample_weight=balance)

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
