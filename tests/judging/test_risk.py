import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import giw
from giw.judging.risk import (
    LARGEST_SAY,
    MOST_NARROWER,
    _Parts,
    inside_and_weight,
    risk_from_losses,
)


def test_without_training_points_it_is_the_agresti_coull_interval():
    """15 right of 20: (15 + 2) / (20 + 4), and the normal interval around it."""
    right = np.r_[np.ones(15), np.zeros(5)]
    found = risk_from_losses(right)
    center = 17 / 24
    half = norm.ppf(0.975) * np.sqrt(center * (1 - center) / 24)
    assert found.estimate == 0.75  # caution is for the interval
    assert found.interval == pytest.approx((center - half, center + half))
    assert found.interval == pytest.approx(found.val_interval)
    assert found.val_estimate == 0.75


@given(
    st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=40),
    st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=40),
)
def test_the_estimate_lies_between_its_two_sources(val, train):
    found = risk_from_losses(np.array(val), train_loss=np.array(train), weight=np.ones(len(train)))
    low, high = sorted([found.val_estimate, found.train_estimate])
    assert low - 1e-12 <= found.estimate <= high + 1e-12
    assert found.interval[0] <= found.val_estimate <= found.interval[1]


def test_all_right_is_no_certainty():
    found = risk_from_losses(np.ones(10))
    assert found.interval[0] < 0.9
    assert found.interval[1] == 1.0


def test_training_points_that_agree_narrow_the_interval():
    rng = np.random.default_rng(0)
    val, train = rng.normal(1.0, 1.0, size=40), rng.normal(1.0, 1.0, size=4000)
    train += val.mean() - train.mean()  # no disagreement at all
    found = risk_from_losses(val, np.ones(40), train, np.ones(4000))
    assert found.train_say == pytest.approx(LARGEST_SAY, abs=0.01)
    narrower = found.width / (found.val_interval[1] - found.val_interval[0])
    assert narrower == pytest.approx(1 - MOST_NARROWER, abs=0.01)


@given(st.integers(0, 10**6), st.floats(-3, 3), st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_the_estimate_lies_in_the_interval_and_that_in_the_one_of_validation_alone(
    seed, bias, share
):
    """Whatever training points say, nothing is claimed that validation points rule out."""
    rng = np.random.default_rng(seed)
    val, train = rng.normal(size=20), rng.normal(bias, 1.0, size=200)
    inside = (rng.random(20) < share).astype(float)
    found = risk_from_losses(val, inside, train, np.ones(200))
    low, high = found.interval
    assert found.val_interval[0] <= low <= found.estimate <= high <= found.val_interval[1]


def test_training_points_that_disagree_have_no_say():
    rng = np.random.default_rng(0)
    val, train = rng.normal(size=40), rng.normal(5.0, 1.0, size=4000)
    found = risk_from_losses(val, np.ones(40), train, np.ones(4000))
    assert found.train_say < 1e-3
    assert found.estimate == pytest.approx(val.mean(), abs=0.01)


def test_points_outside_are_not_replaced():
    """With nothing inside, training points cannot say anything."""
    val = np.arange(10.0)
    found = risk_from_losses(val, np.zeros(10), np.full(50, 4.0), np.ones(50))
    assert found.train_say == 0
    assert found.interval == pytest.approx(found.val_interval)


def test_the_interval_covers_whatever_the_bias():
    """Integrate the rule over the validation error v: all inside, endless training data, bias b."""
    v = np.linspace(-7, 7, 5_601)
    mass = norm.pdf(v) * (v[1] - v[0])
    coverage, width = [], []
    for bias in np.linspace(0, 8, 17):
        variance = [_Parts(1.0, 0.0, 0.0, gap=error - bias).combine(1)[1] for error in v]
        half = norm.ppf(0.975) * np.sqrt(variance)
        width.append(mass @ half / norm.ppf(0.975))
        coverage.append(mass @ (np.abs(v) <= half))
    assert width[0] == pytest.approx(0.886, abs=0.001)
    assert coverage[0] == pytest.approx(0.948, abs=0.001)
    assert min(coverage) == pytest.approx(0.927, abs=0.001)
    assert coverage[-1] == pytest.approx(0.95, abs=0.001)


def shifted(seed, n=300, m=40):
    """The class is the sign of x0 + x1; the test distribution leans towards the border."""
    rng = np.random.default_rng(seed)

    def draw(size, center):
        x = rng.normal(size=(size, 2)) + center
        return x, (x.sum(axis=1) + 0.7 * rng.normal(size=size) > 0).astype(int)

    return *draw(n, [0.8, 0.8]), *draw(m, [0.3, 0.3]), *draw(4000, [0.3, 0.3])


def test_intervals_of_a_fitted_model_cover_and_are_narrower():
    hits, narrower = [], []
    for seed in range(40):
        X, y, Xv, yv, Xt, yt = shifted(seed)
        model = LogisticRegression().fit(X, y)
        risk = giw.estimate_risk(model, X, y, Xv, yv, random_state=0)
        hits.append(risk.interval[0] <= model.score(Xt, yt) <= risk.interval[1])
        narrower.append(risk.width / (risk.val_interval[1] - risk.val_interval[0]))
    assert np.mean(hits) >= 0.9
    assert np.mean(narrower) < 0.95


def test_a_model_that_learnt_its_training_data_by_heart_is_not_flattered():
    X, y, Xv, yv, *_ = shifted(0)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    honest = giw.estimate_risk(tree, X, y, Xv, yv, random_state=0)
    naive = giw.estimate_risk(tree, X, y, Xv, yv, fitted_to_train=False, random_state=0)
    assert naive.train_estimate == pytest.approx(1.0)
    assert honest.train_estimate < 0.95
    assert "without them" in honest.notes[0]


def test_a_fold_with_one_class_only_is_judged_by_the_constant():
    X, y, Xv, yv, *_ = shifted(0)
    y = np.zeros_like(y)
    y[0] = 1  # a single point of its class: one copy never sees it
    model = LogisticRegression().fit(X, y)
    found = giw.estimate_risk(model, X, y, Xv, yv, random_state=0)
    assert found.train_estimate > 0.9


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
    assert "absolute" in found.summary()


def test_weights_follow_the_points():
    X, _, Xv, *_ = shifted(0, n=600, m=200)
    _, weight = inside_and_weight(X, Xv, np.random.default_rng(0))
    below = X.sum(axis=1) < 0.5
    assert weight[below].mean() > 1.2 * weight[~below].mean()


def test_more_labels_make_the_interval_as_narrow_as_promised():
    X, y, Xv, yv, *_ = shifted(0)
    model = LogisticRegression().fit(X, y)
    risk = giw.estimate_risk(model, X, y, Xv, yv, random_state=0)
    more = giw.labels_needed(risk, risk.width / 2)
    # half the width takes about four times the labels (44 count with Agresti and Coull's four)
    assert 2 * len(yv) < more < 5 * len(yv)
    assert giw.labels_needed(risk, 2 * risk.width) == 0
    X, y, Xv, yv, *_ = shifted(0, m=len(yv) + more)
    again = giw.estimate_risk(model, X, y, Xv, yv, random_state=0)
    assert again.width == pytest.approx(risk.width / 2, rel=0.25)


def test_estimates_are_frozen():
    with pytest.raises(FrozenInstanceError):
        risk_from_losses(np.ones(5)).estimate = 0.0  # type: ignore[misc]


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


def test_copies_of_a_model_that_adapts_are_said_to_be_plain():
    """A warning about missing validation data would puzzle who has just passed some."""
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(80, 2)), rng.normal(size=(20, 2))
    model = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    model.fit(X, X[:, 0] > 0, X_val=X_val[:10], y_val=X_val[:10, 0] > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = giw.estimate_risk(
            model, X, X[:, 0] > 0, X_val[10:], X_val[10:, 0] > 0, random_state=0
        )
    assert found.notes == (
        "training points were judged by copies fitted without them, and without validation data",
    )
