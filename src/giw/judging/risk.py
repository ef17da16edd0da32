r"""How good is a model on the test distribution, by validation points that it has not seen?

The estimate is their mean loss. For accuracy the interval is the exact one of Clopper and Pearson
[1]_, which covers at least as often as it says for any number of points and any accuracy; for other
losses it is Student's. Weighted training points could narrow it by a tenth at most, and an interval
that believes them covers too little where labels changed.

References
----------
.. [1] Clopper and Pearson, Biometrika 26(4):404-413, 1934.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm, t
from sklearn.base import is_classifier

from giw.checks import as_labels, check_positive, warn_deprecated
from giw.estimators.inputs import (
    encode_and_split,
    row_hashes,
    said_of_copies,
    same_columns,
    table_of,
)

Vector = NDArray[np.float64]
Loss = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


class Summarised:
    """A result that is shown by its ``summary``."""

    def __repr__(self) -> str:
        """The first line."""
        return f"{type(self).__name__}({self.summary().splitlines()[0]})"  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        lines = self.summary().splitlines()  # type: ignore[attr-defined]
        return "<p>" + "<br>".join(map(html.escape, lines)) + "</p>"


@dataclass(frozen=True, repr=False)
class RiskEstimate(Summarised):
    """Expected loss on the test distribution, or accuracy, with a confidence interval.

    Attributes
    ----------
    estimate : float
        Mean of the validation points.
    interval : tuple of two floats
        Confidence interval of the mean.
    confidence : float
        Probability that it is meant to cover.
    metric : str
        "accuracy" (more is better), "squared error" or the name of the loss.
    points : int
        Number of validation points.
    spread : float
        Variance of one point, for :func:`giw.labels_needed`.
    alpha : float or None
        Share of validation points inside the training support.
    inside_estimate, outside_estimate : float or None
        Means inside and outside, where there are such points.
    notes : tuple of str
        What a reader should know of how the estimate was made.
    """

    estimate: float
    interval: tuple[float, float]
    confidence: float
    metric: str
    points: int
    spread: float
    alpha: float | None = None
    inside_estimate: float | None = None
    outside_estimate: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.interval[1] - self.interval[0]

    def summary(self) -> str:
        """The estimate in a few lines of plain text."""
        low, high = self.interval
        text = (
            f"{self.metric} {self.estimate:.3f}, {self.confidence:.0%} interval "
            f"{low:.3f} to {high:.3f}, from {self.points} validation points"
        )
        if self.alpha is not None:
            sides = {"inside": self.inside_estimate, "outside": self.outside_estimate}
            means = [f"{name} {mean:.3f}" for name, mean in sides.items() if mean is not None]
            text += f"\n{self.alpha:.0%} of them inside the training support; {', '.join(means)}"
        return "\n".join([text, *self.notes])


def risk_from_losses(
    val_loss: Vector,  # (m,)
    *,
    confidence: float = 0.95,
    metric: str = "loss",
) -> RiskEstimate:
    """Mean of losses and its confidence interval.

    Parameters
    ----------
    val_loss : array of shape (m,)
        Of a model that has not seen these points. If all are 0 or 1, the interval is exact.
    confidence : float, default=0.95
        Probability that the interval is meant to cover; more of it makes it wider.
    metric : str, default="loss"
        Name for the summary.
    """
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence must lie between 0.5 and 1, got {confidence}")
    m = len(val_loss)
    if m < 2:
        raise ValueError(f"need at least two validation points for an interval, got {m}")
    mean, level = float(np.mean(val_loss)), 0.5 + confidence / 2
    if np.isin(val_loss, (0.0, 1.0)).all():
        right = float(np.sum(val_loss))
        interval = binomial_interval(right, m, 1 - level)
        smoothed = (right + 2) / (m + 4)  # ten of ten right is no variance of zero
        spread = smoothed * (1 - smoothed)
    else:
        spread = float(np.var(val_loss, ddof=1))
        half = float(t.ppf(level, m - 1) * np.sqrt(spread / m))
        interval = mean - half, mean + half
    return RiskEstimate(mean, interval, confidence, metric, m, spread)


def binomial_interval(count: float, m: int, tail: float = 0.025) -> tuple[float, float]:
    """Clopper and Pearson's exact interval with so much probability left out on either side."""
    if not m:
        return 0.0, 1.0
    low = float(beta.ppf(tail, count, m - count + 1)) if count else 0.0
    return low, float(beta.isf(tail, count + 1, m - count)) if count < m else 1.0


def estimate_risk(
    model: Any,
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    loss: Loss | None = None,
    confidence: float = 0.95,
    random_state: Any = None,
    fitted_to_train: Any = "deprecated",
    n_folds: Any = "deprecated",
) -> RiskEstimate:
    """Accuracy of a fitted model on the test distribution, or any mean loss, with an interval.

    Parameters
    ----------
    model : anything with ``predict``
        It must not have been fitted to the validation points. An estimator of giw that was is
        refused: it knows its rows. Its own ``left_out_score_``, or :func:`giw.select`, tells how
        good it is.
    X, y : training data
        They say which validation points lie inside the training support.
    X_val, y_val : validation data
        From the test distribution.
    loss : function of (labels, predictions) to an array of shape (m,), optional
        If not given: accuracy for classifiers, squared error for regressors.
    confidence : float, default=0.95
        Probability that the interval is meant to cover; more of it makes it wider.
    random_state : int, numpy generator or None, default=None
        Without effect since 0.2: nothing is drawn.
    fitted_to_train, n_folds : deprecated
        Without effect since 0.2: training points do not enter the interval any more.
    """
    if not hasattr(model, "predict") or isinstance(model, type):
        raise ValueError(f"model must be a fitted estimator with predict, got {model!r}")
    gone = {"fitted_to_train": fitted_to_train, "n_folds": n_folds}
    warn_deprecated(gone, "the interval is of validation points alone")
    X, X_val, y, y_val = both_tables(X, y, X_val, y_val)
    if len(y_val) < 2:
        raise ValueError(f"need at least two validation points for an interval, got {len(y_val)}")
    measure, metric = measure_of(model, loss)
    _check_kind(model, {"y": y, "y_val": y_val})
    notes = _refuse_known_rows(model, X_val)
    val_loss = measure(y_val, model.predict(X_val))
    found = risk_from_losses(val_loss, confidence=confidence, metric=metric)
    known = {"y": y, "y_target": y_val} if classifies(model) else {}
    encoded = encode_and_split(X, X_val, **known)
    inside, copies = encoded.inside, said_of_copies(encoded.z, encoded.z_target)
    return replace(
        found, notes=notes + (copies,) * bool(copies), alpha=float(inside.mean()),
        inside_estimate=float(val_loss[inside].mean()) if inside.any() else None,
        outside_estimate=float(val_loss[~inside].mean()) if not inside.all() else None,
    )  # fmt: skip


def _refuse_known_rows(model: Any, X_val: Any) -> tuple[str, ...]:
    """Refuse validation rows that a model was fitted to; half of them may be other rows alike."""
    known = getattr(model, "val_rows_", ())
    again = int(np.isin(row_hashes(X_val), known).sum()) if len(known) else 0
    if again > len(X_val) / 2:
        raise ValueError(
            f"{again} of {len(X_val)} validation points were used to fit this "
            f"{type(model).__name__}, and it looks better on them than it is; pass points that it "
            "has not seen, or see its left_out_score_ and giw.select"
        )
    note = f"{again} of {len(X_val)} validation points look like rows that the model was fitted to"
    return (note,) * (again > 0)


def labels_needed(risk: RiskEstimate, width: float) -> int:
    """How many more validation labels make the interval as narrow as ``width``.

    Assumes that the next points are drawn from the test distribution like the first, and that
    losses go on varying as they do.

    Parameters
    ----------
    risk : RiskEstimate
        From :func:`giw.estimate_risk`.
    width : float
        Wanted length of the interval, in the units of the metric.
    """
    if not isinstance(risk, RiskEstimate):
        raise ValueError(
            f"risk must be what giw.estimate_risk gives back, got {type(risk).__name__}"
        )
    width = check_positive(width, "width")
    needed = np.ceil(risk.spread * (2 * norm.ppf(0.5 + risk.confidence / 2) / width) ** 2)
    if needed > (most := 10**7):
        raise ValueError(
            f"more than {most:,} labels are needed for a width of {width:g}; ask for a "
            "wider interval"
        )
    return max(int(needed) - risk.points, 0)


def both_tables(
    X: Any, y: Any, X_val: Any, y_val: Any
) -> tuple[Any, Any, NDArray[Any], NDArray[Any]]:
    """Rows and labels of both tables, checked."""
    X, X_val = table_of(X, "X"), table_of(X_val, "X_val")
    X_val = same_columns(X, X_val)
    for values, name in ((y, "y"), (y_val, "y_val")):
        if values is None:
            raise ValueError(f"{name} is None; a risk is of labels, pass those of all points")
    return X, X_val, as_labels(y, len(X), "y"), as_labels(y_val, len(X_val), "y_val")


def classifies(model: Any) -> bool:
    """Also of a model that is not scikit-learn's."""
    try:
        return bool(is_classifier(model))
    except (AttributeError, TypeError):
        return hasattr(model, "predict_proba") or hasattr(model, "classes_")


def _check_kind(model: Any, labels: dict[str, NDArray[Any]]) -> None:
    """Text never equals a number: an accuracy of zero would be no finding."""
    known = np.asarray(getattr(model, "classes_", ()))[:1].tolist()
    for name, y in labels.items():
        if known and len(y) and isinstance(known[0], str) != isinstance(y[0], str):
            raise ValueError(
                f"the model knows classes such as {known[0]!r} and {name} holds "
                f"{y[:1].tolist()[0]!r}; give the labels that it was fitted to"
            )


def measure_of(model: Any, loss: Loss | None) -> tuple[Callable[..., Vector], str]:
    """A function of labels and predictions to losses (or right answers), and its name."""
    if loss is not None and not callable(loss):
        raise ValueError(
            f"loss must be a function of (labels, predictions), got {loss!r}; None is accuracy, or "
            "squared error of a regressor"
        )
    if loss is not None:
        return lambda y, found: _losses(loss, y, found), getattr(loss, "__name__", "loss")
    if classifies(model):
        return lambda y, found: (np.asarray(found) == y).astype(np.float64), "accuracy"
    return lambda y, found: np.square(np.asarray(found, dtype=np.float64) - y), "squared error"


def _losses(loss: Loss, y: NDArray[Any], found: NDArray[Any]) -> Vector:
    values = np.asarray(loss(y, found), dtype=np.float64)
    if values.shape != y.shape:
        raise ValueError(
            f"loss must give one number per point, got shape {values.shape} for {len(y)} points; "
            "a mean over all points hides what varies"
        )
    if not np.isfinite(values).all():
        raise ValueError("loss gave NaN or infinite values")
    return values
