import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import giw


def only(column):
    """A model that sees one column."""
    return make_pipeline(FunctionTransformer(lambda x: x[:, [column]]), LogisticRegression())


def spurious(seed=0, n=400, m=40):
    """Column 0 tells the class everywhere; column 1 tells it better, but in training only."""
    rng = np.random.default_rng(seed)

    def draw(size, strength):
        y = rng.integers(0, 2, size)
        sign = 2 * y - 1
        return np.c_[sign + rng.normal(size=size), strength * sign + rng.normal(size=size)], y

    return *draw(n, 2.0), *draw(m, 0.0)


def test_select_picks_what_holds_in_the_test_distribution_and_grid_search_does_not():
    X, y, Xv, yv = spurious()
    search = GridSearchCV(only(0), {"functiontransformer": [f.steps[0][1] for f in MODELS]}, cv=3)
    assert search.fit(X, y).best_params_["functiontransformer"] is MODELS[1].steps[0][1]
    found = giw.select({"lasting": MODELS[0], "spurious": MODELS[1]}, X, y, Xv, yv, random_state=0)
    assert found.name == "lasting"
    assert found.order == ("lasting", "spurious")
    assert found.model.predict(Xv).shape == (40,)
    assert found.summary().startswith("lasting: accuracy")


MODELS = [only(0), only(1)]


def test_models_that_use_validation_data_are_cross_fitted():
    """Labels are coin tosses: a model that learns validation labels by heart must not profit."""
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    X, Xv = rng.normal(size=(120, 2)), rng.normal(size=(60, 2))
    y, yv = rng.integers(0, 2, 120), rng.integers(0, 2, 60)
    clf = giw.ReweightedClassifier(DecisionTreeClassifier(random_state=0), random_state=0)
    found = giw.select([clf, LogisticRegression()], X, y, Xv, yv, random_state=0)
    assert found.risks["ReweightedClassifier"].estimate < 0.75
    assert set(found.order) == {"ReweightedClassifier", "LogisticRegression"}


def test_candidates_of_a_fitted_stack_are_compared_by_left_out_points():
    X, y, Xv, yv = spurious()
    clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    clf.fit(X, y, X_val=Xv, y_val=yv)
    found = giw.select(clf)
    assert set(found.order) == {*clf.candidates_, "stack"}
    assert found.risks["stack"].estimate == clf.left_out_score_["stack"]
    assert found.risks["training"].estimate == clf.left_out_score_["training"]
    assert found.model is (clf if found.name == "stack" else clf.candidates_[found.name])
    assert repr(found).count("\n") == 0
    plain = giw.ReweightedClassifier(LogisticRegression()).fit(X, y, X_val=Xv)
    with pytest.raises(ValueError, match="left out no validation points"):
        giw.select(plain)


def test_a_loss_is_minimised():
    X, y, Xv, yv = spurious()

    def wrong(label, prediction):
        return (label != prediction).astype(float)

    found = giw.select(MODELS, X, y, Xv, yv, loss=wrong, random_state=0)
    assert found.name == "Pipeline"
    assert found.order == ("Pipeline", "Pipeline 2")
    assert found.risks["Pipeline"].estimate < found.risks["Pipeline 2"].estimate


def test_points_outside_the_support_are_labelled_first_and_spread_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    pool = np.r_[rng.normal(size=(80, 2)), rng.normal(size=(10, 2)) / 5 + 8.0,
                 rng.normal(size=(10, 2)) / 5 - 8.0]  # fmt: skip
    first = giw.label_first(model, X, pool, 6, random_state=0)
    assert len(set(first.tolist())) == 6
    assert (first[:2] >= 80).all()
    assert {first[0] >= 90, first[1] >= 90} == {True, False}  # one from each far cluster


def test_inside_the_support_unsure_points_come_first():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 1))
    model = LogisticRegression(C=100).fit(X, X[:, 0] > 0)
    pool = np.array([[-0.7], [0.02], [0.7]])
    assert giw.label_first(model, X, pool, 1, random_state=0)[0] == 1


def test_bad_input_is_named():
    X, y, Xv, yv = spurious()
    with pytest.raises(ValueError, match="no models"):
        giw.select({}, X, y, Xv, yv)
    with pytest.raises(ValueError, match="n_points"):
        giw.label_first(LogisticRegression().fit(X, y), X, Xv, 41)
    pipeline = make_pipeline(StandardScaler(), giw.GIWClassifier(max_epochs=1))
    with pytest.raises(ValueError, match="put the pipeline inside"):
        giw.select([pipeline], X, y, Xv, yv)
