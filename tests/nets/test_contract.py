"""Nets keep scikit-learn's contract."""

import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.estimators.test_contract import blobs

import giw

IN_BATCHES = {
    "check_sample_weight_equivalence_on_dense_data": "batches draw rows in proportion to weights: "
    "a row twice and a row of weight two agree on average, and not batch by batch"
}
NETS = giw.GIWClassifier(
    max_epochs=12, pretrain_epochs=4, learning_rate=0.03, batch_size=32, random_state=0
)


@pytest.mark.filterwarnings("ignore:no validation data:UserWarning")
@parametrize_with_checks(
    [
        NETS,
    ],
    expected_failed_checks=lambda estimator: IN_BATCHES,
)
def test_scikit_learns_checks_pass(estimator, check):
    """They fit without validation data, which warns each time."""
    check(estimator)


def quick():
    return giw.GIWClassifier(
        max_epochs=5, pretrain_epochs=2, learning_rate=0.05, batch_size=16, random_state=0
    )


def test_a_net_works_in_a_pipeline_with_validation_data_for_its_last_step():
    X, y, Xv, yv = blobs()
    scale = StandardScaler().fit(X)
    pipeline = make_pipeline(StandardScaler(), quick())
    pipeline.fit(X, y, giwclassifier__X_val=scale.transform(Xv), giwclassifier__y_val=yv)
    assert pipeline.score(Xv, yv) > 0.8


def test_a_net_works_in_grid_search_and_cross_validation():
    X, y, Xv, yv = blobs()
    search = GridSearchCV(quick(), {"max_epochs": [2, 5]}, cv=2).fit(X, y, X_val=Xv, y_val=yv)
    assert search.best_params_["max_epochs"] in (2, 5)
    score = cross_val_score(quick(), X, y, cv=3, params={"X_val": Xv, "y_val": yv})
    assert score.mean() > 0.8


def test_a_net_remembers_the_names_of_columns():
    X, y, Xv, yv = blobs()
    frame, val_frame = (pd.DataFrame(v, columns=["a", "b"]) for v in (X, Xv))
    clf = quick().fit(frame, pd.Series(y), X_val=val_frame, y_val=pd.Series(yv))
    assert clf.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(val_frame.rename(columns={"b": "c"}))
