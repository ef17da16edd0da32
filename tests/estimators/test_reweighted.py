import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import giw
from giw.estimators import ShrunkWeightsWarning
from giw.estimators.ratios import RATIOS
from giw.estimators.weighted_fit import takes_weights, weight_keyword


def problem(seed=0, n=240, m=45, noise=0.3):
    """Class "a" left, "b" right; the world also has "a" far right; training labels are noisy."""
    rng = np.random.default_rng(seed)
    centers = np.array([[-2.0, 0.0], [2.0, 0.0], [9.0, 0.0]])
    labels = np.array(["a", "b", "a"])

    def draw(size, blobs):
        which = np.arange(size) % blobs
        return centers[which] + 0.5 * rng.normal(size=(size, 2)), labels[which]

    X, y = draw(n, 2)
    flipped = rng.random(n) < noise
    y = np.where(flipped, np.where(y == "a", "b", "a"), y)
    return X, y, *draw(m, 3), *draw(600, 3), flipped


def forest():
    return RandomForestClassifier(25, random_state=0)


@pytest.mark.filterwarnings("ignore::giw.estimators.ShrunkWeightsWarning")
@pytest.mark.parametrize(
    "base",
    [
        HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5),
        forest(),
        make_pipeline(StandardScaler(), RandomForestClassifier(25, random_state=0)),
    ],
    ids=["boosting", "forest", "pipeline"],
)
def test_it_learns_the_blob_that_training_does_not_have_and_sees_through_noise(base):
    X, y, Xv, yv, Xt, yt, _ = problem()
    clf = giw.ReweightedClassifier(base, random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.score(Xt, yt) > 0.93
    assert clf.score(Xt, yt) > base.fit(X, y).score(Xt, yt) + 0.1


def test_flipped_training_points_count_less():
    X, y, Xv, yv, *_, flipped = problem()
    clf = giw.ReweightedClassifier(forest(), random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.weight_[flipped].mean() < 0.3 * clf.weight_[~flipped].mean()
    assert clf.trust_ > 0.5


def test_outside_points_have_their_share_of_the_risk():
    X, y, Xv, yv, *_ = problem()
    clf = giw.ReweightedClassifier(forest(), random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    outside = ~clf.split_.inside
    assert outside[2::3].all()
    share = clf.sample_weight_[len(X) :][outside].sum() / clf.sample_weight_.sum()
    assert share == pytest.approx(1 - clf.alpha_)
    counted = clf.sample_weight_[clf.sample_weight_ > 0]
    assert counted.mean() == pytest.approx(1)


def test_with_everything_inside_and_no_share_it_is_plain_importance_weighting():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0) ^ (rng.random(200) < 0.3)
    Xv = X[np.argsort(np.linalg.norm(X, axis=1))[:30]] + 0.01  # where training is densest
    clf = giw.ReweightedClassifier(LogisticRegression(), val_share=0, random_state=0)
    clf.fit(X, y, X_val=Xv, y_val=Xv[:, 0] > 0)
    assert clf.alpha_ == 1
    assert clf.weight_.std() > 0.1
    plain = LogisticRegression().fit(X, y, sample_weight=clf.weight_)
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(clf.sample_weight_[200:], 0)


def test_a_given_share_is_the_share():
    X, y, Xv, yv, *_ = problem()
    clf = giw.ReweightedClassifier(forest(), val_share=0.5, random_state=0)
    clf.fit(X, y, X_val=Xv, y_val=yv)
    inside = clf.split_.inside
    total = clf.sample_weight_.sum()
    assert clf.sample_weight_[len(y) :][inside].sum() / total == pytest.approx(clf.alpha_ / 2)
    with pytest.raises(ValueError, match="val_share must be 'auto' or a number from 0 to 1"):
        giw.ReweightedClassifier(forest(), val_share="half").fit(X, y, X_val=Xv, y_val=yv)


def test_without_shift_it_is_nearly_the_plain_fit():
    X, y, *_ = problem(noise=0.0, n=400)
    rest = slice(300, None)
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    clf.fit(X[:300], y[:300], X_val=X[rest], y_val=y[rest])
    assert clf.alpha_ > 0.85
    assert clf.effective_sample_size_ > 0.8 * 300


@pytest.mark.filterwarnings("ignore::giw.estimators.ShrunkWeightsWarning")
@pytest.mark.parametrize("name", RATIOS)
@pytest.mark.parametrize("weigh_on", ["loss", "xy"])
def test_every_ratio_serves(name, weigh_on):
    X, y, Xv, yv, Xt, yt, _ = problem(n=120, m=24)
    clf = giw.ReweightedClassifier(forest(), weights=name, weigh_on=weigh_on, random_state=0)
    assert clf.fit(X, y, X_val=Xv, y_val=yv).score(Xt, yt) > 0.8
    assert clf.weight_.mean() == pytest.approx(1)


def test_no_weights_a_function_and_an_estimator_of_ones_own():
    X, y, Xv, yv, *_ = problem()
    data = {"X": X, "y": y, "X_val": Xv, "y_val": yv}
    plain = giw.ReweightedClassifier(forest(), weights=None, random_state=0).fit(**data)
    np.testing.assert_array_equal(plain.weight_, 1)
    own = giw.ReweightedClassifier(
        forest(), weights=lambda z, z_val, inside: 3.0 + z[:, 0], random_state=0
    ).fit(**data)
    assert own.weight_.mean() == pytest.approx(1)
    assert own.trust_ == 1.0
    ratio = giw.ULSIF()
    named = giw.ReweightedClassifier(forest(), weights="ulsif", random_state=0).fit(**data)
    given = giw.ReweightedClassifier(forest(), weights=ratio, random_state=0).fit(**data)
    np.testing.assert_array_equal(named.weight_, given.weight_)
    assert not hasattr(ratio, "weight_")


def test_weights_that_leave_few_points_are_shrunk_and_it_says_so():
    X, y, Xv, yv, *_ = problem()
    spike = lambda z, z_val, inside: np.eye(len(z))[0]  # noqa: E731
    clf = giw.ReweightedClassifier(forest(), weights=spike, random_state=0)
    with pytest.warns(ShrunkWeightsWarning, match="1 effective of 240"):
        clf.fit(X, y, X_val=Xv, y_val=yv)
    assert clf.trust_ < 0.5
    assert clf.effective_sample_size_ == pytest.approx(24)
    assert "shrunk" in clf.notes_[0]


def test_without_validation_data_it_fits_plainly_and_says_so():
    X, y, *_, Xt, _, _ = problem()
    clf = giw.ReweightedClassifier(LogisticRegression())
    with pytest.warns(UserWarning, match="no validation data"):
        clf.fit(X, y)
    np.testing.assert_array_equal(clf.predict(Xt), LogisticRegression().fit(X, y).predict(Xt))
    assert "no validation data" in clf.notes_[0]


def test_unlabelled_validation_data_weigh_by_points_alone():
    X, y, Xv, *_ = problem(noise=0.0)
    left = Xv[Xv[:, 0] < 0]
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0).fit(X, y, X_val=left)
    assert clf.weight_[X[:, 0] < 0].mean() > 1.5 * clf.weight_[X[:, 0] > 0].mean()
    assert len(clf.sample_weight_) == len(X)
    assert "have no labels" in clf.notes_[0]


def test_a_label_that_training_never_saw_is_learnt():
    X, y, Xv, yv, *_ = problem()
    yv = np.where(np.arange(len(yv)) % 3 == 2, "c", yv)
    clf = giw.ReweightedClassifier(forest(), random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert (clf.predict(Xv)[2::3] == "c").mean() > 0.9
    assert clf.predict_proba(Xv).shape == (45, 3)


def test_tables_with_categories_and_missing_values_come_in():
    X, y, Xv, yv, Xt, yt, _ = problem()

    def frame(points):
        table = pd.DataFrame({"u": points[:, 0], "v": points[:, 1]})
        table["side"] = pd.Categorical(np.where(points[:, 1] > 0, "up", "down"))
        table.loc[::7, "v"] = np.nan
        return table

    base = HistGradientBoostingClassifier(
        max_iter=20, min_samples_leaf=5, categorical_features="from_dtype"
    )
    clf = giw.ReweightedClassifier(base, random_state=0)
    clf.fit(frame(X), pd.Series(y), X_val=frame(Xv), y_val=pd.Series(yv))
    assert clf.score(frame(Xt), yt) > 0.9
    assert clf.feature_names_in_.tolist() == ["u", "v", "side"]


def test_the_same_seed_gives_the_same_weights():
    X, y, Xv, yv, *_ = problem()
    first, second = (
        giw.ReweightedClassifier(forest(), random_state=3).fit(X, y, X_val=Xv, y_val=yv)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.sample_weight_, second.sample_weight_)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_very_few_validation_points_are_enough_to_fit(m):
    X, y, Xv, yv, *_ = problem()
    clf = giw.ReweightedClassifier(forest(), random_state=0).fit(X, y, X_val=Xv[:m], y_val=yv[:m])
    assert np.isfinite(clf.sample_weight_).all()


def test_regression_follows_the_validation_data_where_training_has_none():
    """y = x on training, where a fifth of the targets is off by 10; y = 8 - x further right."""
    rng = np.random.default_rng(0)
    X, Xt = rng.uniform(0, 4, size=(300, 1)), rng.uniform(0, 8, size=(500, 1))
    Xv = rng.uniform(0, 8, size=(60, 1))

    def truth(x):
        return np.minimum(x[:, 0], 8 - x[:, 0])

    off = rng.random(300) < 0.2
    y = truth(X) + 0.1 * rng.normal(size=300) + 10 * off
    base = HistGradientBoostingRegressor(max_iter=40, min_samples_leaf=5)
    reg = giw.ReweightedRegressor(base, random_state=0).fit(X, y, X_val=Xv, y_val=truth(Xv))
    error = np.abs(reg.predict(Xt) - truth(Xt)).mean()
    plain = np.abs(base.fit(X, y).predict(Xt) - truth(Xt)).mean()
    assert error < 0.5 * plain
    assert reg.weight_[off].mean() < 0.3 * reg.weight_[~off].mean()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_linear_truth_is_no_reason_to_doubt_training_data(seed):
    """A linear model of 60 points beats trees of everything here; linear models say why."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(260, 10))
    y = X @ rng.normal(size=10) > 0
    clf = giw.ReweightedClassifier(forest(), random_state=0)
    clf.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert clf.val_share_ < 0.4
    reg = giw.ReweightedRegressor(RandomForestRegressor(20, random_state=0), random_state=0)
    slope = X @ np.arange(10.0)
    reg.fit(X[:200], slope[:200], X_val=X[200:], y_val=slope[200:])
    assert reg.val_share_ < 0.4


@pytest.mark.parametrize(
    "estimator",
    [
        VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())]),
        StackingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())]),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    ],
)
def test_estimators_that_hand_weights_on_are_taken(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] > 0
    clf = giw.ReweightedClassifier(estimator, random_state=0)
    clf.fit(X[:120], y[:120], X_val=X[120:150], y_val=y[120:150])
    assert clf.score(X[150:], y[150:]) > 0.9


def test_a_warning_names_the_line_that_called_fit():
    rng = np.random.default_rng(0)
    X, Xv = rng.normal(size=(40, 2)), rng.normal(size=(10, 2))
    with pytest.warns(UserWarning, match="inside the training support") as caught:
        giw.ReweightedClassifier(forest()).fit(X, X[:, 0] > 0, X_val=Xv + 100, y_val=Xv[:, 0] > 0)
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(UserWarning, match="no validation data") as caught:
        giw.ReweightedClassifier(forest()).fit(X, X[:, 0] > 0)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_column_of_text_is_named_with_the_way_out():
    X = pd.DataFrame({"x": np.arange(40.0), "city": ["a", None] * 20})
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match="column 'city' holds text, which RandomForestClassifier"):
        giw.ReweightedClassifier(forest()).fit(X[:30], y[:30], X_val=X[30:], y_val=y[30:])


def test_one_that_holds_an_estimator_without_weights_is_refused():
    votes = VotingClassifier([("a", LogisticRegression()), ("b", KNeighborsClassifier())])
    assert not takes_weights(votes)
    assert takes_weights(votes.set_params(b="drop"))
    with pytest.raises(ValueError, match="VotingClassifier takes no sample_weight"):
        weight_keyword(votes.set_params(b=KNeighborsClassifier()))


@pytest.mark.parametrize(
    ("settings", "change", "words"),
    [
        ({"estimator": KNeighborsClassifier()}, {}, "takes no sample_weight"),
        ({"estimator": make_pipeline(StandardScaler(), KNeighborsClassifier())}, {}, "takes no"),
        ({"estimator": Ridge()}, {}, "ReweightedRegressor"),
        ({"weights": "klip"}, {}, "must be one of"),
        ({"weights": 3}, {}, "a name, a function"),
        ({"weights": lambda *_: np.ones(3)}, {}, "one weight per training point"),
        ({"weights": lambda z, *_: -z[:, 0]}, {}, "negative"),
        ({"weigh_on": "y"}, {}, "weigh_on"),
        ({}, {"X_val": np.zeros((45, 5))}, "same columns"),
        ({}, {"X_val": None}, "y_val came without X_val"),
        ({}, {"y_val": np.zeros(4)}, "one label per point"),
        ({}, {"X": np.zeros((4, 2)), "y": ["a", "b", "a", "b"]}, "at least 10 training rows"),
    ],
)
def test_bad_input_is_named_with_a_way_out(settings, change, words):
    X, y, Xv, yv, *_ = problem()
    data = {"X": X, "y": y, "X_val": Xv, "y_val": yv} | change
    with pytest.raises(ValueError, match=words):
        giw.ReweightedClassifier(**{"estimator": forest(), **settings}).fit(**data)


def test_a_classifier_without_probabilities_serves_and_offers_none():
    X, y, Xv, yv, *_ = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShrunkWeightsWarning)
        clf = giw.ReweightedClassifier(LinearSVC(), random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    assert not hasattr(clf, "predict_proba")
    assert clf.decision_function(Xv).shape == (45,)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosted_trees_from_elsewhere_take_names_and_folds_that_lack_a_class(library):
    """XGBoost alone refuses names, and classes that are not counted from zero without a gap."""
    found = pytest.importorskip(library, reason=f"{library} is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.array(["low", "high", "middle"])[(X[:, 0] > 0).astype(int)]
    y[:3] = "middle"  # a single validation point of this class: most folds have none
    trees = (
        found.XGBClassifier(n_estimators=5, n_jobs=1)
        if library == "xgboost"
        else found.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    )
    val = np.r_[0, 170:200]
    clf = giw.ReweightedClassifier(trees, random_state=0)
    clf.fit(X[1:170], y[1:170], X_val=X[val], y_val=y[val])
    assert set(clf.classes_) == {"low", "middle", "high"}
    assert clf.predict_proba(X).shape == (200, 3)
    assert (clf.predict(X) == y).mean() > 0.9


@pytest.mark.parametrize("make", [giw.ReweightedClassifier, giw.ReweightedRegressor])
def test_the_estimator_that_is_taken_if_none_is_given_leaves_the_global_seed_alone(make):
    """Boosted trees without a seed ask numpy's global one, and from 10,001 rows on it matters."""
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(60, 2)), rng.normal(size=(10, 2))
    before = np.random.get_state()[2]  # noqa: NPY002
    model = make(random_state=3).fit(X, X[:, 0] > 0, X_val=X_val, y_val=X_val[:, 0] > 0)
    assert np.random.get_state()[2] == before  # noqa: NPY002
    assert model.estimator_.random_state == 3
    assert make()._base().random_state is not None


def test_it_says_so_where_training_points_count_for_nothing():
    """A running number puts all later rows outside, and nothing of training is left."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=100), np.arange(100)]
    label = X[:, 0] > 0
    model = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    later = np.c_[X[:20, 0], 1000 + np.arange(20)]
    with pytest.warns(UserWarning, match="training points count for nothing"):
        model.fit(X, label, X_val=later, y_val=label[:20])
    assert model.alpha_ == 0
    assert "none of the 20 validation points" in model.notes_[0]


def test_a_single_validation_point_is_not_passed_over_in_silence():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    model = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    model.fit(X, X[:, 0] > 0, X_val=np.zeros((1, 2)), y_val=[True])
    assert "a single validation point" in model.notes_[0]


def test_a_share_may_be_one_of_numpys_numbers():
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(60, 2)), rng.normal(size=(10, 2))
    for share in np.arange(2):  # as GridSearchCV hands them out
        model = giw.ReweightedClassifier(LogisticRegression(), val_share=share, random_state=0)
        model.fit(X, X[:, 0] > 0, X_val=X_val, y_val=X_val[:, 0] > 0)
        assert model.val_share_ == share
