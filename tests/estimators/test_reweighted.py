import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import giw
from giw.estimators.candidates import (
    RATIOS,
    Candidate,
    StepsAside,
    both_tables,
    generalized_weighting,
    inside_ratio,
)


def problem(seed=0, n=240, m=45, noise=0.3):
    """Class "a" left, "b" right; the target also has "a" far right; training labels are noisy."""
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
    return RandomForestClassifier(15, random_state=0)


def linear(**settings):
    return giw.ReweightedClassifier(LogisticRegression(), random_state=0, **settings)


@pytest.mark.parametrize(
    "base",
    [
        HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5),
        make_pipeline(StandardScaler(), forest()),
    ],
    ids=["boosting", "pipeline"],
)
def test_it_learns_the_blob_that_training_does_not_have_and_sees_through_noise(base):
    X, y, Xv, yv, Xt, yt, _ = problem()
    clf = giw.ReweightedClassifier(base, random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.score(Xt, yt) > 0.93
    assert clf.score(Xt, yt) > base.fit(X, y).score(Xt, yt) + 0.1


def test_flipped_training_points_count_less():
    X, y, Xv, yv, *_, flipped = problem()
    clf = linear().fit(X, y, X_val=Xv, y_val=yv)
    assert clf.weight_[flipped].mean() < 0.2 * clf.weight_[~flipped].mean()
    assert clf.weight_.mean() == pytest.approx(1)


def test_the_prediction_is_the_weighted_mean_of_the_calibrated_candidates():
    X, y, Xv, yv, Xt, *_ = problem()
    clf = linear(candidates=["training", "both tables"]).fit(X, y, X_val=Xv, y_val=yv)
    assert sum(clf.stack_weight_.values()) == pytest.approx(1)
    found, mean = clf.predict_proba(Xt), 0.0
    for name, model in clf.candidates_.items():
        raised = model.predict_proba(Xt) ** clf.power_[name]
        mean = mean + clf.stack_weight_[name] * raised / raised.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, mean, atol=2e-3)  # probabilities are kept off zero
    np.testing.assert_array_equal(clf.predict(Xt), clf.classes_[found.argmax(axis=1)])


def test_candidates_are_what_their_names_say():
    """Each against the weighted fit that one would write by hand."""
    X, y, Xv, yv, Xt, *_ = problem()
    both, label = np.r_[X, Xv], np.r_[y, yv]
    names = ["both tables", "intermediate", "balanced"]
    clf = linear(candidates=names, least_weight=0.0).fit(X, y, X_val=Xv, y_val=yv)
    for name, power in zip(names, (0.0, 0.5, 1.0), strict=True):
        weight = np.r_[np.full(240, (45 / 240) ** power), np.ones(45)]
        byhand = LogisticRegression().fit(both, label, sample_weight=weight / weight.mean())
        found = clf.candidates_[name].predict_proba(Xt)
        np.testing.assert_allclose(found, byhand.predict_proba(Xt), atol=1e-4)


def test_with_everything_inside_and_no_share_giw_is_plain_importance_weighting():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0) ^ (rng.random(200) < 0.3)
    Xv = X[np.argsort(np.linalg.norm(X, axis=1))[:30]] + 0.01  # where training is densest
    plainly = partial(generalized_weighting, inside_share=0.0)
    clf = linear(candidates=[Candidate("giw", plainly, uses_losses=True)])
    clf.fit(X, y, X_val=Xv, y_val=Xv[:, 0] > 0)
    assert clf.alpha_ == 1
    assert clf.weight_.std() > 0.1
    plain = LogisticRegression().fit(X, y, sample_weight=clf.weight_)
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_few_outside_points_do_not_carry_most_of_the_risk():
    """Ten of ten rows are outside: a third of the risk, by 10 / (10 + 20), and not all of it."""
    X, y, *_ = problem()
    seen = []

    class Spy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(sample_weight)
            return super().fit(X, y, sample_weight)

    clf = giw.ReweightedClassifier(Spy(), candidates=["giw"], random_state=0)
    far = np.random.default_rng(0).normal(size=(10, 2)) + 60
    clf.fit(X, y, X_val=far, y_val=np.array(["a", "b"] * 5))
    assert clf.alpha_ == 0
    assert "none of the 10 validation points" in clf.notes_[0]
    last = next(w for w in reversed(seen) if w is not None and len(w) == 250)
    assert last[240:].sum() / last.sum() == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", RATIOS)
def test_every_ratio_serves(name):
    X, y, Xv, yv, *_ = problem(n=120, m=24)
    clf = linear(weights=name, candidates=["giw"]).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.weight_.mean() == pytest.approx(1)
    assert clf.weight_.min() >= 0


def test_no_weights_and_a_function_and_an_estimator_of_ones_own():
    X, y, Xv, yv, *_ = problem()
    data = {"X": X, "y": y, "X_val": Xv, "y_val": yv}
    np.testing.assert_array_equal(linear(weights=None).fit(**data).weight_, 1)
    own = linear(weights=lambda z, z_val, inside: 3.0 + z[:, 0]).fit(**data)
    assert own.weight_.mean() == pytest.approx(1)
    ratio = giw.ULSIF()
    named, given = (linear(weights=w).fit(**data) for w in ("ulsif", ratio))
    np.testing.assert_array_equal(named.weight_, given.weight_)
    assert not hasattr(ratio, "weight_")


def test_rows_that_are_all_alike_get_equal_weights_and_no_warning():
    """At the minimum from the start, Newton's search finds no step that is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = inside_ratio("classifier", np.zeros((50, 1)), np.zeros((20, 1)))
    np.testing.assert_allclose(found, 1)


def test_weights_leave_a_tenth_of_the_training_points_effective():
    X, y, Xv, yv, *_ = problem()
    clf = linear(weights=lambda z, *_: np.eye(len(z))[0]).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.weight_.sum() ** 2 / np.square(clf.weight_).sum() == pytest.approx(24)


def test_without_validation_data_it_fits_plainly_and_says_so():
    X, y, *_, Xt, _, _ = problem()
    clf = giw.ReweightedClassifier(LogisticRegression())
    with pytest.warns(UserWarning, match="no validation data") as caught:
        clf.fit(X, y)
    plain = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(Xt), plain.predict_proba(Xt))
    assert "no validation data" in clf.notes_[0]
    assert {warning.filename for warning in caught} == {__file__}


def test_unlabelled_rows_of_the_target_weigh_training_rows():
    X, y, Xv, *_ = problem(noise=0.0)
    left = Xv[Xv[:, 0] < 0]
    for data in ({"X_val": left}, {"X_unlabelled": left}):
        clf = linear().fit(X, y, **data)
        assert clf.weight_[X[:, 0] < 0].mean() > 1.2 * clf.weight_[X[:, 0] > 0].mean()
        assert set(clf.stack_weight_) == {"training", "weighted by features"}
        assert "0 labelled validation rows" in clf.notes_[0]


def test_unlabelled_rows_stand_beside_labelled_ones():
    X, y, Xv, yv, *_ = problem()
    clf = linear(least_weight=0.0).fit(X, y, X_val=Xv[:20], y_val=yv[:20], X_unlabelled=Xv[20:])
    assert "weighted by features" in clf.stack_weight_
    assert clf.split_.inside.shape == (45,)


def test_a_label_that_training_never_saw_is_learnt():
    X, y, Xv, yv, *_ = problem()
    yv = np.where(np.arange(len(yv)) % 3 == 2, "c", yv)
    clf = giw.ReweightedClassifier(forest(), random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert (clf.predict(Xv)[2::3] == "c").mean() > 0.9
    np.testing.assert_allclose(clf.predict_proba(Xv).sum(axis=1), 1)


def frame(points):
    table = pd.DataFrame({"u": points[:, 0], "v": points[:, 1]})
    table["side"] = pd.Categorical(np.where(points[:, 1] > 0, "up", "down"))
    table.loc[::7, "v"] = np.nan
    return table


def test_tables_with_categories_and_missing_values_come_in():
    X, y, Xv, yv, Xt, yt, _ = problem()
    base = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)
    clf = giw.ReweightedClassifier(base, random_state=0)
    clf.fit(frame(X), pd.Series(y), X_val=frame(Xv), y_val=pd.Series(yv))
    assert clf.score(frame(Xt), yt) > 0.9
    assert clf.feature_names_in_.tolist() == ["u", "v", "side"]


def test_frames_of_polars_are_taken():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y, Xv, yv, *_ = problem()
    names = ["u", "v"]
    clf = linear().fit(
        polars.DataFrame(X, schema=names), y, X_val=polars.DataFrame(Xv, schema=names), y_val=yv
    )
    again = linear().fit(
        pd.DataFrame(X, columns=names), y, X_val=pd.DataFrame(Xv, columns=names), y_val=yv
    )
    found = clf.predict_proba(polars.DataFrame(Xv, schema=names))
    np.testing.assert_array_equal(found, again.predict_proba(pd.DataFrame(Xv, columns=names)))


def test_columns_of_text_are_named_all_at_once_with_the_way_out():
    X = pd.DataFrame({"x": np.arange(40.0), "city": ["a", None] * 20, "day": ["m", "t"] * 20})
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match=r"columns \['city', 'day'\] hold text, which Random.*One"):
        giw.ReweightedClassifier(forest()).fit(X[:30], y[:30], X_val=X[30:], y_val=y[30:])


def test_columns_with_gaps_are_named_all_at_once_with_the_way_out():
    X = pd.DataFrame({"x": np.arange(40.0), "u": [0.0, np.nan] * 20, "v": [np.nan, 1.0] * 20})
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match=r"columns \['u', 'v'\] have missing.*SimpleImputer"):
        linear().fit(X[:30], y[:30], X_val=X[30:], y_val=y[30:])
    imputed = giw.ReweightedClassifier(make_pipeline(SimpleImputer(), LogisticRegression()))
    assert imputed.fit(X[:30], y[:30], X_val=X[30:], y_val=y[30:]).notes_ == ()


def test_a_candidate_that_fails_costs_itself_only():
    X, y, Xv, yv, *_ = problem()

    class Never:
        name, prior = "never", 1.0

        def fit(self, data):
            raise StepsAside("it never fits")

    clf = linear(candidates=["training", Never()]).fit(X, y, Xv, yv)
    assert clf.notes_ == ("never steps aside: it never fits",)
    assert list(clf.candidates_) == ["training"]


def test_training_alone_is_fitted_to_all_of_its_rows_once():
    X, y, Xv, yv, *_ = problem()
    fits = []

    class Spy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(X))
            return super().fit(X, y, sample_weight)

    clf = giw.ReweightedClassifier(Spy(), candidates=["training"], random_state=0)
    clf.fit(X, y, X_val=Xv, y_val=yv)
    assert fits.count(len(X)) == 1
    assert len(fits) == 1 + 4


def test_a_list_of_candidates_of_ones_own():
    X, y, Xv, yv, *_ = problem()
    own = ["training", Candidate("five times", partial(both_tables, power=-0.9))]
    clf = linear(candidates=own).fit(X, y, X_val=Xv, y_val=yv)
    assert set(clf.left_out_loss_) == {"training", "five times"}
    with pytest.raises(ValueError, match=r"candidates must be 'auto' or a list.*'balanced'"):
        linear(candidates=["balanced", "best"]).fit(X, y, X_val=Xv, y_val=yv)


def test_one_model_if_wanted():
    X, y, Xv, yv, Xt, *_ = problem()
    whole = linear().fit(X, y, X_val=Xv, y_val=yv)
    clf = linear(stack=False).fit(X, y, X_val=Xv, y_val=yv)
    (name,) = clf.candidates_
    assert name == max(whole.stack_weight_, key=whole.stack_weight_.get)
    np.testing.assert_array_equal(clf.predict(Xt), clf.estimator_.predict(Xt))
    with pytest.raises(AttributeError, match="stack=False keeps one"):
        _ = whole.estimator_


def test_what_was_found_is_shown():
    X, y, Xv, yv, *_ = problem()
    clf = linear()
    assert "left-out" not in repr(clf)
    clf.fit(X, y, X_val=Xv, y_val=yv)
    assert "left-out accuracy" in repr(clf)
    assert "for plain training" in repr(clf)
    page = clf._repr_html_()
    assert page.count("<tr>") == len(clf.stack_weight_) + 1
    assert list(clf.stack_weight_.values()) == sorted(clf.stack_weight_.values(), reverse=True)


@pytest.mark.parametrize(("name", "value"), [("weigh_on", "loss"), ("val_share", "auto")])
def test_settings_of_before_get_one_line(name, value):
    X, y, Xv, yv, *_ = problem()
    with pytest.warns(FutureWarning, match=f"{name} has no effect") as caught:
        clf = linear(candidates=["training"], **{name: value}).fit(X, y, X_val=Xv, y_val=yv)
    assert len(caught) == 1
    for gone in ("trust_", "val_share_", "sample_weight_", "effective_sample_size_"):
        with pytest.warns(FutureWarning, match=f"{gone} is gone"):
            getattr(clf, gone)


def test_the_same_seed_gives_the_same_stack_with_any_number_of_jobs():
    X, y, Xv, yv, *_ = problem()
    found = [
        linear(n_jobs=jobs).fit(X, y, X_val=Xv, y_val=yv).predict_proba(Xv) for jobs in (None, 1, 2)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], found[2], atol=1e-12)


def test_sample_weights_are_honoured():
    """Flipped rows that weigh nothing are as good as not there; so are validation rows."""
    X, y, Xv, yv, Xt, yt, flipped = problem()
    weight = np.where(flipped, 0.0, 2.0)
    clf = linear(candidates=["training"]).fit(X, y, X_val=Xv, y_val=yv, sample_weight=weight)
    plain = LogisticRegression().fit(X[~flipped], y[~flipped])
    np.testing.assert_allclose(clf.predict_proba(Xt), plain.predict_proba(Xt), atol=1e-4)
    wrong = np.where(yv == "a", "b", "a")
    clf = linear().fit(
        X, y, X_val=np.r_[Xv, Xv], y_val=np.r_[yv, wrong],
        sample_weight_val=np.repeat([1.0, 0.0], 45),
    )  # fmt: skip
    assert clf.score(Xt, yt) > 0.8


def test_rows_of_one_group_are_left_out_together():
    """Each validation row comes three times: without groups a tree knows the answer."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
    Xv, yv = np.repeat(rng.normal(size=(20, 3)), 3, axis=0), np.repeat(rng.integers(0, 2, 20), 3)
    base = DecisionTreeClassifier(random_state=0)
    alone, together = (
        giw.ReweightedClassifier(base, random_state=0)
        .fit(X, y, X_val=Xv, y_val=yv, groups_val=groups)
        .left_out_loss_["validation"]
        for groups in (None, np.repeat(np.arange(20), 3))
    )
    assert alone < 0.7 * together


@pytest.mark.parametrize("m", [1, 2, 3])
def test_very_few_validation_points_lean_on_the_prior_and_keep_training(m):
    X, y, Xv, yv, *_ = problem()
    clf = linear().fit(X, y, X_val=Xv[:m], y_val=yv[:m])
    assert "training" in clf.stack_weight_
    assert max(clf.stack_weight_.values()) < 0.51
    if m == 1:
        assert "1 labelled validation rows cannot be left out" in " ".join(clf.notes_)


def test_on_many_rows_folds_see_a_sample():
    X, y, Xv, yv, Xt, yt, _ = problem(n=600)
    clf = linear(fold_rows=100).fit(X, y, X_val=Xv, y_val=yv)
    assert clf.score(Xt, yt) > 0.8
    assert len(clf.weight_) == 600


def test_regression_follows_the_validation_data_where_training_has_none():
    """y = x on training, where a fifth of the targets is off by 10; y = 8 - x further right."""
    rng = np.random.default_rng(0)
    X, Xt = rng.uniform(0, 4, size=(300, 1)), rng.uniform(0, 8, size=(500, 1))
    Xv = rng.uniform(0, 8, size=(60, 1))

    def truth(x):
        return np.minimum(x[:, 0], 8 - x[:, 0])

    off = rng.random(300) < 0.2
    y = truth(X) + 0.1 * rng.normal(size=300) + 10 * off
    base = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5)
    reg = giw.ReweightedRegressor(base, random_state=0).fit(X, y, X_val=Xv, y_val=truth(Xv))
    error = np.abs(reg.predict(Xt) - truth(Xt)).mean()
    plain = np.abs(base.fit(X, y).predict(Xt) - truth(Xt)).mean()
    assert error < 0.5 * plain
    assert reg.weight_[off].mean() < 0.5 * reg.weight_[~off].mean()
    assert "left-out R²" in repr(reg)


@pytest.mark.parametrize(
    "estimator",
    [
        VotingClassifier([("a", LogisticRegression()), ("b", KNeighborsClassifier())]).set_params(
            b="drop"
        ),
        VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())]),
        StackingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())], cv=2),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    ],
)
def test_estimators_that_hand_weights_on_are_taken(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] > 0
    clf = giw.ReweightedClassifier(estimator, n_folds=2, random_state=0)
    clf.fit(X[:120], y[:120], X_val=X[120:150], y_val=y[120:150])
    assert clf.score(X[150:], y[150:]) > 0.9


def test_a_pipeline_is_weighted_with_metadata_routing_too():
    X, y, Xv, yv, *_ = problem()
    base = make_pipeline(StandardScaler(), LogisticRegression())
    before = giw.ReweightedClassifier(base, random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    with sklearn.config_context(enable_metadata_routing=True):
        after = giw.ReweightedClassifier(base, random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    np.testing.assert_array_equal(before.predict_proba(Xv), after.predict_proba(Xv))


def test_validation_rows_are_not_cut_by_a_search():
    X, y, Xv, yv, *_ = problem(n=60, m=60)
    clf = linear(candidates=["training", "balanced"])
    clf.fit(X, y, X_val=Xv, y_val=yv)
    search = GridSearchCV(clf, {"estimator__C": [0.1, 1.0]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match=r"X_val has as many rows as X.*leave one row"):
        search.fit(X, y, X_val=Xv, y_val=yv)
    search.fit(X, y, X_val=Xv[1:], y_val=yv[1:])
    assert len(search.best_estimator_.val_rows_) == 59


VOTES = VotingClassifier([("a", LogisticRegression()), ("b", KNeighborsClassifier())])


@pytest.mark.parametrize(
    ("settings", "change", "words"),
    [
        ({"estimator": KNeighborsClassifier()}, {}, "takes no sample_weight"),
        ({"estimator": make_pipeline(StandardScaler(), KNeighborsClassifier())}, {}, "takes no"),
        ({"estimator": VOTES}, {}, "VotingClassifier takes no sample_weight"),
        ({"estimator": Ridge()}, {}, "ReweightedRegressor"),
        ({"weights": "klip"}, {}, "must be one of"),
        ({"weights": 3}, {}, "must be one of .*, a function, an estimator"),
        ({"weights": lambda *_: np.ones(3)}, {}, "one weight per training point"),
        ({"weights": lambda z, *_: -z[:, 0]}, {}, "negative"),
        ({}, {"X_val": np.zeros((45, 5))}, "same columns"),
        ({}, {"X_val": None}, "y_val came without X_val"),
        ({}, {"y_val": np.zeros(4)}, "one label per point"),
        ({}, {"groups_val": np.zeros(44)}, "inconsistent numbers of samples"),
        ({}, {"sample_weight": [1.0]}, "sample_weight needs one number per row, 240"),
        ({"estimator": LogisticRegression}, {}, "got the class LogisticRegression; call it"),
        ({"estimator": "hgb"}, {}, "scikit-learn estimator with fit and predict, got 'hgb'"),
        ({"splitter": "knn"}, {}, r"giw\.SupportSplitter, got 'knn'"),
        ({}, {"X": np.ones(240)}, "X must be a table of shape"),
        ({}, {"X": np.ones((240, 2, 1))}, "X must be a table of shape"),
    ],
)
def test_bad_input_is_named_with_a_way_out(settings, change, words):
    X, y, Xv, yv, *_ = problem()
    data = {"X": X, "y": y, "X_val": Xv, "y_val": yv} | change
    with pytest.raises(ValueError, match=words):
        giw.ReweightedClassifier(**{"estimator": LogisticRegression(), **settings}).fit(**data)


def test_a_classifier_without_probabilities_serves_and_offers_none():
    X, y, Xv, yv, *_ = problem()
    clf = giw.ReweightedClassifier(LinearSVC(), random_state=0).fit(X, y, X_val=Xv, y_val=yv)
    assert not hasattr(clf, "predict_proba")
    np.testing.assert_array_equal(clf.decision_function(Xv) > 0, clf.predict(Xv) == "b")


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
    model = make(random_state=3, candidates=["training", "balanced"], n_folds=2)
    model.fit(X, X[:, 0] > 0, X_val=X_val, y_val=X_val[:, 0] > 0)
    assert np.random.get_state()[2] == before  # noqa: NPY002
    assert model._base().random_state == 3
    assert make()._base().random_state is not None


def test_a_progress_bar_if_wanted(capsys):
    X, y, Xv, yv, *_ = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear(candidates=["balanced"], verbose=True).fit(X, y, X_val=Xv, y_val=yv)
    assert "folds" in capsys.readouterr().out


@pytest.mark.parametrize("side", ["training", "validation"])
def test_a_column_that_one_table_lacks_costs_boosted_trees_no_candidate(side):
    X, y, Xv, yv, *_ = problem()
    (X if side == "training" else Xv)[:, 1] = np.nan
    base = HistGradientBoostingClassifier(max_iter=3, random_state=0)
    clf = giw.ReweightedClassifier(base, least_weight=0.0, random_state=0)
    clf.fit(X, y, X_val=Xv, y_val=yv)
    assert len(clf.candidates_) == 9
    assert not any("steps aside" in note for note in clf.notes_)


def test_alike_tables_leave_the_weight_to_plain_fits_and_unlike_ones_do_not():
    """Ten rows of the same kind, and ten with the other labels."""
    rng = np.random.default_rng(0)
    X, Xv = rng.normal(size=(300, 2)), rng.normal(size=(10, 2))
    y, yv = X[:, 0] > 0, Xv[:, 0] > 0
    plain = [
        sum(clf.stack_weight_[name] for name in ("training", "both tables"))
        for clf in (linear(least_weight=0.0).fit(X, y, X_val=Xv, y_val=v) for v in (yv, ~yv))
    ]
    assert plain[0] > 0.5 > 0.2 > plain[1]


def test_labels_that_differ_by_case_or_blanks_are_told():
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(200, 2)), rng.normal(size=(40, 2))
    y, y_val = (np.where(x[:, 0] > 0, "ja", "no") for x in (X, X_val))
    y_val[y_val == "ja"] = "Ja"
    with pytest.warns(UserWarning, match="y_val has the label 'Ja' and y 'ja': write them alike"):
        giw.ReweightedClassifier(LogisticRegression(), random_state=0).fit(
            X, y, X_val=X_val, y_val=y_val
        )
