"""Fitting any estimator with sample weights, and its predictions in one shape."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, config_context, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from giw.estimators.inputs import is_frame, rows_of
from giw.threads import one_thread

Vector = NDArray[np.float64]


def last_step(estimator: Any) -> tuple[str, Any]:
    """What a pipeline ends in, and the prefix of its parameters; any other estimator itself."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def weight_keyword(estimator: BaseEstimator) -> str:
    """The keyword of ``fit`` that takes sample weights; an estimator without one is refused."""
    prefix, last = last_step(estimator)
    if not takes_weights(last):
        raise ValueError(
            f"{type(last).__name__} takes no sample_weight in fit, so weights would be ignored; "
            "use an estimator that does, such as HistGradientBoostingClassifier, "
            "RandomForestClassifier or LogisticRegression"
        )
    return f"{prefix}sample_weight"


def takes_weights(estimator: Any) -> bool:
    """Whether ``fit`` takes sample weights, or hands them on to estimators that do."""
    several = isinstance(getattr(estimator, "estimators", None), list)
    if has_fit_parameter(estimator, "sample_weight") and not several:  # a vote asks its members
        return True
    parameters = inspect.signature(estimator.fit).parameters.values()
    if not several and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        return False
    held = getattr(estimator, "estimators", None) or getattr(estimator, "estimator", None) or []
    members = [member for _, member in held] if isinstance(held, list) else [held]
    members = [member for member in members if not isinstance(member, str)]  # "drop"
    return bool(members) and all(takes_weights(member) for member in members)


def takes_any_unit(estimator: Any) -> bool:
    """Whether columns may be in any unit: trees only compare, and a pipeline is its owner's."""
    trees = ("sklearn.tree", "sklearn.ensemble", "sklearn.dummy", "lightgbm", "xgboost", "catboost")
    return isinstance(estimator, Pipeline) or type(estimator).__module__.startswith(trees)


def fit_weighted(estimator: BaseEstimator, X: Any, y: NDArray[Any], weight: Vector | None) -> Any:
    """A fitted copy of the estimator; where there is one class only, the constant.

    Rows of weight zero are left out. Weights that are all one are not handed on, which many
    estimators fit faster.
    """
    keyword: dict[str, Any] = {}
    if weight is not None and np.any(weight != 1):
        counts = weight > 0
        if not counts.all():
            X, y, weight = rows_of(X, counts), y[counts], weight[counts]
        keyword = {weight_keyword(estimator): weight}
    if isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        X = without_empty(X)
    if is_classifier(estimator) and len(np.unique(y)) == 1:
        return DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y)
    # with routing enabled a pipeline refuses "step__sample_weight"; here the keyword is certain
    with config_context(enable_metadata_routing=False), one_thread():
        if is_classifier(estimator) and type(last_step(estimator)[1]).__module__.startswith("xgb"):
            classes, codes = np.unique(y, return_inverse=True)
            if not np.array_equal(classes, np.arange(len(classes))):
                return CountedFromZero(clone(estimator).fit(X, codes, **keyword), classes)
        return clone(estimator).fit(X, y, **keyword)


def without_empty(X: Any) -> Any:
    """Columns of numbers without any value hold zero; scikit-learn's boosted trees fail on them."""
    if not is_frame(X):
        empty = np.isnan(X).all(axis=0) if X.dtype.kind == "f" else np.zeros(X.shape[1], bool)
        return np.where(empty, 0.0, X) if empty.any() else X
    empty = [X.dtypes.iloc[j].kind == "f" and X.iloc[:, j].isna().all() for j in range(X.shape[1])]
    return X.fillna(dict.fromkeys(X.columns[empty], 0.0)) if any(empty) else X


def refuse_columns(estimator: BaseEstimator, X: Any) -> None:
    """Name all columns of text, or with missing values, that a base does not take, and the way out.

    A base that takes them fits to a few rows; whatever else fails there is for the fits to tell.
    """
    import pandas as pd

    names = list(X.columns) if is_frame(X) else [f"x{j}" for j in range(X.shape[1])]
    text = [name for name in names if is_frame(X) and _holds_text(X[name])]
    gaps = np.asarray(pd.isna(X))
    if not text and not gaps.any():
        return
    first = np.argsort(~gaps.any(axis=1), kind="stable")[:50]  # rows with missing values
    half = np.arange(len(first)) % 2
    try:
        y = half if is_classifier(estimator) else half.astype(float)
        clone(estimator).fit(rows_of(X, first), y)
    except Exception as error:  # in any way that a base may fail
        said, name = str(error).lower(), type(estimator).__name__
        words = ("could not convert", "text", "str", "dtype", "object")
        if text and any(word in said for word in words):
            raise ValueError(
                f"columns {text!r} hold text, which {name} does not take; put an encoder in front: "
                "make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown='ignore'), "
                f"{text!r}), remainder='passthrough'), ...), or leave the columns out"
            ) from error
        if gaps.any() and "nan" in said:
            some = [names[j] for j in np.flatnonzero(gaps.any(axis=0))]
            raise ValueError(
                f"columns {some!r} have missing values (NaN), which {name} does not take; put an "
                "imputer in front: make_pipeline(SimpleImputer(), ...), or leave the rows out"
            ) from error


def _holds_text(column: Any) -> bool:
    """Whether something is no number: text, and categories such as the intervals of pandas.cut."""
    values = column.cat.categories if str(column.dtype) == "category" else column
    plain = getattr(values.dtype, "kind", "O") in "biufmM"
    return not plain and any(isinstance(v, str | bytes) or hasattr(v, "mid") for v in values)


class CountedFromZero(BaseEstimator):
    """A fitted classifier that knows classes as 0, 1, 2, …, and labels of any kind around it."""

    def __init__(self, model: Any, classes_: NDArray[Any]) -> None:
        self.model, self.classes_ = model, classes_

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels as they were given."""
        return self.classes_[np.asarray(self.model.predict(X), dtype=np.int64)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Columns in the order of ``classes_``."""
        return np.asarray(self.model.predict_proba(X), dtype=np.float64)


def predictions(
    model: Any,
    X: Any,  # k rows
    classes: NDArray[Any] | None,  # (c,), none for a regression
    *,
    limits: tuple[float, float] | None = None,
    least: float = 1e-3,
    vote: float = 0.9,
) -> NDArray[np.float64]:
    """Probabilities of all classes, (k, c), or predicted numbers, (k,).

    Parameters
    ----------
    limits : tuple of two floats, optional
        Predicted numbers beyond them count as the nearer one. A linear model may be off by any
        amount where the target lies far from the training table, and one such row would decide.
    least : float, default=1e-3
        Smaller probabilities, and those of classes that the model never saw, become this one:
        a single confident mistake does not decide about a candidate.
    vote : float, default=0.9
        The probability of the predicted class where the model gives no probabilities.
    """
    if classes is None:
        found = np.asarray(model.predict(X), dtype=np.float64).reshape(-1)
        return found if limits is None else np.clip(found, *limits)
    if hasattr(model, "predict_proba"):
        column = np.searchsorted(classes, model.classes_)
        probability = np.zeros((X.shape[0], len(classes)))
        probability[:, column] = model.predict_proba(X)
    else:
        code = np.searchsorted(classes, np.asarray(model.predict(X)))
        probability = np.full((X.shape[0], len(classes)), (1 - vote) / max(len(classes) - 1, 1))
        probability[np.arange(len(code)), code] = vote
    probability = np.maximum(probability, least)
    return probability / probability.sum(axis=1, keepdims=True)


def few_values(column: NDArray[Any], most: int) -> NDArray[Any]:
    """A column in which every value has moved to one of at most ``most`` values of the column.

    Values are cut into ``most // 2`` cells of equally many rows, and each cell into the halves
    below and above the middle between its least and its greatest value; a value moves to the end of
    its half. Trees put a threshold midway between neighbouring values. That is midway between two
    cells, or the middle of one: either way the value that came and the value that it became are on
    the same side, so that trees grown on the one treat the other alike.

    Parameters
    ----------
    column : array of shape (n,)
        Finite numbers, or missing ones, which stay.
    most : int
        At least two.
    """
    known = ~np.isnan(column)
    values, place, count = np.unique(column[known], return_inverse=True, return_counts=True)  # (k,)
    if len(values) <= most:
        return column
    middle = (np.cumsum(count) - count / 2) / count.sum()
    cell = np.minimum((middle * (most // 2)).astype(np.int64), most // 2 - 1)  # (k,) ascending
    starts = np.flatnonzero(np.r_[True, np.diff(cell) > 0])
    sizes = np.diff(np.r_[starts, len(values)])
    least, greatest = (np.repeat(values[at], sizes) for at in (starts, starts + sizes - 1))
    moved = np.where(values <= (least + greatest) / 2, least, greatest)
    result = column.copy()
    result[known] = moved[place]
    return result


def binned_for(estimator: BaseEstimator, X: Any) -> Any:
    """The table on which scikit-learn's boosted trees are fitted; other estimators get X.

    Where rows have weights, scikit-learn 1.8 and later look for every edge of every bin in a pass
    of its own, which takes several times as long as growing the trees. A column of at most
    ``max_bins`` values is binned at once, and all candidates share the work done here.
    """
    if not isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return X
    categories = getattr(estimator, "categorical_features", None)
    if categories is not None and not (isinstance(categories, str) and categories == "from_dtype"):
        return X  # which of the columns are numbers is then for the trees to say
    most = estimator.max_bins
    if not is_frame(X):
        return np.stack([few_values(c, most) for c in X.T], axis=1) if _can_be_binned(X) else X
    result = X.copy()
    for j, kind in enumerate(X.dtypes):
        if isinstance(kind, np.dtype) and _can_be_binned(column := X.iloc[:, j].to_numpy()):
            result.isetitem(j, few_values(column, most))
    return result


def _can_be_binned(values: NDArray[Any]) -> bool:
    """Numbers of which the middle of two can be taken."""
    return values.dtype.kind in "iuf" and not np.isinf(values).any()
