import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, t
from sklearn.linear_model import LinearRegression, LogisticRegression

import giw
from giw.judging.risk import risk_from_losses


def test_of_right_and_wrong_it_is_the_clopper_pearson_interval():
    """Its ends are where 15 of 20, or more (fewer), have a probability of 2.5 %."""
    found = risk_from_losses(np.r_[np.ones(15), np.zeros(5)])
    assert found.estimate == 0.75
    assert binom.sf(14, 20, found.interval[0]) == pytest.approx(0.025)
    assert binom.cdf(15, 20, found.interval[1]) == pytest.approx(0.025)


def test_of_other_losses_it_is_students_interval():
    found = risk_from_losses(np.array([1.0, 2.0, 3.0]))
    half = t.ppf(0.975, 2) / np.sqrt(3)
    assert found.interval == pytest.approx((2 - half, 2 + half))


@pytest.mark.parametrize("p", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("m", [10, 20, 30, 50])
def test_it_covers_at_least_95_percent(p, m):
    """Every number of right answers, with its exact probability."""
    covered = 0.0
    for right in range(m + 1):
        low, high = risk_from_losses(np.r_[np.ones(right), np.zeros(m - right)]).interval
        covered += binom.pmf(right, m, p) * (low <= p <= high)
    assert covered >= 0.95


@given(st.integers(0, 10**6), st.integers(2, 40))
@settings(max_examples=30, deadline=None)
def test_the_order_of_points_and_the_unit_do_not_matter(seed, m):
    rng = np.random.default_rng(seed)
    loss = rng.exponential(size=m)
    found = risk_from_losses(loss)
    again = risk_from_losses(3 * rng.permutation(loss))
    assert again.interval == pytest.approx(tuple(3 * np.array(found.interval)))
    assert found.interval[0] <= found.estimate <= found.interval[1]


def test_all_right_is_no_certainty():
    found = risk_from_losses(np.ones(10))
    assert found.interval[0] < 0.9
    assert found.interval[1] == 1.0


def shifted(seed, n=300, m=40):
    """The class is the sign of x0 + x1; the test distribution leans towards the border."""
    rng = np.random.default_rng(seed)

    def draw(size, center):
        x = rng.normal(size=(size, 2)) + center
        return x, (x.sum(axis=1) + 0.7 * rng.normal(size=size) > 0).astype(int)

    return *draw(n, [0.8, 0.8]), *draw(m, [0.3, 0.3]), *draw(4000, [0.3, 0.3])


def test_points_inside_and_outside_are_told_apart():
    X, y, Xv, yv, *_ = shifted(0)
    Xv = np.r_[Xv, Xv[:10] + 100.0]
    yv = np.r_[yv, np.zeros(10, dtype=int)]  # the model says 1 there
    model = LogisticRegression().fit(X, y)
    risk = giw.estimate_risk(model, X, y, Xv, yv, random_state=0)
    assert risk.alpha < 0.9
    assert risk.outside_estimate < 0.5 < risk.inside_estimate
    assert "inside the training support" in risk.summary()
    assert repr(risk).count("\n") == 0


def test_any_loss_and_regression():
    X, _, Xv, _, *_ = shifted(0)
    rng = np.random.default_rng(0)
    y, yv = X[:, 0] + rng.normal(size=len(X)), Xv[:, 0] + rng.normal(size=len(Xv))
    model = LinearRegression().fit(X, y)
    squared = giw.estimate_risk(model, X, y, Xv, yv, random_state=0)
    assert squared.metric == "squared error"
    assert squared.interval[0] < 1.0 < squared.interval[1]

    def absolute(label, found):
        return np.abs(label - found)

    found = giw.estimate_risk(model, X, y, Xv, yv, loss=absolute, random_state=0)
    assert found.metric == "absolute"
    assert found.estimate < squared.estimate


def test_a_model_that_was_fitted_to_these_points_is_refused():
    X, y, Xv, yv, Xt, yt = shifted(0)
    model = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    model.fit(X, y, X_val=Xv, y_val=yv)
    with pytest.raises(ValueError, match="40 of 40 validation points were used to fit this"):
        giw.estimate_risk(model, X, y, Xv, yv)
    with pytest.raises(ValueError, match="40 of 60 validation points"):
        giw.estimate_risk(model, X, y, np.r_[Xt[:20], Xv], np.r_[yt[:20], yv])
    fresh = giw.estimate_risk(model, X, y, Xt[:60], yt[:60])
    assert fresh.notes == ()
    few = giw.estimate_risk(model, X, y, np.r_[Xt[:60], Xv[:2]], np.r_[yt[:60], yv[:2]])
    assert "2 of 62 validation points look like rows" in few.notes[0]


def test_more_labels_make_the_interval_as_narrow_as_promised():
    X, y, Xv, yv, *_ = shifted(0)
    model = LogisticRegression().fit(X, y)
    risk = giw.estimate_risk(model, X, y, Xv, yv, random_state=0)
    more = giw.labels_needed(risk, risk.width / 2)
    # half the width takes about four times the labels
    assert 2 * len(yv) < more < 5 * len(yv)
    assert giw.labels_needed(risk, 2 * risk.width) == 0
    X, y, Xv, yv, *_ = shifted(0, m=len(yv) + more)
    again = giw.estimate_risk(model, X, y, Xv, yv, random_state=0)
    assert again.width == pytest.approx(risk.width / 2, rel=0.25)


@pytest.mark.parametrize("name", ["fitted_to_train", "n_folds"])
def test_settings_of_before_get_one_line(name):
    X, y, Xv, yv, *_ = shifted(0)
    model = LogisticRegression().fit(X, y)
    with pytest.warns(FutureWarning, match=f"{name} has no effect"):
        giw.estimate_risk(model, X, y, Xv, yv, **{name: 3})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"yv": np.zeros(3)}, "one label per point"),
        ({"confidence": 1.0}, "confidence"),
        ({"loss": lambda y, found: 0.5}, "one number per point"),
        ({"loss": lambda y, found: np.full(len(y), np.nan)}, "NaN"),
        ({"one": True}, "at least two validation points"),
    ],
)
def test_bad_input_is_named(change, words):
    X, y, Xv, yv, *_ = shifted(0)
    model = LogisticRegression().fit(X, y)
    if change.pop("one", False):
        Xv, yv = Xv[:1], yv[:1]
    yv = change.pop("yv", yv)
    with pytest.raises(ValueError, match=words):
        giw.estimate_risk(model, X, y, Xv, yv, random_state=0, **change)


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, 1e-6])
def test_impossible_widths_are_refused(width):
    with pytest.raises(ValueError, match="width"):
        giw.labels_needed(risk_from_losses(np.r_[np.ones(5), np.zeros(5)]), width)


def test_validation_rows_that_are_training_rows_are_told_wherever_a_score_is():
    rng = np.random.default_rng(0)
    X, y, fresh = rng.normal(size=(300, 3)), rng.integers(0, 2, 300), rng.normal(size=(40, 3))
    said = "10 of 50 validation rows are training rows too"
    X_val, y_val = np.r_[X[:10], fresh], rng.integers(0, 2, 50)
    base = LogisticRegression()
    with pytest.warns(UserWarning, match=said):
        model = giw.ReweightedClassifier(base, random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    assert any(note.startswith(said) for note in model.notes_)
    with pytest.warns(UserWarning, match=said):
        giw.select({"plain": base}, X, y, X_val, y_val, random_state=0)
    (note,) = giw.estimate_risk(base.fit(X, y), X, y, X_val, y_val).notes
    assert note.startswith(said)


def test_rows_of_few_values_repeat_and_nothing_is_said():
    rng = np.random.default_rng(0)
    X, X_val = rng.integers(0, 3, (300, 2)), rng.integers(0, 3, (50, 2))
    y, y_val = rng.integers(0, 2, 300), rng.integers(0, 2, 50)
    assert giw.estimate_risk(LogisticRegression().fit(X, y), X, y, X_val, y_val).notes == ()
