"""scikit-learn detectors as scorers."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import LocalOutlierFactor

from giw.support.scorers import KNN, OSVM, Detector, Scorer, as_scorer


def test_it_is_minus_score_samples_of_a_clone():
    rng = np.random.default_rng(0)
    train, val = rng.normal(size=(60, 3)), rng.normal(size=(5, 3))
    forest = IsolationForest(n_estimators=10, random_state=0)

    score = as_scorer(forest).fit(torch.from_numpy(train)).score(torch.from_numpy(val))

    expected = IsolationForest(n_estimators=10, random_state=0).fit(train).score_samples(val)
    np.testing.assert_allclose(score.numpy(), -expected)
    assert not hasattr(forest, "estimators_")


def test_names_objects_and_detectors_become_scorers():
    assert as_scorer("knn") == KNN()
    assert as_scorer("osvm") == OSVM()
    assert as_scorer(KNN(k=3)) == KNN(k=3)
    assert isinstance(as_scorer(LocalOutlierFactor(novelty=True)), Detector)
    assert isinstance(KNN(), Scorer)


@pytest.mark.parametrize(
    ("bad", "way_out"),
    [
        ("svm", "choose from"),
        (KNN, r"KNN\(\)"),
        (LinearRegression(), "score_samples"),
        (LocalOutlierFactor(), "novelty=True"),
        (None, "score_samples"),
    ],
)
def test_anything_else_is_refused_with_a_way_out(bad, way_out):
    with pytest.raises(ValueError, match=way_out):
        as_scorer(bad)


def test_unfitted_is_said():
    with pytest.raises(ValueError, match="call fit"):
        as_scorer(IsolationForest()).score(torch.zeros(1, 2))
