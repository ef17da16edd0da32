import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from torch import nn

import giw
from giw.nets.methods import METHODS


def problem(seed=0, n=160, m=18):
    """Blobs of class "a" left and "b" right; the world has another blob of "a" far right."""
    rng = np.random.default_rng(seed)
    centers = np.array([[-2.0, 0.0], [2.0, 0.0], [8.0, 0.0]])
    labels = np.array(["a", "b", "a"])

    def draw(size, blobs):
        which = np.arange(size) % blobs
        return centers[which] + 0.3 * rng.normal(size=(size, 2)), labels[which]

    return *draw(n, 2), *draw(m, 3), *draw(300, 3)


def fitted(method="giw", **settings):
    X, y, Xv, yv, *_ = problem()
    settings = {"max_epochs": 60, "pretrain_epochs": 5, "learning_rate": 0.01} | settings
    clf = giw.GIWClassifier(method=method, random_state=0, **settings)
    return clf.fit(X, y, X_val=Xv, y_val=yv)


def test_giw_learns_the_blob_that_training_does_not_have():
    *_, Xt, yt = problem()
    assert fitted("giw").score(Xt, yt) > 0.95
    assert fitted("giw_plus").score(Xt, yt) > 0.95
    assert fitted("train_only").score(Xt, yt) < 0.75


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_and_predicts_probabilities_of_known_labels(method):
    X, *_ = problem()
    clf = fitted(method, max_epochs=2)
    probability = clf.predict_proba(X)
    assert probability.shape == (160, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert set(clf.predict(X)) <= {"a", "b"}
    assert clf.classes_.tolist() == ["a", "b"]


def test_the_split_and_the_history_are_there_to_look_at():
    clf = fitted()
    assert isinstance(clf.split_.inside, np.ndarray)
    assert clf.alpha_ == pytest.approx(np.mean(clf.split_.inside))
    assert not np.any(clf.split_.inside[2::3])
    assert len(clf.history_["loss"]) == 60


@pytest.mark.parametrize("method", ["giw", "giw_plus"])
def test_both_methods_that_split_take_the_splitter_they_are_given(method):
    level = giw.SupportSplitter(level=0.3)
    assert fitted(method, max_epochs=1, splitter=level).split_.level == 0.3


def test_the_same_seed_gives_the_same_probabilities():
    X, *_ = problem()
    np.testing.assert_array_equal(fitted().predict_proba(X), fitted().predict_proba(X))


def test_a_module_of_ones_own_is_copied_not_changed():
    module = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    before = [p.clone() for p in module.parameters()]
    clf = fitted(module=module)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert isinstance(clf.module_, nn.Sequential)


def test_columns_in_any_unit_give_the_same_answer():
    """Powers of two scale exactly, so the standardised columns are the same bits."""
    X, y, Xv, yv, Xt, _ = problem()
    unit = np.array([1024.0, 1 / 1024])
    clf = giw.GIWClassifier(max_epochs=3, random_state=0)
    first = clf.fit(X, y, X_val=Xv, y_val=yv).predict_proba(Xt)
    second = clf.fit(X * unit, y, X_val=Xv * unit, y_val=yv).predict_proba(Xt * unit)
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_pandas_and_torch_come_in():
    X, y, Xv, yv, Xt, _ = problem()
    clf = giw.GIWClassifier(max_epochs=2, random_state=0)
    plain = clf.fit(X, y, X_val=Xv, y_val=yv).predict_proba(Xt)
    frames = [pd.DataFrame(v, columns=["u", "v"]) for v in (X, Xv, Xt)]
    from_pandas = clf.fit(frames[0], pd.Series(y), X_val=frames[1], y_val=pd.Series(yv))
    np.testing.assert_array_equal(from_pandas.predict_proba(frames[2]), plain)
    codes, val_codes = torch.tensor(y == "b"), torch.tensor(yv == "b")
    from_torch = clf.fit(torch.tensor(X), codes, X_val=torch.tensor(Xv), y_val=val_codes)
    np.testing.assert_array_equal(from_torch.predict_proba(torch.tensor(Xt)), plain)


def test_small_images_come_in_as_bytes():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 255, size=(60, 1, 8, 8), dtype=np.uint8)
    y = np.arange(60) % 2
    clf = giw.GIWClassifier(max_epochs=1, random_state=0).fit(X, y, X_val=X[:5] // 2, y_val=y[:5])
    assert clf.predict(X).shape == (60,)


def test_a_label_that_training_never_saw_is_learnt_from_validation():
    X, y, Xv, yv, *_ = problem()
    yv = np.where(np.arange(len(yv)) % 3 == 2, "c", yv)
    clf = giw.GIWClassifier(max_epochs=40, learning_rate=0.01, random_state=0)
    clf.fit(X, y, X_val=Xv, y_val=yv)
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert (clf.predict(Xv)[2::3] == "c").all()


def test_without_validation_data_it_trains_plainly_and_says_so():
    X, y, *_ = problem()
    with pytest.warns(UserWarning, match="no validation data"):
        clf = giw.GIWClassifier(max_epochs=2, random_state=0).fit(X, y)
    assert clf.split_ is None
    assert clf.alpha_ is None


def test_a_single_validation_point_is_enough_to_fit():
    X, y, Xv, yv, *_ = problem()
    clf = giw.GIWClassifier(max_epochs=2, random_state=0).fit(X, y, X_val=Xv[2:3], y_val=yv[2:3])
    assert np.isfinite(clf.predict_proba(X)).all()
    assert clf.alpha_ < 0.1  # outside, as far as one can tell


@pytest.mark.parametrize("spoil", ["constant", "duplicated"])
def test_constant_columns_and_duplicated_rows_do_no_harm(spoil):
    X, y, Xv, yv, Xt, yt = problem()
    if spoil == "constant":
        X, Xv, Xt = (np.column_stack([v, np.full(len(v), 7.0)]) for v in (X, Xv, Xt))
    else:
        X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    clf = giw.GIWClassifier(max_epochs=60, learning_rate=0.01, random_state=0)
    assert clf.fit(X, y, X_val=Xv, y_val=yv).score(Xt, yt) > 0.9


def bad(**change):
    X, y, Xv, yv, *_ = problem()
    return {"X": X, "y": y, "X_val": Xv, "y_val": yv} | change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": np.full((160, 2), np.nan)}, "X holds 320 NaN or infinite"),
        ({"X_val": np.full((18, 2), np.inf)}, "X_val holds 36 NaN or infinite"),
        ({"X": np.zeros((0, 2)), "y": np.zeros(0)}, "0 sample"),
        ({"X_val": np.zeros((0, 2)), "y_val": np.zeros(0)}, "X_val has no rows"),
        ({"X": np.zeros(160)}, "Reshape your data"),
        ({"X_val": np.zeros((18, 3))}, "same columns"),
        ({"y": np.zeros(5)}, r"shape \(160,\), got \(5,\)"),
        ({"y": np.array([None] * 160)}, "160 missing labels"),
        ({"y": np.array(["a"] * 160), "y_val": np.array(["a"] * 18)}, "at least two classes"),
        ({"y_val": np.zeros(18)}, "same kind of labels"),
        ({"X": np.array([["u", "v"]] * 160)}, "numeric"),
        ({"y_val": None}, r"needs labels.*dann, train_only"),
    ],
)
def test_bad_input_is_named_with_a_way_out(change, words):
    with pytest.raises(ValueError, match=words):
        giw.GIWClassifier(max_epochs=1, random_state=0).fit(**bad(**change))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "gwi"}, "known are"),
        ({"module": nn.Linear}, "instance of torch.nn.Module"),
        ({"max_epochs": 0}, "epochs"),
        ({"split_on": "loss"}, "split_on"),
        ({"random_state": -1}, "negative"),
    ],
)
def test_bad_settings_are_named(settings, words):
    X, y, Xv, yv, *_ = problem()
    with pytest.raises(ValueError, match=words):
        giw.GIWClassifier(**settings).fit(X, y, X_val=Xv, y_val=yv)


def test_points_of_another_shape_are_refused_at_prediction():
    with pytest.raises(ValueError, match="expecting 2 features"):
        fitted(max_epochs=1).predict(np.zeros((3, 5)))


def test_clone_keeps_settings_and_forgets_the_fit():
    clf = clone(fitted(max_epochs=1))
    assert clf.max_epochs == 1
    assert not hasattr(clf, "module_")


def test_dann_takes_validation_points_without_labels_and_does_as_with_them():
    rng = np.random.default_rng(0)
    X, Xv = rng.normal(size=(60, 2)), rng.normal(size=(12, 2)) + 1
    y = np.where(X[:, 0] > 0, "a", "b")
    clf = giw.GIWClassifier(method="dann", max_epochs=2, random_state=0)
    without = clf.fit(X, y, X_val=Xv).predict_proba(X)
    labelled = clf.fit(X, y, X_val=Xv, y_val=y[:12]).predict_proba(X)
    np.testing.assert_array_equal(without, labelled)
    with pytest.raises(ValueError, match="early stopping"):
        clf.set_params(early_stopping=True).fit(X, y, X_val=Xv)


def test_labels_without_points_are_a_mistake():
    with pytest.raises(ValueError, match="without X_val"):
        giw.GIWClassifier().fit(np.eye(4), [0, 1, 0, 1], y_val=[0, 1])


@pytest.mark.parametrize("method", ["giw", "giw_plus"])
@pytest.mark.parametrize("n", [6, 12, 18])
def test_a_dozen_training_rows_are_enough_to_be_fitted_to(method, n):
    rng = np.random.default_rng(0)
    X, Xv = rng.normal(size=(n, 3)), rng.normal(size=(8, 3))
    y, yv = np.arange(n) % 2, np.arange(8) % 2
    clf = giw.GIWClassifier(method=method, max_epochs=2, pretrain_epochs=1, random_state=0)
    with pytest.warns(UserWarning, match="rows to compare with"):
        clf.fit(X, y, X_val=Xv, y_val=yv)
    assert np.isfinite(clf.predict_proba(Xv)).all()


def test_the_module_is_copied_and_lazy_layers_follow_random_state():
    """A lazy layer draws its parameters in its first pass, from torch's global stream."""
    X, y, Xv, yv, *_ = problem()
    lazy = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    clf = giw.GIWClassifier(lazy, method="giw", max_epochs=1, pretrain_epochs=1, random_state=0)
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.random.get_rng_state()
        found.append(clf.fit(X, y, X_val=Xv, y_val=yv).predict_proba(X))
        assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(*found)
    assert lazy[0].has_uninitialized_params()


class LooksUp(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(5, 3), nn.Linear(6, 2)

    def forward(self, x):
        return self.last(self.table(x.long()).flatten(1))


@pytest.mark.parametrize("method", ["giw_plus", "pooled_plus"])
def test_codes_of_an_embedding_are_not_jittered(method, monkeypatch):
    def refuse(*_):
        raise AssertionError("a code was moved")

    monkeypatch.setattr("giw.nets.methods.giw_plus.jittered", refuse)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (80, 2)).astype(np.float32)
    sides = {"X_val": X[60:], "y_val": X[60:, 0] > 2}

    def fit(module):
        clf = giw.GIWClassifier(module, method=method, max_epochs=2, random_state=0)
        return clf.fit(X[:60], X[:60, 0] > 2, **sides)

    assert fit(LooksUp()).predict(X).shape == (80,)
    with pytest.raises(AssertionError, match="a code was moved"):
        fit(nn.Linear(2, 2))


def test_weights_of_one_are_no_weights_and_rows_of_weight_zero_are_not_there():
    X, y, Xv, yv, Xt, _ = problem()
    clf = giw.GIWClassifier(max_epochs=3, random_state=0)
    plain = clf.fit(X, y, Xv, yv).predict_proba(Xt)
    weighted = clf.fit(X, y, Xv, yv, sample_weight=np.full(160, 7.0)).predict_proba(Xt)
    np.testing.assert_array_equal(weighted, plain)
    rest = clf.fit(X[:120], y[:120], Xv, yv).predict_proba(Xt)
    none = clf.fit(X, y, Xv, yv, sample_weight=np.arange(160) < 120).predict_proba(Xt)
    np.testing.assert_array_equal(none, rest)


def test_weights_shift_what_the_net_believes_of_points_that_look_alike():
    """With one input for all, the best answer is the share of weight of each label."""
    X, y = np.ones((400, 1)), np.arange(400) % 2
    clf = giw.GIWClassifier(method="train_only", max_epochs=80, learning_rate=0.02, random_state=0)
    clf.fit(X, y, sample_weight=np.where(y == 1, 9.0, 1.0))
    assert clf.predict_proba(X[:1])[0, 1] == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("weight", [np.ones(5), -np.ones(160), np.zeros(160), np.full(160, np.nan)])
def test_weights_that_are_none_are_refused(weight):
    X, y, Xv, yv, *_ = problem()
    with pytest.raises(ValueError, match="sample_weight"):
        giw.GIWClassifier(random_state=0).fit(X, y, Xv, yv, sample_weight=weight)


@pytest.mark.parametrize(
    ("unit", "offset"), [(1.0, 1e8), (1.0, 1e12), (1e39, 0.0), (1e300, 0.0), (1e-300, 0.0)]
)
def test_columns_in_units_that_float32_does_not_hold_do_no_harm(unit, offset):
    X, y, Xv, yv, Xt, yt = problem()
    X, Xv, Xt = (unit * v + offset for v in (X, Xv, Xt))
    clf = giw.GIWClassifier(max_epochs=60, learning_rate=0.01, random_state=0)
    assert clf.fit(X, y, Xv, yv).score(Xt, yt) > 0.9


@pytest.mark.parametrize(
    "dress",
    [
        lambda v: torch.tensor(v, requires_grad=True),
        lambda v: torch.tensor(v).bfloat16().double().bfloat16(),
        lambda v: v.astype(np.longdouble),
        lambda v: v[::-1][::-1],
    ],
    ids=["requires_grad", "bfloat16", "longdouble", "negative strides"],
)
def test_points_in_unusual_dress_are_the_points(dress):
    X, y, Xv, yv, *_ = problem()
    X, Xv = (torch.tensor(v).bfloat16().double().numpy() for v in (X, Xv))
    clf = giw.GIWClassifier(max_epochs=2, random_state=0)
    plain = clf.fit(X, y, Xv, yv).predict_proba(Xv)
    dressed = clf.fit(dress(X), y, dress(Xv), yv).predict_proba(dress(Xv))
    np.testing.assert_allclose(dressed, plain, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": torch.zeros(160, 2, device="meta")}, "holds its values"),
        ({"X_val": torch.zeros(18, 2).to_sparse()}, "to_dense"),
        ({"X": torch.zeros(160, 2, dtype=torch.complex64)}, "complex numbers"),
        ({"X": np.zeros((160, 1, 20, 20)), "X_val": np.full((18, 1, 20, 20), 1e39)}, "too large"),
        ({"X_val": np.zeros((18, 1, 20, 20))}, "points of X_val have shape"),
    ],
)
def test_tensors_without_numbers_are_refused_in_one_line(change, words):
    with pytest.raises(ValueError, match=words) as caught:
        giw.GIWClassifier(max_epochs=1, random_state=0).fit(**bad(**change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "meta"}, "shapes and no values"),
        ({"module": nn.Linear(2, 2, device="meta")}, "build it on 'cpu'"),
        ({"module": nn.Linear(2, 2).bfloat16()}, "come as float32"),
    ],
)
def test_a_net_without_values_is_refused_in_one_line(settings, words):
    with pytest.raises(ValueError, match=words) as caught:
        giw.GIWClassifier(max_epochs=1, random_state=0, **settings).fit(**bad())
    assert "\n" not in str(caught.value)


def test_progress_is_shown_of_all_trainings(capsys):
    fitted("giw_plus", max_epochs=2, stack=True, early_stopping=True, verbose=True)
    shown = capsys.readouterr().out
    for name in (
        "pretraining",
        "giw_plus without fold 3",
        "pooled_plus without fold 1",
        "train_only",
    ):
        assert name in shown
