import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from giw.estimators.fitting import binned_for, few_values, predictions


def test_cells_of_equally_many_rows_move_to_the_ends_of_their_halves():
    """Six rows in two cells of three: {0, 1, 2} with middle 1 and {3, 8, 9} with middle 6."""
    column = np.array([9.0, 2.0, 1.0, 0.0, np.nan, 8.0, 3.0])
    np.testing.assert_array_equal(few_values(column, 6), column)  # six values are few
    np.testing.assert_array_equal(few_values(column, 4), [9.0, 2.0, 0.0, 0.0, np.nan, 9.0, 3.0])


@given(
    arrays(float, st.integers(1, 60), elements=st.floats(-1e6, 1e6)),
    st.integers(2, 9),
)
def test_thresholds_between_the_new_values_part_old_and_new_ones_alike(column, most):
    found = few_values(column, most)
    values = np.unique(found)
    assert len(values) <= most
    assert np.isin(values, column).all()
    for threshold in (values[1:] + values[:-1]) / 2:
        np.testing.assert_array_equal(column <= threshold, found <= threshold)


def skewed(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, 3)) * [0.1, 1, 3])
    X[rng.random(n) < 0.1, 0] = np.nan
    return X, (X[:, 1] > 1).astype(int) ^ (rng.random(n) < 0.2), rng.uniform(0, 2, n)


@pytest.mark.parametrize("max_bins", [16, 255])
def test_trees_grown_on_the_new_table_treat_the_old_one_alike(max_bins):
    X, y, weight = skewed()
    model = HistGradientBoostingClassifier(max_bins=max_bins, max_iter=20, random_state=0)
    moved = binned_for(model, X)
    assert max(len(np.unique(column[~np.isnan(column)])) for column in moved.T) <= max_bins
    model.fit(moved, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(moved))


def test_frames_keep_their_kinds_and_what_is_no_number():
    X, _, _ = skewed()
    counts = np.random.default_rng(1).integers(0, 9999, len(X)).astype(np.int32)
    frame = pd.DataFrame(X, columns=list("aab")).assign(
        n=counts, kind=pd.Categorical(counts % 3), text=[str(c) for c in counts]
    )
    before = frame.copy()
    moved = binned_for(HistGradientBoostingRegressor(max_bins=16), frame)
    assert list(moved.dtypes) == list(frame.dtypes)
    assert moved["n"].nunique() <= 16 < frame["n"].nunique()
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(moved[["kind", "text"]], frame[["kind", "text"]])


def test_other_estimators_and_unclear_tables_get_what_came():
    X, _, _ = skewed(300)
    trees = HistGradientBoostingClassifier(max_bins=16)
    assert binned_for(LogisticRegression(), X) is X
    infinite = np.where(X > 5, np.inf, X)
    assert binned_for(trees, infinite) is infinite
    categories = HistGradientBoostingClassifier(max_bins=16, categorical_features=[0])
    assert binned_for(categories, X) is X


def test_classes_that_a_model_never_saw_get_the_least_probability():
    model = LogisticRegression().fit([[0.0], [1.0]], ["a", "c"])
    found = predictions(model, np.array([[9.0]]), np.array(["a", "b", "c"]), least=0.01)
    assert found.sum() == pytest.approx(1)
    assert found[0, 1] == pytest.approx(0.01, rel=0.02)
    assert found[0].argmax() == 2


def test_a_model_without_probabilities_votes():
    model = LinearSVC().fit([[-1.0], [1.0]], [0, 1])
    found = predictions(model, np.array([[-3.0], [3.0]]), np.array([0, 1]), vote=0.8)
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.2, 0.8]])


def test_predicted_numbers_stay_within_the_limits():
    model = Ridge(1e-9).fit([[0.0], [1.0]], [0.0, 1.0])
    found = predictions(model, np.array([[-5.0], [0.5], [9.0]]), None, limits=(0.0, 1.0))
    np.testing.assert_allclose(found, [0.0, 0.5, 1.0], atol=1e-6)
