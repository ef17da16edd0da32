"""The estimators keep scikit-learn's contract."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import giw

# scikit-learn 1.6 asks this of estimators, too, whose tags say that they take no sparse tables
SPARSE = {"check_sample_weight_equivalence_on_sparse_data": "sparse tables are refused"}


@pytest.mark.filterwarnings("ignore:no validation data:UserWarning")
@parametrize_with_checks(
    [
        giw.ReweightedClassifier(LogisticRegression(), random_state=0),
        giw.ReweightedRegressor(Ridge(), random_state=0),
    ],
    expected_failed_checks=lambda estimator: SPARSE,
)
def test_scikit_learns_checks_pass(estimator, check):
    """They fit without validation data, which warns each time."""
    check(estimator)


def blobs(n=90, m=18, seed=0):
    rng = np.random.default_rng(seed)
    label = np.array(["low", "high"])
    code, val_code = np.arange(n) % 2, np.arange(m) % 2
    X = rng.normal(size=(n, 2)) + 3 * code[:, None]
    Xv = rng.normal(size=(m, 2)) + 3 * val_code[:, None] + [[0.5, 0.0]]
    return X, label[code], Xv, label[val_code]


def test_reweighting_works_in_grid_search_and_cross_validation():
    X, y, Xv, yv = blobs()
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    search = GridSearchCV(clf, {"estimator__C": [0.1, 1.0]}, cv=2).fit(X, y, X_val=Xv, y_val=yv)
    assert search.best_estimator_.split_ is not None
    score = cross_val_score(clf, X, y, cv=3, params={"X_val": Xv, "y_val": yv})
    assert score.mean() > 0.8
