r"""How good is a model in the world that the validation data come from?

The validation mean is right on average and, with few labels, wide. Training points inside the
support say something too, once they are weighted: their mean estimates the risk inside the
support, with a bias that nobody knows. What they say is believed as far as both agree,

.. math:: a = \frac{r}{1 + (d / 1.2)^6},

where d is the disagreement :math:`\alpha (\bar\ell_{\rm in} - \hat\mu_w)` in units of its standard
error and r the share of its variance that is the validation points'. The estimate moves towards
them, :math:`\hat R = \bar\ell_{\rm val} - \tfrac14 a\, \alpha (\bar\ell_{\rm in} - \hat\mu_w)`. The
interval does not move: it stays around the validation mean, and its part that is due to inside
points shrinks by the factor :math:`1 - 0.15\, a`.

Why that is safe: without bias, agreement means that the validation mean is close to the truth,
which then lies well within the shorter interval. With a bias of any size, all that can be lost are
validation means between 0.85 and 1 times the half width away from the truth, on one side: 2.3 %. In
the normal approximation a nominal 95 % covers 94.8 % without bias and at least 92.7 % with any (a
test integrates it).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t
from sklearn.base import BaseEstimator, is_classifier

from giw.checks import as_generator, as_labels, check_positive
from giw.estimators.folds import stratified_folds
from giw.estimators.inputs import check_estimator_instance, check_same_columns
from giw.estimators.ratios import fit_ratio
from giw.estimators.rows import as_rows, rows_of
from giw.estimators.static_weights import effective_trust, likelihood_trust, shrunk
from giw.estimators.weighted_fit import fit_plain
from giw.support import SupportSplitter
from giw.tables import encoded
from giw.weights import ClassifierRatio

Vector = NDArray[np.float64]
Loss = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
LARGEST_SAY = 0.25  # of weighted training points in the estimate
MOST_NARROWER = 0.15  # more is narrower, and covers less where training points are biased
AGREEMENT = 1.2  # standard errors up to which both count as saying the same
LEAST_EFFECTIVE = 0.05
MOST_LABELS = 10**7


@dataclass(frozen=True)
class RiskEstimate:
    """Expected loss in the test distribution, or accuracy, with a confidence interval.

    Attributes
    ----------
    estimate : float
        Estimated mean of the loss, or of the accuracy, on the test distribution.
    interval : tuple of two floats
        Its interval.
    confidence : float
        Probability that the intervals are meant to cover.
    metric : str
        "accuracy" (more is better), "squared error" or the name of the loss.
    val_estimate : float
        Validation points alone.
    val_interval : tuple of two floats
        Their interval; narrower only where it is cut off at 0 or 1.
    train_estimate : float or None
        Weighted training points alone: the risk inside the training support.
    train_say : float
        The weight that they got in the estimate, at most 0.25. The interval is around the
        validation points' mean.
    alpha : float
        Share of validation points inside the training support.
    points : int
        Number of validation points.
    notes : tuple of str
        What a reader should know of how the estimate was made.
    """

    estimate: float
    interval: tuple[float, float]
    confidence: float
    metric: str
    val_estimate: float
    val_interval: tuple[float, float]
    train_estimate: float | None
    train_say: float
    alpha: float
    points: int
    notes: tuple[str, ...] = ()
    _parts: _Parts | None = None

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.interval[1] - self.interval[0]

    def summary(self) -> str:
        """The estimate in a few lines of plain text."""
        low, high = self.interval
        val_low, val_high = self.val_interval
        lines = [
            f"{self.metric} {self.estimate:.3f}, {self.confidence:.0%} interval "
            f"{low:.3f} to {high:.3f}",
            f"{self.points} validation points alone: {self.val_estimate:.3f}, "
            f"{val_low:.3f} to {val_high:.3f}",
        ]
        if self.train_estimate is not None:
            lines.append(
                f"weighted training points, inside the support ({self.alpha:.0%} of validation): "
                f"{self.train_estimate:.3f}, used with weight {self.train_say:.2f}"
            )
        return "\n".join([*lines, *self.notes])


@dataclass(frozen=True)
class _Parts:
    """Variance of one validation point, inside part and rest, and what training adds."""

    inside: float  # of alpha · inside mean, times m
    rest: float  # of everything else, times m
    train: float  # of alpha · weighted training mean
    gap: float  # alpha · (inside mean − weighted training mean)

    def combine(self, m: float) -> tuple[float, float]:
        """Say of the training points, and variance of the validation mean with m labels.

        The variance is what is left when agreement has made the inside part narrower.
        """
        inside = self.inside / m
        agree = 0.0
        if inside > 0:
            disagreement = self.gap**2 / (inside + self.train) / AGREEMENT**2
            agree = inside / (inside + self.train) / (1 + disagreement**3)
        return LARGEST_SAY * agree, self.rest / m + (1 - MOST_NARROWER * agree) ** 2 * inside


def risk_from_losses(
    val_loss: Vector,
    inside: Vector | None = None,
    train_loss: Vector | None = None,
    weight: Vector | None = None,
    *,
    confidence: float = 0.95,
    metric: str = "loss",
) -> RiskEstimate:
    """Combine losses of validation points and of weighted training points.

    Parameters
    ----------
    val_loss : array of shape (m,)
        Of a model that has not seen these points.
    inside : array of shape (m,), optional
        Membership of each in the training support; all if not given.
    train_loss, weight : arrays of shape (n,), optional
        Losses of the model, or of its like, on training points that it has not seen, and their
        weights. Without them the validation points are alone.
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
    member = np.ones(m) if inside is None else np.asarray(inside, dtype=np.float64)
    binary = bool(np.isin(val_loss, (0.0, 1.0)).all())
    # two successes and two failures more (Agresti and Coull): ten of ten right is not certainty
    extra = 4.0 if binary else 0.0
    alpha = float(member.mean())
    mean = float((val_loss.sum() + extra / 2) / (m + extra))
    inner_count = member.sum() + alpha * extra
    inner = float((member @ val_loss + alpha * extra / 2) / inner_count) if alpha > 0 else mean
    if binary:
        total, within = mean * (1 - mean), inner * (1 - inner)
    else:
        total = float(np.var(val_loss, ddof=1))
        within = float(member @ np.square(val_loss - inner)) / max(float(member.sum()) - 1, 1.0)
    inside_variance = min(alpha * within, total)
    parts = _Parts(inside_variance, total - inside_variance, 0.0, 0.0)
    train_mean = None
    if train_loss is not None and weight is not None and alpha > 0:
        share = weight / weight.sum()
        train_mean = float(share @ train_loss)
        variance = float(np.square(share) @ np.square(train_loss - train_mean))
        # no error among a handful of effective points is no certainty either
        variance = max(variance, float(np.square(share).sum()) * within * 0.5)
        parts = replace(parts, train=alpha**2 * variance, gap=alpha * (inner - train_mean))
    quantile = norm.ppf(0.5 + confidence / 2) if binary else t.ppf(0.5 + confidence / 2, m - 1)
    say, variance = (0.0, total / (m + extra)) if train_mean is None else parts.combine(m + extra)
    # the interval stays around the cautious mean; the estimate is the plain one, moved
    plain = float(val_loss.mean())
    plain_inner = float(member @ val_loss / member.sum()) if alpha > 0 else plain
    gap = 0.0 if train_mean is None else alpha * (plain_inner - train_mean)
    estimate = plain - say * gap
    bounds = (0.0, 1.0) if binary else (-np.inf, np.inf)

    def interval(center: float, spread: float) -> tuple[float, float]:
        half = float(quantile) * float(np.sqrt(spread))
        return max(bounds[0], center - half), min(bounds[1], center + half)

    return RiskEstimate(
        estimate=estimate,
        interval=interval(mean, variance),
        confidence=confidence,
        metric=metric,
        val_estimate=plain,
        val_interval=interval(mean, total / (m + extra)),
        train_estimate=train_mean,
        train_say=say,
        alpha=alpha,
        points=m,
        _parts=parts,
    )


def estimate_risk(
    model: Any,
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    loss: Loss | None = None,
    fitted_to_train: bool = True,
    confidence: float = 0.95,
    n_folds: int = 5,
    random_state: Any = None,
) -> RiskEstimate:
    """Accuracy of a fitted model in the test distribution, or any mean loss, with an interval.

    Validation points must not have been used to fit the model: for models that use them, such as
    :class:`giw.ReweightedClassifier`, see :func:`giw.select`, which cross-fits.

    Parameters
    ----------
    model : fitted scikit-learn estimator
        Or anything with ``predict``, if ``fitted_to_train`` is False.
    X, y : training data
        Inside the support they join the estimate, weighted by how common points like them are in
        the test distribution.
    X_val, y_val : validation data
        From the test distribution.
    loss : function of (labels, predictions) to an array of shape (n,), optional
        If not given: accuracy for classifiers, squared error for regressors.
    fitted_to_train : bool, default=True
        A model is too good on points that it was fitted to. If True, copies of it are fitted to
        folds of the training data, and each training point is judged by a copy that has not seen
        it. If False, X is taken as data that the model has not seen.
    confidence : float, default=0.95
        Probability that the interval is meant to cover; more of it makes it wider.
    n_folds : int, default=5
        Folds in which models are fitted anew; more of them cost more fits, each on more rows.
    random_state : int, numpy generator or None, default=None
        Seeds the random draws; None draws anew every time.
    """
    generator = as_generator(random_state)
    if not hasattr(model, "predict") or isinstance(model, type):
        raise ValueError(f"model must be a fitted estimator with predict, got {model!r}")
    if fitted_to_train:
        check_estimator_instance(model, "model")
    X, X_val, y, y_val = _data(X, y, X_val, y_val)
    if len(y_val) < 2:
        raise ValueError(f"need at least two validation points for an interval, got {len(y_val)}")
    measure, metric = _measure(model, loss)
    _check_kind(model, y, "y")
    _check_kind(model, y_val, "y_val")
    val_loss = measure(y_val, model.predict(X_val))
    notes: tuple[str, ...] = ()
    if fitted_to_train:
        fold = stratified_folds(_strata(model, y), min(n_folds, len(y)), generator)
        train_loss = np.zeros(len(y))
        for k in np.unique(fold):
            with warnings.catch_warnings():
                # copies get no validation data on purpose; the note below says so, once
                warnings.filterwarnings("ignore", "no validation data", UserWarning)
                copy = fit_plain(model, rows_of(X, fold != k), y[fold != k])
            train_loss[fold == k] = measure(y[fold == k], copy.predict(rows_of(X, fold == k)))
        adapts = "X_val" in inspect.signature(model.fit).parameters
        notes = (
            "training points were judged by copies fitted without them"
            + ", and without validation data" * adapts,
        )
    else:
        train_loss = measure(y, model.predict(X))
    inside, weight = inside_and_weight(X, X_val, generator)
    found = risk_from_losses(
        val_loss, inside, train_loss, weight, confidence=confidence, metric=metric
    )
    return replace(found, notes=notes)


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
    if risk._parts is None:
        raise ValueError("this estimate does not know its variance; make it by estimate_risk")
    parts, quantile = risk._parts, float(norm.ppf(0.5 + risk.confidence / 2))

    def wide(m: int) -> bool:
        return 2 * quantile * float(np.sqrt(parts.combine(m)[1])) > width

    low, high = risk.points, risk.points
    while wide(high):
        low, high = high, 2 * high
        if high > MOST_LABELS:
            raise ValueError(
                f"more than {MOST_LABELS:,} labels are needed for a width of {width:g}; ask for a "
                "wider interval"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide(middle) else (low, middle)
    return max(high - risk.points, 0)


def inside_and_weight(X: Any, X_val: Any, generator: np.random.Generator) -> tuple[Vector, Vector]:
    """Membership of validation points in the training support, (m,), and training weights, (n,).

    Weights are those of the points x alone. Weights that know the losses would repeat what the
    validation points say, and the interval would count it twice.
    """
    z, z_val = encoded(X, X_val)
    seed = int(generator.integers(2**31))
    splitter = SupportSplitter(level=max(0.05, 1.5 / len(z)), random_state=seed)
    inside = np.asarray(splitter.fit(z).split(z_val).inside, dtype=np.float64)
    if inside.sum() < 2:
        return inside, np.ones(len(z))
    folds = min(5, len(z_val))
    fold = stratified_folds(np.zeros(len(z)), folds, generator)
    val_fold = stratified_folds(np.zeros(len(z_val)), folds, generator)
    ratio = ClassifierRatio(features="linear", ridge=0.1, balanced=True)
    fitted = fit_ratio(ratio, z, z_val, inside, fold, val_fold)
    trust = 1.0 if fitted.left_out is None else likelihood_trust(fitted.left_out, inside)
    allowed = effective_trust(fitted.weight, LEAST_EFFECTIVE * len(z))
    return inside, shrunk(fitted.weight, min(trust, allowed))


def _data(X: Any, y: Any, X_val: Any, y_val: Any) -> tuple[Any, Any, NDArray[Any], NDArray[Any]]:
    points, val_points = as_rows(X, "X"), as_rows(X_val, "X_val")
    check_same_columns(points, val_points)
    for values, name in ((y, "y"), (y_val, "y_val")):
        if values is None:
            raise ValueError(f"{name} is None; a risk is of labels, pass those of all points")
    labels, val_labels = as_labels(y, len(points), "y"), as_labels(y_val, len(val_points), "y_val")
    return points, val_points, labels, val_labels


def _classifies(model: Any) -> bool:
    """Also of a model that is not scikit-learn's."""
    try:
        return bool(is_classifier(model))
    except (AttributeError, TypeError):
        return hasattr(model, "predict_proba") or hasattr(model, "classes_")


def _check_kind(model: Any, y: NDArray[Any], name: str) -> None:
    """Text never equals a number: an accuracy of zero would be no finding."""
    known = getattr(model, "classes_", None)
    if not isinstance(known, np.ndarray) or not len(known) or not len(y):
        return
    if isinstance(known[0], str) != isinstance(y[0], str):
        raise ValueError(
            f"the model knows classes such as {known.tolist()[0]!r} and {name} holds "
            f"{y.tolist()[0]!r}; give the labels that it was fitted to"
        )


def _measure(model: BaseEstimator, loss: Loss | None) -> tuple[Callable[..., Vector], str]:
    if loss is not None and not callable(loss):
        raise ValueError(
            f"loss must be a function of (labels, predictions), got {loss!r}; None is accuracy, or "
            "squared error of a regressor"
        )
    if loss is not None:
        return lambda y, found: _losses(loss, y, found), getattr(loss, "__name__", "loss")
    if _classifies(model):
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


def _strata(model: BaseEstimator, y: NDArray[Any]) -> NDArray[Any]:
    return y if _classifies(model) else np.zeros(len(y))
