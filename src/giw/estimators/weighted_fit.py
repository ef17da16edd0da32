"""Fitting any estimator with sample weights, and its loss on single points."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from giw.estimators.bins import binned_for

Vector = NDArray[np.float64]
LEAST_PROBABILITY = 1e-2  # a point that a model finds less likely counts as this unlikely
FEW_BINS = 32
MOST_LOSS = -float(np.log(LEAST_PROBABILITY))


def weight_keyword(estimator: BaseEstimator) -> str:
    """The keyword of ``fit`` that takes sample weights; an estimator without one is refused."""
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    if not takes_weights(last):
        raise ValueError(
            f"{type(last).__name__} takes no sample_weight in fit, so weights would be ignored; "
            "use an estimator that does, such as HistGradientBoostingClassifier, "
            "RandomForestClassifier or LogisticRegression"
        )
    return f"{prefix}sample_weight"


def takes_weights(estimator: Any) -> bool:
    """Whether ``fit`` takes sample weights, or hands them on to estimators that do."""
    if has_fit_parameter(estimator, "sample_weight"):
        return True
    parameters = inspect.signature(estimator.fit).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        return False
    held = getattr(estimator, "estimators", None) or getattr(estimator, "estimator", None) or []
    members = [member for _, member in held] if isinstance(held, list) else [held]
    members = [member for member in members if not isinstance(member, str)]  # "drop"
    return bool(members) and all(takes_weights(member) for member in members)


def fit_weighted(estimator: BaseEstimator, X: Any, y: NDArray[Any], weight: Vector) -> Any:
    """A fitted copy of the estimator; where there is one class only, the constant."""
    keyword = {weight_keyword(estimator): weight}
    constant = _constant(estimator, y)
    return constant or _counted(estimator, binned_for(estimator, X, weight), y, keyword)


def fit_plain(estimator: BaseEstimator, X: Any, y: NDArray[Any]) -> Any:
    """A copy fitted without weights; where a fold has one class only, the constant."""
    return _constant(estimator, y) or _counted(estimator, X, y, {})


def quicker_copy(estimator: BaseEstimator) -> BaseEstimator:
    """A copy for judging single points of a large table, whose own fit need not be its best.

    scikit-learn's boosted trees look for every bin edge of every column in a pass of its own where
    rows have weights; that takes four times as long as growing the trees. With 32 bins in place of
    255 it does not, and the trees are hardly worse.
    """
    bins = {
        name: FEW_BINS
        for name, value in estimator.get_params().items()
        if name.rpartition("__")[2] == "max_bins" and isinstance(value, int) and value > FEW_BINS
    }
    return clone(estimator).set_params(**bins)


def _constant(estimator: BaseEstimator, y: NDArray[Any]) -> Any:
    if is_classifier(estimator) and len(np.unique(y)) == 1:
        return DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y)
    return None


class CountedFromZero:
    """A fitted classifier that knows classes as 0, 1, 2, …, and labels of any kind around it."""

    def __init__(self, model: Any, classes: NDArray[Any]) -> None:
        self.model, self.classes_ = model, classes

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels as they were given."""
        return self.classes_[np.asarray(self.model.predict(X), dtype=np.int64)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Columns in the order of ``classes_``."""
        return np.asarray(self.model.predict_proba(X), dtype=np.float64)


def _counted(estimator: BaseEstimator, X: Any, y: NDArray[Any], keyword: dict[str, Any]) -> Any:
    """A fitted copy; XGBoost is given classes counted from zero, and a fold may lack one."""
    if is_classifier(estimator) and type(_last_step(estimator)).__module__.startswith("xgboost"):
        classes, codes = np.unique(y, return_inverse=True)
        if not np.array_equal(classes, np.arange(len(classes))):
            return CountedFromZero(clone(estimator).fit(X, codes, **keyword), classes)
    try:
        return clone(estimator).fit(X, y, **keyword)
    except ValueError as error:
        text = _text_column(X)
        if text is None or "could not convert" not in str(error):
            raise
        raise ValueError(
            f"column {text!r} holds text, which {type(estimator).__name__} does not take; put an "
            "encoder in front, for example make_pipeline(make_column_transformer((OrdinalEncoder(),"
            f" [{text!r}]), remainder='passthrough'), ...), or leave the column out"
        ) from error


def _text_column(X: Any) -> Any:
    """The first column of a frame that holds text."""
    for name in getattr(X, "columns", ()):
        if any(isinstance(value, str) for value in X[name]):
            return name
    return None


def _last_step(estimator: BaseEstimator) -> BaseEstimator:
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def label_loss(model: Any, X: Any, y: NDArray[Any]) -> Vector:
    """Minus the log probability that a fitted classifier gives each label, at most 4.6.

    A class that it never saw has probability zero. Without ``predict_proba`` a prediction counts
    as certain.
    """
    if not hasattr(model, "predict_proba"):
        return np.where(model.predict(X) == y, 0.0, MOST_LOSS)
    probability = np.asarray(model.predict_proba(X), dtype=np.float64)
    column = np.searchsorted(model.classes_, y)
    column[column == len(model.classes_)] = 0
    known = model.classes_[column] == y
    mine = np.where(known, probability[np.arange(len(y)), column], 0.0)
    return -np.log(np.clip(mine, LEAST_PROBABILITY, 1.0))


def residual(model: Any, X: Any, y: NDArray[Any]) -> Vector:
    """What a fitted regressor misses at each point."""
    return np.asarray(y, dtype=np.float64) - np.asarray(model.predict(X), dtype=np.float64)


def residual_loss(residuals: Vector, scale: float) -> Vector:
    r"""Minus the log likelihood under a Cauchy distribution, up to a constant.

    :math:`\log(1 + r^2 / s^2)` still tells a large miss from a huge one, and a single huge one
    does not decide everything.
    """
    return np.log1p(np.square(residuals / scale))
