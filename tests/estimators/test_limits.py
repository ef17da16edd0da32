"""Prediction sets and rows outside, through the doors of fitted estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import giw
from giw.estimators.limits import class_sets, conformal_quantile, intervals


def test_the_quantile_is_the_score_that_one_more_row_does_not_exceed():
    score = np.array([0.4, 0.1, 0.3, 0.2])  # five rows with the new one: ranks of 20 % each
    assert conformal_quantile(score, 0.2) == 0.1
    assert conformal_quantile(score, 0.6) == 0.3
    assert conformal_quantile(score, 0.61) == 0.4
    assert conformal_quantile(score, 0.8) == 0.4
    assert conformal_quantile(score, 0.81) == np.inf


def test_sets_of_classes_by_hand():
    left = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    y = np.array([0, 0, 1, 0])  # scores 0.1, 0.2, 0.3, 0.6
    new = np.array([[0.75, 0.25], [0.5, 0.5], [0.65, 0.35]])
    made = class_sets(new, left, y, 0.6)  # all of at most 0.3, and the likeliest
    np.testing.assert_array_equal(made, [[True, False], [True, False], [True, False]])
    made = class_sets(new, left, y, 0.8)  # all of at most 0.6
    np.testing.assert_array_equal(made, [[True, False], [True, True], [True, False]])
    assert class_sets(new, left, y, 0.9).all()


def test_intervals_by_hand():
    left, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.5, 2.0, 2.0, 4.25])
    np.testing.assert_array_equal(intervals(np.array([10.0]), left, y, 0.6), [[9.5, 10.5]])
    assert np.isinf(intervals(np.array([10.0]), left, y, 0.95)).all()


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)

    def side(rows, shift):
        x = rng.normal(size=(rows, 2)) + np.array([shift, 0])
        return x, x[:, 1] + 0.8 * rng.normal(size=rows) > 0

    return side(400, 0.0), side(100, 2.0), side(2_000, 2.0)


def test_sets_cover_at_their_level_where_validation_is_from(tables):
    (X, y), (X_val, y_val), (X_new, y_new) = tables
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    clf.fit(X, y, X_val=X_val, y_val=y_val)
    sets = clf.predict_set(X_new, level=0.9)
    assert sets.shape == (2_000, 2)
    assert sets.any(axis=1).all()
    assert 0.85 < sets[np.arange(2_000), y_new.astype(int)].mean() < 0.95
    narrow = clf.predict_set(X_new, level=0.8)
    assert (narrow <= sets).all()
    assert narrow.sum() < sets.sum()


def test_intervals_cover_at_their_level(tables):
    (X, _), (X_val, _), (X_new, _) = tables
    rng = np.random.default_rng(1)
    y, y_val, y_new = (x[:, 1] + rng.normal(size=len(x)) for x in (X, X_val, X_new))
    reg = giw.ReweightedRegressor(Ridge(), random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    low, high = reg.predict_set(X_new).T
    assert 0.85 < np.mean((low <= y_new) & (y_new <= high)) < 0.95
    np.testing.assert_allclose((low + high) / 2, reg.predict(X_new))


def test_few_rows_cannot_hold_a_level_and_a_warning_says_how_many_can(tables):
    (X, y), (X_val, y_val), (X_new, _) = tables
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    clf.fit(X, y, X_val=X_val[:8], y_val=y_val[:8])
    with pytest.warns(UserWarning, match="8 left-out validation rows cannot.*it takes 9 rows"):
        assert clf.predict_set(X_new[:3]).all()


def test_rows_far_from_both_tables_are_outside_and_those_near_either_are_not(tmp_path):
    rng = np.random.default_rng(0)

    def side(rows, town, at):
        return pd.DataFrame({"x": rng.normal(at, 1, rows), "town": np.repeat(town, rows)})

    X, X_val = side(300, "Rome", 0), side(60, "Lima", 20)
    y, y_val = X["x"] > 0, X_val["x"] > 20
    frames = X["x"].to_frame(), X_val["x"].to_frame()
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    clf.fit(frames[0], y, X_val=frames[1], y_val=y_val)
    # an encoder in front: the model is fitted to numbers, and keeps the tables as they came
    clf.reference_ = type(clf.reference_).of(X, X_val)
    news = {"Rome": side(200, "Rome", 0), "Lima": side(200, "Lima", 20)}
    news |= {"between": side(200, "Rome", 10), "Oslo": side(200, "Oslo", 0)}
    found = {name: clf.outside(new).mean() for name, new in news.items()}
    assert found["Rome"] < 0.15
    assert found["Lima"] < 0.15
    assert found["between"] > 0.9
    assert found["Oslo"] == 1
    again = giw.load(clf.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.outside(news["Lima"]), clf.outside(news["Lima"]))


def test_what_is_asked_of_a_model_that_cannot_know_is_refused(tables):
    (X, y), (X_val, _), _ = tables
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0).fit(X, y, X_val=X_val)
    assert clf.outside(X_val).shape == (100,)
    with pytest.raises(ValueError, match="fit it with X_val and y_val"):
        clf.predict_set(X_val)
    with pytest.warns(UserWarning, match="no validation data"):
        clf.fit(X, y)
    with pytest.raises(ValueError, match="fit it again with X_val"):
        clf.outside(X)
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 90"):
        clf.predict_set(X, level=90)
