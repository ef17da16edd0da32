"""What people pass by mistake: a right answer, or one line that names the way out."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import giw

RNG = np.random.default_rng(0)
X, X_VAL = RNG.normal(size=(80, 3)), RNG.normal(size=(16, 3))
Y, Y_VAL = (X[:, 0] > 0).astype(int), (X_VAL[:, 0] > 0).astype(int)
FRAME, VAL_FRAME = (pd.DataFrame(side, columns=list("abc")) for side in (X, X_VAL))
DAYS = FRAME.assign(day=pd.date_range("2020", periods=80))
VAL_DAYS = VAL_FRAME.assign(day=pd.date_range("2021", periods=16))


def linear(**options):
    return giw.ReweightedClassifier(LogisticRegression(), random_state=0, **options)


def net(**options):
    return giw.GIWClassifier(max_epochs=1, random_state=0, **options)


class Pair(torch.nn.Module):
    """Logits and features, as many nets give them."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x), x


BOTH = pytest.mark.parametrize("make", [linear, net])


@BOTH
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((FRAME, Y, VAL_FRAME.rename(columns={"a": "z"}), Y_VAL), r"lacks \['a'\] and also has"),
        ((DAYS, Y, VAL_DAYS, Y_VAL), "column 'day' holds dates or times"),
        ((X, Y, X_VAL[:0], Y_VAL[:0]), "X_val has no rows; pass X_val=None"),
        ((X, np.array([1, "a"] * 40, dtype=object), X_VAL, Y_VAL), "text and other labels"),
        ((X, np.where(X[:, 0] > 1, np.nan, Y), X_VAL, Y_VAL), "missing labels"),
        ((X, np.array(["n", "y"])[Y], X_VAL, Y_VAL), "the same kind of labels"),
        ((X, pd.Series(np.array(["n", "y"])[Y]), X_VAL, Y_VAL), "such as '[ny]' and y_val [01]; "),
        ((X, np.zeros(80, dtype=int), X_VAL, np.zeros(16, dtype=int)), "got 1 class: 0$"),
        ((X, Y, X_VAL[0], Y_VAL[:1]), "(?i)reshape"),
    ],
)
def test_mistakes_get_one_line_with_the_way_out(make, data, words):
    X, y, X_val, y_val = data
    with pytest.raises(ValueError, match=words) as caught:
        make().fit(X, y, X_val=X_val, y_val=y_val)
    if "eshape" not in words:
        assert "\n" not in str(caught.value)


@BOTH
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "data",
    [
        (FRAME, Y, X_VAL, Y_VAL),
        (X, Y, VAL_FRAME, Y_VAL),
        (X.tolist(), Y.tolist(), X_VAL.tolist(), Y_VAL.tolist()),
        (X, Y[:, None], X_VAL, Y_VAL[:, None]),
        (X, pd.Series(Y, dtype="Int64"), X_VAL, pd.Series(Y_VAL, dtype="Int64")),
        (X.astype(object), Y, X_VAL.astype(object), Y_VAL),
        (X, Y, X_VAL[:1], Y_VAL[:1]),
        (X, np.zeros(80, dtype=int), X_VAL, Y_VAL),
    ],
)
def test_odd_but_clear_input_gives_the_plain_answer(make, data):
    X_, y, X_val, y_val = data
    found = make().fit(X_, y, X_val=X_val, y_val=y_val).predict(X_)
    assert np.isin(found, [0, 1]).all()
    if len(X_val) == 16 and np.ptp(np.asarray(y)):
        plain = make().fit(X, Y, X_val=X_VAL, y_val=Y_VAL).predict(X)
        np.testing.assert_array_equal(found, plain)


def tensor(values):
    return torch.from_numpy(np.asarray(values))


SAME = {  # what came, and plain arrays of the same values
    "asks for a gradient": (lambda x: tensor(x).requires_grad_(), lambda x: x),
    "bfloat16": (lambda x: tensor(x).bfloat16(), lambda x: tensor(x).bfloat16().float().numpy()),
    "longdouble": (lambda x: np.asarray(x, dtype=np.longdouble), lambda x: x),
    "matrix": (np.matrix, lambda x: x),
    "pyarrow": (lambda x: pa.table(pd.DataFrame(x, columns=list("abc"))), lambda x: x),
    "sparse frame": (lambda x: pd.DataFrame(x).astype(pd.SparseDtype(float)), lambda x: x),
}


@BOTH
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAME)
def test_values_count_and_not_what_holds_them(make, name):
    odd, plain = SAME[name]
    found = make().fit(odd(X), Y, X_val=odd(X_VAL), y_val=Y_VAL).predict_proba(odd(X))
    right = make().fit(plain(X), Y, X_val=plain(X_VAL), y_val=Y_VAL).predict_proba(plain(X))
    np.testing.assert_allclose(found, right, atol=1e-6)


@BOTH
def test_columns_are_put_in_the_order_of_training_at_fit_and_at_predict_time(make):
    clf = make().fit(FRAME, Y, X_val=VAL_FRAME[["c", "a", "b"]], y_val=Y_VAL)
    right = make().fit(FRAME, Y, X_val=VAL_FRAME, y_val=Y_VAL).predict_proba(FRAME)
    np.testing.assert_array_equal(clf.predict_proba(FRAME[["b", "c", "a"]]), right)


def renamed(frame, names):
    frame = frame.copy()
    frame.columns = pd.Index(names, dtype=object)
    return frame


def with_column(make):
    return FRAME.assign(p=make(80)), Y, VAL_FRAME.assign(p=make(16)), Y_VAL


@BOTH
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((X + 1j, Y, X_VAL + 1j, Y_VAL), "X holds complex numbers; pass real ones"),
        ((FRAME * 1j, Y, VAL_FRAME * 1j, Y_VAL), "column 'a' holds complex numbers"),
        ((X, Y + 1j, X_VAL, Y_VAL + 1j), "y holds complex numbers"),
        ((X, np.array([b"n", b"y"])[Y], X_VAL, np.array([b"n", b"y"])[Y_VAL]), "y holds bytes"),
        ((X, Y, X_VAL, np.array([1, pd.NA] * 8)),
         "y_val holds 8 missing labels"),
        ((renamed(FRAME, ["a", 1, "c"]), Y, renamed(VAL_FRAME, ["a", 1, "c"]), Y_VAL),
         "kinds int and str; make them text: X.columns"),
        ((renamed(FRAME, ["a", "a", "c"]), Y, VAL_FRAME, Y_VAL), "X has two columns called 'a'"),
        ((renamed(FRAME, ["a", "b", "c\udc80"]), Y, VAL_FRAME, Y_VAL), "is no valid text"),
        ((tensor(X).to("meta"), Y, X_VAL, Y_VAL), "on meta; pass one that holds its values"),
        ((tensor(X).to_sparse(), Y, X_VAL, Y_VAL), "layout torch.sparse_coo .*to_dense"),
        ((torch.quantize_per_tensor(tensor(X).float(), 0.1, 0, torch.qint8), Y, X_VAL, Y_VAL),
         "X is a quantized tensor; pass X.dequantize"),
        ((sparse.csr_array(X), Y, X_VAL, Y_VAL), "X is sparse; pass X.toarray"),
        ((FRAME.to_records(index=False), Y, VAL_FRAME, Y_VAL), "pass pandas.DataFrame"),
        ((None, Y, X_VAL, Y_VAL), "X must be an array or a table, got NoneType"),
        (({"a": X}, Y, X_VAL, Y_VAL), "X must be an array or a table, got dict"),
        (with_column(lambda n: pd.period_range("2020", periods=n, freq="D")), "p.*hold"),
        (with_column(lambda n: pd.arrays.IntervalArray.from_breaks(range(n + 1))), "p.*hold"),
        (with_column(lambda n: pd.cut(np.arange(n), 4)), "p.*hold"),
        (with_column(lambda n: [b"a", b"b"] * (n // 2)), "p.*hold"),
        (with_column(lambda n: [[1]] * n), "p.*hold"),
        ((X[:, 0], Y, X_VAL[:, 0], Y_VAL), r"shape \(80,\). Reshape .* for one column"),
        ((X[0, 0], Y, X_VAL, Y_VAL), r"X must be a table of shape \(n, d\), got shape \(\)"),
        ((np.where(X > 1, np.nan, X), Y, X_VAL, Y_VAL), "NaN.*impute"),
        ((X, np.arange(80), X_VAL, np.arange(16)), "80 different values in 96 rows"),
        ((X, np.arange(80).astype(str), X_VAL, np.arange(16).astype(str)), "a name and not a cl"),
    ],
)  # fmt: skip
def test_what_neither_can_take_is_refused_in_one_line(make, data, words):
    X, y, X_val, y_val = data
    with pytest.raises(ValueError, match=words) as caught:
        make().fit(X, y, X_val=X_val, y_val=y_val)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_masked_values_are_missing():
    """numpy's asarray hands out what the mask hides."""
    masked = np.ma.masked_array(X, X > 1)
    trees = giw.ReweightedClassifier(HistGradientBoostingClassifier(max_iter=5), random_state=0)
    found = trees.fit(masked, Y, X_val=X_VAL, y_val=Y_VAL).predict_proba(masked)
    gaps = np.where(X > 1, np.nan, X)
    right = trees.fit(gaps, Y, X_val=X_VAL, y_val=Y_VAL).predict_proba(gaps)
    np.testing.assert_array_equal(found, right)
    with pytest.raises(ValueError, match="NaN"):
        giw.kmm(masked, X_VAL)


@pytest.mark.parametrize(
    "moved", [lambda x: x + 1e8, lambda x: x + 1e12, lambda x: 1e39 * x, lambda x: 1e-100 * x]
)
def test_units_in_which_a_linear_model_stops_early_are_told(moved):
    """Logistic regression ends at half of the accuracy there, without a word."""
    clf = linear()
    with pytest.warns(UserWarning, match=r"columns \['x0', .* put a scaler in front"):
        clf.fit(moved(X), Y, X_val=moved(X_VAL), y_val=Y_VAL)
    assert any("scaler" in note for note in clf.notes_)
    scaled = giw.ReweightedClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), random_state=0
    )
    trees = giw.ReweightedClassifier(HistGradientBoostingClassifier(max_iter=5), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for quiet in (scaled, trees):
            quiet.fit(moved(X), Y, X_val=moved(X_VAL), y_val=Y_VAL)
            assert quiet.score(moved(X), Y) > 0.9
        linear().fit(
            np.c_[X, np.full(80, 1e9)], Y, X_val=np.c_[X_VAL, np.full(16, 1e9)], y_val=Y_VAL
        )


@pytest.mark.parametrize("unit", [1e-300, 1e-39, 1e-20, 1e20, 1e300])
def test_a_split_does_not_depend_on_the_unit(unit):
    far = np.r_[X_VAL[:8], 5 + X_VAL[8:]]
    right = giw.SupportSplitter(random_state=0).fit(X).split(far)
    found = giw.SupportSplitter(random_state=0).fit(unit * X).split(unit * far)
    assert 0 < right.alpha < 1
    np.testing.assert_allclose(found.p_value, right.p_value, atol=0.02)


@pytest.mark.parametrize("name", ["kmm", "kliep", "lsif", "ulsif", "rulsif"])
def test_weights_put_columns_in_order_and_refuse_numbers_without_squares(name):
    weigh = getattr(giw, name)
    found = weigh(FRAME, VAL_FRAME[["c", "a", "b"]])
    np.testing.assert_array_equal(found, weigh(FRAME, VAL_FRAME))
    with pytest.raises(ValueError, match=r"x_val lacks \['a'\]"):
        weigh(FRAME, renamed(VAL_FRAME, ["x", "b", "c"]))
    for unit in (1e-300, 1e300):
        with pytest.raises(ValueError, match=r"x_train holds numbers up to .* typical size"):
            weigh(unit * X, unit * X_VAL)


def test_a_pipeline_may_make_numbers_of_dates_itself():
    numbers = FunctionTransformer(lambda frame: frame.drop(columns="day"))
    clf = giw.ReweightedClassifier(make_pipeline(numbers, LogisticRegression()), random_state=0)
    clf.fit(DAYS, Y, X_val=VAL_DAYS, y_val=Y_VAL)
    assert clf.score(DAYS, Y) > 0.8


def test_categories_that_only_validation_has_join_the_others():
    """pandas would make text of them, which boosted trees refuse."""
    frame = FRAME.assign(kind=pd.Categorical(np.array(["u", "v"])[Y]))
    val_frame = VAL_FRAME.assign(kind=pd.Categorical(np.array(["w", "u"])[Y_VAL]))
    trees = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    clf = giw.ReweightedClassifier(trees, random_state=0)
    clf.fit(frame, Y, X_val=val_frame, y_val=Y_VAL)
    assert clf.predict(frame).shape == (80,)
    assert val_frame["kind"].cat.categories.tolist() == ["u", "w"]  # what came is not changed


@pytest.mark.parametrize("unit", [1e300, 1e-200])
def test_huge_and_tiny_numbers_are_told_apart(unit):
    clf = giw.ReweightedClassifier(HistGradientBoostingClassifier(max_iter=5), random_state=0)
    found = clf.fit(unit * X, Y, X_val=unit * X_VAL, y_val=Y_VAL).split_.inside
    np.testing.assert_array_equal(found, clf.fit(X, Y, X_val=X_VAL, y_val=Y_VAL).split_.inside)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (torch.nn.Linear(3, 1), "2 numbers per point, one per class, got shape"),
        (torch.nn.Linear(5, 2), r"cannot take points of shape \(3,\)"),
        (torch.nn.Linear(3, 2).double(), "which come as float32"),
        (torch.nn.Linear(3, 2).requires_grad_(False), "no parameter to train"),
        (Pair(), "the logits alone, a tensor of shape .*, got a tuple"),
    ],
)
def test_a_net_that_does_not_fit_the_data_is_told_before_training(module, words):
    with pytest.raises(ValueError, match=words):
        net(module=module).fit(X, Y, X_val=X_VAL, y_val=Y_VAL)


def test_images_as_bytes_and_as_floats_of_another_scale_are_not_mixed():
    """Bytes are divided by 255; floats up to 255 beside them would all lie outside."""
    images = RNG.integers(0, 256, size=(40, 1, 4, 4)).astype(np.uint8)
    for X, X_val in ((images, images[:8] * 1.0), (images * 1.0, images[:8])):
        with pytest.raises(ValueError, match="holds bytes, which are divided by 255"):
            net(method="giw").fit(X, Y[:40], X_val=X_val, y_val=Y[:8])
    clf = net(method="giw").fit(images, Y[:40], X_val=images[:8] / 255, y_val=Y[:8])
    assert clf.alpha_ > 0.5


def test_numbers_too_large_for_a_net_are_told():
    fitted = net().fit(X, Y, X_val=X_VAL, y_val=Y_VAL)
    with pytest.raises(ValueError, match=r"X holds numbers up to .*, too large for float32"):
        fitted.predict(1e100 * X)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_folds": 1}, "n_folds must be a whole number of at least 2, got 1"),
        ({"n_folds": 2.5}, "n_folds must be a whole number"),
        ({"max_epochs": "a"}, "max_epochs must be a whole number of at least 1, got 'a'"),
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"device": "gpu"}, "device 'gpu' cannot be used"),
        ({"device": None}, "device None cannot be used"),
        ({"device": "cuda:99"}, "device 'cuda:99' cannot be used: .*; pass 'auto', 'cpu' or"),
        ({"splitter": 3}, "splitter must be a giw.SupportSplitter, got 3"),
    ],
)
def test_settings_of_a_net_are_asked_for_by_their_names(settings, words):
    with pytest.raises(ValueError, match=words) as caught:
        giw.GIWClassifier(random_state=0, **settings).fit(X, Y, X_val=X_VAL, y_val=Y_VAL)
    assert "\n" not in str(caught.value)


def test_whole_numbers_of_a_grid_are_settings_too(tmp_path):
    """GridSearchCV over np.arange(…) hands out numpy's own."""
    settings = {"max_epochs": 2, "pretrain_epochs": 1, "batch_size": 16}
    found = [
        giw.GIWClassifier(method="giw", random_state=0, **side)
        .fit(X, Y, X_val=X_VAL, y_val=Y_VAL, checkpoint=tmp_path / str(number))
        .predict_proba(X)
        for number, side in enumerate([settings, {k: np.int64(v) for k, v in settings.items()}])
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array(["n", "y"])[Y], "must hold numbers, got text"),
        (pd.date_range("2020", periods=80), "must hold numbers, got dates"),
        (np.where(Y, np.nan, 1.0), "NaN or infinity"),
    ],
)
def test_targets_of_a_regression_are_numbers(y, words):
    with pytest.raises(ValueError, match=words):
        giw.ReweightedRegressor(Ridge()).fit(X, y, X_val=X_VAL, y_val=Y_VAL)


MODEL = LogisticRegression().fit(X, Y)
RISK = giw.estimate_risk(MODEL, X, Y, X_VAL, Y_VAL, random_state=0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: giw.estimate_risk("model", X, Y, X_VAL, Y_VAL), "fitted estimator with predict"),
        (lambda: giw.estimate_risk(MODEL, X, Y, X_VAL, None), "y_val is None"),
        (lambda: giw.estimate_risk(MODEL, X, Y, X_VAL[:0], Y_VAL[:0]), "two validation points"),
        (lambda: giw.estimate_risk(MODEL, X, Y, X_VAL, Y_VAL, loss="hinge"), "loss must be a"),
        (
            lambda: giw.estimate_risk(MODEL, X, Y.astype(str), X_VAL, Y_VAL.astype(str)),
            "classes such as 0 and y holds '",
        ),
        (lambda: giw.estimate_risk(MODEL, sparse.csr_matrix(X), Y, X_VAL, Y_VAL), "X is sparse"),
        (lambda: giw.select(MODEL, X, Y, X_VAL, Y_VAL), "got one model"),
        (lambda: giw.select({"a": 3}, X, Y, X_VAL, Y_VAL), "model 'a' must be"),
        (
            lambda: giw.select([MODEL, Ridge()], X, Y, X_VAL, Y_VAL),
            "classifiers and regressors, and an accuracy cannot be compared",
        ),
        (lambda: giw.labels_needed(MODEL, width=0.1), "what giw.estimate_risk gives back, got Log"),
        (lambda: giw.labels_needed(RISK, width="a"), "width must be a positive number, got 'a'"),
        (lambda: giw.label_first(MODEL, X, X_VAL, n_points=2.5), "whole number .*, got 2.5"),
        (lambda: giw.label_first(MODEL, X, X_VAL, n_points=99), "between 1 and 16.*, got 99"),
        (lambda: giw.diagnose(sparse.csr_matrix(X), Y, X_VAL, Y_VAL), "X is sparse; pass X.toarr"),
        (lambda: giw.diagnose(X[:5], Y[:5], X_VAL, Y_VAL), "at least 20 training rows"),
        (
            lambda: giw.diagnose(X, np.array([1, "a"] * 40, dtype=object), X_VAL),
            "text and other labels",
        ),
    ],
)
def test_judging_and_diagnosing_say_what_they_need(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_risk_of_a_model_that_is_none_of_scikit_learns():
    class Rule:
        classes_ = np.array([0, 1])

        def predict(self, points):
            return (points[:, 0] > 0).astype(int)

    found = giw.estimate_risk(Rule(), X, Y, X_VAL, Y_VAL, random_state=0)
    assert found.metric == "accuracy"
    assert found.estimate > 0.9
