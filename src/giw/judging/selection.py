"""Choose a model by its risk in the test distribution, and what to label next."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from giw.checks import as_generator, check_count
from giw.estimators.folds import stratified_folds
from giw.estimators.inputs import check_estimator_instance
from giw.estimators.rows import as_rows, rows_of
from giw.estimators.weighted_fit import fit_plain
from giw.judging.risk import (
    Loss,
    RiskEstimate,
    _classifies,
    _data,
    _measure,
    _strata,
    inside_and_weight,
    risk_from_losses,
)
from giw.support import SupportSplitter
from giw.tables import encoded


@dataclass(frozen=True)
class Selection:
    """The model that does best in the test distribution, as far as can be told.

    Attributes
    ----------
    name : str
        Of the best model.
    model : estimator
        It, fitted to all data.
    risks : dict of str to RiskEstimate
        Cross-fitted, for every candidate.
    order : tuple of str
        Names, the best first.
    """

    name: str
    model: Any
    risks: dict[str, RiskEstimate]
    order: tuple[str, ...]

    def summary(self) -> str:
        """One line per model, the best first."""
        return "\n".join(
            f"{name}: {self.risks[name].metric} {self.risks[name].estimate:.3f} "
            f"({self.risks[name].interval[0]:.3f} to {self.risks[name].interval[1]:.3f})"
            for name in self.order
        )


def select(
    models: Mapping[str, Any] | Sequence[Any],
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    loss: Loss | None = None,
    confidence: float = 0.95,
    n_folds: int = 5,
    random_state: Any = None,
) -> Selection:
    """Pick the model with the best estimated risk in the test distribution, and fit it to all data.

    In each fold a part of both training and validation data is left out. Every candidate is fitted
    to the rest, validation data included where its ``fit`` takes ``X_val`` and ``y_val``, and
    judged on the part that it has not seen. ``GridSearchCV`` on training folds would judge by the
    training distribution.

    Parameters
    ----------
    models : mapping from name to estimator, or sequence of estimators
        Unfitted; copied.
    X, y, X_val, y_val : training and validation data
        Rows and labels, as for :func:`giw.estimate_risk`.
    loss : function of (labels, predictions) to an array of shape (n,), optional
        If not given: accuracy for classifiers, squared error for regressors.
    confidence : float, default=0.95
        Probability that the interval is meant to cover; more of it makes it wider.
    n_folds : int, default=5
        Folds in which models are fitted anew; more of them cost more fits, each on more rows.
    random_state : int, numpy generator or None, default=None
        Seeds the random draws; None draws anew every time.
    """
    if hasattr(models, "fit"):
        raise ValueError("models must be a list or a mapping of names to estimators, got one model")
    named = dict(models) if isinstance(models, Mapping) else _named(models)
    if not named:
        raise ValueError("no models to choose from")
    for name, model in named.items():
        check_estimator_instance(model, f"model {name!r}")
    if loss is None and len({_classifies(model) for model in named.values()}) > 1:
        raise ValueError(
            "models are classifiers and regressors, and an accuracy cannot be compared with a "
            "squared error; pass models of one kind, or a loss that judges both"
        )
    generator = as_generator(random_state)
    X, X_val, y, y_val = _data(X, y, X_val, y_val)
    folds = min(n_folds, len(y), len(y_val))
    if folds < 2:
        raise ValueError(f"need at least two folds and two validation points, got {folds}")
    first = next(iter(named.values()))
    fold = stratified_folds(_strata(first, y), folds, generator)
    val_fold = stratified_folds(_strata(first, y_val), folds, generator)
    inside, weight = inside_and_weight(X, X_val, generator)
    risks = {}
    for name, model in named.items():
        measure, metric = _measure(model, loss)
        train_loss, val_loss = np.zeros(len(y)), np.zeros(len(y_val))
        for k in range(folds):
            out, val_out = fold == k, val_fold == k
            fitted = _fit(
                model, rows_of(X, ~out), y[~out], rows_of(X_val, ~val_out), y_val[~val_out]
            )
            train_loss[out] = measure(y[out], fitted.predict(rows_of(X, out)))
            val_loss[val_out] = measure(y_val[val_out], fitted.predict(rows_of(X_val, val_out)))
        risks[name] = risk_from_losses(
            val_loss, inside, train_loss, weight, confidence=confidence, metric=metric
        )
    sign = -1 if loss is None and risks[next(iter(risks))].metric == "accuracy" else 1
    order = tuple(sorted(risks, key=lambda name: sign * risks[name].estimate))
    return Selection(order[0], _fit(named[order[0]], X, y, X_val, y_val), risks, order)


def label_first(
    model: Any,
    X: Any,
    X_unlabelled: Any,
    n_points: int = 20,
    *,
    random_state: Any = None,
) -> NDArray[np.int64]:
    """Indices of the unlabelled points whose labels would teach most, the first one first.

    Points outside the training support come first, because nothing else can say what their labels
    are; inside, points that the model is unsure of. Points close to one that is listed already
    have to wait. They are no random sample: use their labels for training, and draw validation
    points for :func:`giw.estimate_risk` at random.

    Parameters
    ----------
    model : fitted estimator
        Its ``predict_proba``, if any, says where it is unsure.
    X : training points
        Rows of the training table, (n, d).
    X_unlabelled : points from the test distribution
        Rows whose labels could be asked for, (m, d).
    n_points : int, default=20
        How many of them to choose.
    random_state : int, numpy generator or None, default=None
        Seeds the random draws; None draws anew every time.
    """
    X, X_unlabelled = as_rows(X, "X"), as_rows(X_unlabelled, "X_unlabelled")
    m = len(X_unlabelled)
    if check_count(n_points, "n_points", least=1) > m:
        raise ValueError(
            f"n_points must lie between 1 and {m}, the number of unlabelled points, got {n_points}"
        )
    generator = as_generator(random_state)
    z, z_val = encoded(X, X_unlabelled)
    splitter = SupportSplitter(
        level=max(0.05, 1.5 / len(z)), random_state=int(generator.integers(2**31))
    )
    split = splitter.fit(z).split(z_val)
    posterior = np.asarray(split.posterior, dtype=np.float64)
    unsure = np.full(m, 0.5)
    if hasattr(model, "predict_proba"):
        probability = np.asarray(model.predict_proba(X_unlabelled))
        classes = probability.shape[1]
        unsure = (1 - probability.max(axis=1)) * classes / max(classes - 1, 1)
    # of the points outside, the strangest first: some lie just beyond the last training row
    score = np.asarray(split.score, dtype=np.float64)
    strange = (score - score.min()) / max(float(np.ptp(score)), 1e-12)
    value = (1 - posterior) * (1 + strange) / 2 + posterior * unsure / 2  # (m,)
    return _spread_out(value, z_val, n_points)


def _spread_out(value: NDArray[np.float64], z: NDArray[np.float64], count: int) -> Any:
    """Take the most valuable point again and again; its neighbours lose value."""
    reach = float(np.median(np.linalg.norm(z - np.median(z, axis=0), axis=1))) / 2 or 1.0
    left, chosen = value + 1e-9, []
    for _ in range(count):
        best = int(np.argmax(left))
        chosen.append(best)
        near = np.exp(-np.square(np.linalg.norm(z - z[best], axis=1) / reach) / 2)
        left = left * (1 - 0.9 * near)
        left[chosen] = -1.0
    return np.array(chosen)


def _fit(model: Any, X: Any, y: Any, X_val: Any, y_val: Any) -> Any:
    """A fitted copy; validation data go to the ``fit`` that takes them."""
    prefix, last = "", model
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    known = inspect.signature(last.fit).parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said once, by the final fit, is enough
        if {"X_val", "y_val"} <= set(known):
            if prefix:
                raise ValueError(
                    "a pipeline does not transform X_val for its last step; put the pipeline "
                    "inside: ReweightedClassifier(make_pipeline(…))"
                )
            return clone(model).fit(X, y, X_val=X_val, y_val=y_val)
        return fit_plain(model, X, y)


def _named(models: Sequence[Any]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for model in models:
        name = type(model).__name__
        count = sum(key.split(" ")[0] == name for key in names)
        names[f"{name} {count + 1}" if count else name] = model
    return names
