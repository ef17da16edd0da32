"""Choose a model by its risk on the test distribution, and what to label next."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from giw.checks import as_generator, callers_level, check_count
from giw.estimators.fitting import fit_weighted, last_step
from giw.estimators.inputs import (
    check_estimator_instance,
    encode_and_split,
    rows_of,
    said_of_copies,
    table_of,
)
from giw.estimators.reweighted import Reweighted
from giw.estimators.stack import folds_of
from giw.judging.risk import (
    Loss,
    RiskEstimate,
    Summarised,
    Vector,
    both_tables,
    classifies,
    measure_of,
    risk_from_losses,
)
from giw.support import nearest
from giw.tables import Encoder


@dataclass(frozen=True, repr=False)
class Selection(Summarised):
    """The model that does best on the test distribution, as far as can be told.

    Attributes
    ----------
    name : str
        Of the best model.
    model : estimator
        It, fitted to all data.
    risks : dict of str to RiskEstimate
        Of left-out validation points, for every model.
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
    models: Mapping[str, Any] | Sequence[Any] | Reweighted,
    X: Any = None,
    y: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    *,
    loss: Loss | None = None,
    confidence: float = 0.95,
    n_folds: int = 5,
    groups_val: Any = None,
    random_state: Any = None,
) -> Selection:
    """Pick the model with the best estimated risk on the test distribution, fitted to all data.

    In each fold a part of the validation points is left out. Every model is fitted to training data
    and to the rest of the validation data, where its ``fit`` takes ``X_val`` and ``y_val``, and
    judged on the points that it has not seen. ``GridSearchCV`` on training folds would judge by the
    training distribution.

    Parameters
    ----------
    models : mapping from name to estimator, sequence of estimators, or a fitted stack
        Unfitted; copied. Of a fitted :class:`giw.ReweightedClassifier` the candidates and the stack
        are compared by what they said of left-out points, and no data are needed.
    X, y, X_val, y_val : training and validation data
        Rows and labels, as for :func:`giw.estimate_risk`.
    loss : function of (labels, predictions) to an array of shape (m,), optional
        If not given: accuracy for classifiers, squared error for regressors.
    confidence : float, default=0.95
        Probability that the interval is meant to cover; more of it makes it wider.
    n_folds : int, default=5
        Folds of the validation points; more of them cost more fits, each on more rows.
    groups_val : array of shape (m,), optional
        Validation points of one group are left out together.
    random_state : int, numpy generator or None, default=None
        Seeds the random draws; None draws anew every time.
    """
    if isinstance(models, Reweighted):
        return _of_candidates(models, loss, confidence)
    if hasattr(models, "fit"):
        raise ValueError("models must be a list or a mapping of names to estimators, got one model")
    named = _named(models)
    X, X_val, y, y_val = both_tables(X, y, X_val, y_val)
    folds = min(n_folds, len(y_val) if groups_val is None else len(np.unique(groups_val)))
    if folds < 2:
        raise ValueError(f"need at least two folds and two validation points, got {folds}")
    encoder = Encoder().fit(X, X_val)
    if copies := said_of_copies(encoder.transform(X), encoder.transform(X_val)):
        warnings.warn(copies, UserWarning, stacklevel=callers_level())
    kinds = {classifies(model) for model in named.values()}
    if loss is None and len(kinds) > 1:
        raise ValueError(
            "models are classifiers and regressors, and an accuracy cannot be compared with a "
            "squared error; pass models of one kind, or a loss that judges both"
        )
    strata = y_val if classifies(next(iter(named.values()))) else np.zeros(len(y_val))
    fold = folds_of(strata, folds, as_generator(random_state), groups_val)
    risks = {}
    for name, model in named.items():
        measure, metric = measure_of(model, loss)
        val_loss = np.zeros(len(y_val))
        # a model that takes no validation data needs one fit for all folds
        plain = None if _takes_validation(model) else _fit(model, X, y, X_val, y_val)
        for k in range(folds):
            out = fold == k
            fitted = plain or _fit(model, X, y, rows_of(X_val, ~out), y_val[~out])
            val_loss[out] = measure(y_val[out], fitted.predict(rows_of(X_val, out)))
        risks[name] = risk_from_losses(val_loss, confidence=confidence, metric=metric)
    order = _ordered(risks)
    return Selection(order[0], _fit(named[order[0]], X, y, X_val, y_val), risks, order)


def _of_candidates(model: Reweighted, loss: Loss | None, confidence: float) -> Selection:
    """Candidates of a fitted stack, by what fits without the point said of it."""
    losses = left_out_losses(model, loss)
    if losses is None:
        raise ValueError("this model has left out no validation points; fit it to at least two")
    metric = measure_of(model, loss)[1]
    risks = {
        name: risk_from_losses(each, confidence=confidence, metric=metric)
        for name, each in losses.items()
        if name in model.candidates_ or name == "stack"
    }
    order = _ordered(risks)
    return Selection(order[0], model.candidates_.get(order[0], model), risks, order)


def left_out_losses(model: Reweighted, loss: Loss | None = None) -> dict[str, Vector] | None:
    """Losses or right answers at left-out validation rows, (m,), of each candidate and the stack.

    None where nothing was left out.
    """
    left = getattr(model, "left_out_", None)
    if left is None:
        return None
    found = {**dict(zip(left.names, left.prediction, strict=True)), "stack": left.mixed}
    if hasattr(model, "classes_"):
        found = {name: model.classes_[said.argmax(axis=1)] for name, said in found.items()}
    return {name: measure_of(model, loss)[0](left.y, said) for name, said in found.items()}


def _ordered(risks: Mapping[str, RiskEstimate]) -> tuple[str, ...]:
    """Names, the best first: of accuracy more is better, of a loss less."""
    sign = -1 if next(iter(risks.values())).metric == "accuracy" else 1
    return tuple(sorted(risks, key=lambda name: sign * risks[name].estimate))


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
        Without effect since 0.2: nothing is drawn.
    """
    X = table_of(X, "X")
    X_unlabelled = table_of(X_unlabelled, "X_unlabelled")
    m = len(X_unlabelled)
    if check_count(n_points, "n_points", least=1) > m:
        raise ValueError(
            f"n_points must lie between 1 and {m}, the number of unlabelled points, got {n_points}"
        )
    found = encode_and_split(X, X_unlabelled)
    z, z_new, inside = found.z, found.z_target, found.inside
    unsure = np.full(m, 0.5)
    if hasattr(model, "predict_proba"):
        probability = np.asarray(model.predict_proba(X_unlabelled))
        classes = probability.shape[1]
        unsure = (1 - probability.max(axis=1)) * classes / max(classes - 1, 1)
    # of the points outside, the farthest first: some lie just beyond the last training row
    distance = nearest(z_new, z[:10_000], 1)[0][:, 0]
    far = distance / max(float(distance.max()), 1e-12)
    return _spread_out(np.where(inside, unsure / 2, (1 + far) / 2), z_new, n_points)


def _spread_out(value: Vector, z: Vector, count: int) -> Any:
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


def _takes_validation(model: Any) -> bool:
    """Whether ``fit`` takes validation data; inside a pipeline they would not be transformed."""
    prefix, last = last_step(model)
    takes = has_fit_parameter(last, "X_val") and has_fit_parameter(last, "y_val")
    if takes and prefix:
        raise ValueError(
            "a pipeline does not transform X_val for its last step; put the pipeline "
            "inside: ReweightedClassifier(make_pipeline(…))"
        )
    return takes


def _fit(model: Any, X: Any, y: Any, X_val: Any, y_val: Any) -> Any:
    """A fitted copy; validation data go to the ``fit`` that takes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said once, by the final fit, is enough
        if _takes_validation(model):
            return clone(model).fit(X, y, X_val=X_val, y_val=y_val)
        return fit_weighted(model, X, y, None)


def _named(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Models by names, which are those of their classes if none are given."""
    named: dict[str, Any] = dict(models) if isinstance(models, Mapping) else {}
    for model in () if isinstance(models, Mapping) else models:
        name = type(model).__name__
        count = sum(key.split(" ")[0] == name for key in named)
        named[f"{name} {count + 1}" if count else name] = model
    if not named:
        raise ValueError("no models to choose from")
    for name, model in named.items():
        check_estimator_instance(model, f"model {name!r}")
    return named
