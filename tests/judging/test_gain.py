"""What a stack gained, and what more labels would."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import giw
from giw.judging.gain import difference, expected_gain, gained


def test_the_interval_of_paired_answers_by_hand():
    """Eight rows better, two worse, of thirty: (8.5 - 2.5) / 32, and its spread."""
    new = np.repeat([1.0, 0.0, 1.0], [8, 2, 20])
    old = np.repeat([0.0, 1.0, 1.0], [8, 2, 20])
    gain, (low, high) = difference(new, old)
    assert gain == pytest.approx(0.2)
    half = 1.959964 * np.sqrt(11 - 36 / 32) / 32
    assert (low, high) == pytest.approx((6 / 32 - half, 6 / 32 + half))


def test_equal_answers_still_leave_room_for_chance():
    gain, (low, high) = difference(np.ones(20), np.ones(20))
    assert gain == 0
    assert low < 0 < high


def test_an_interval_of_shares_ends_at_one():
    assert difference(np.ones(20), np.zeros(20))[1][1] == 1.0
    assert difference(np.zeros(20), np.ones(20))[1][0] == -1.0


def test_numbers_get_students_interval():
    gain, (low, high) = difference([1.0, 2.0, 4.0, 5.0], [0.0, 1.0, 1.0, 2.0])
    assert gain == 2
    assert high - gain == pytest.approx(3.182446 * np.sqrt(4 / 3) / 2)
    assert gain - low == pytest.approx(high - gain)


@pytest.fixture(scope="module")
def tables():
    """Labels that are the other way round where the model will be used, or not."""
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(300, 2)), rng.normal(size=(60, 2))
    return X, X[:, 0] > 0, X_val, X_val[:, 0] > 0


def fitted(X, y, X_val, y_val):
    model = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    return model.fit(X, y, X_val=X_val, y_val=y_val)


def test_a_gain_is_told_where_labels_turned_and_none_where_nothing_did(tables):
    X, y, X_val, y_val = tables
    found = gained(fitted(X, y, X_val, ~y_val))
    assert list(found.scores) == ["plain", "both tables", "stack"]
    assert found.gain > 0.7
    assert found.is_told
    assert "Gained over plain training: +" in found.summary()
    same = gained(fitted(X, y, X_val, y_val))
    assert abs(same.gain) < 0.1
    assert "Plain training is as good, as far as 60 rows can tell" in same.summary()


def test_of_numbers_a_smaller_error_is_a_gain(tables):
    X, _, X_val, _ = tables
    reg = giw.ReweightedRegressor(Ridge(), random_state=0)
    found = gained(reg.fit(X, X[:, 0], X_val=X_val, y_val=-X_val[:, 0]))
    assert found.gain > 0
    assert found.scores["stack"] < found.scores["plain"]


def test_nothing_is_told_of_a_model_that_left_nothing_out(tables):
    X, y, X_val, _ = tables
    model = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    assert gained(model.fit(X, y, X_val=X_val)) is None


def test_more_labels_gain_where_only_they_teach(tables):
    """Labels turn round, and a quarter of the few rows teaches less than half of them."""
    X, y, X_val, y_val = tables
    model = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    gain, (low, high) = expected_gain(model, X, y, X_val, ~y_val, 60)
    assert low <= gain <= high
    assert 0 <= gain < 0.2
    assert expected_gain(model, X, y, X_val[:15], y_val[:15], 60) is None
