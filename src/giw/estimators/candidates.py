r"""Simple ways to use a large training table and a few validation points.

Most are one weighted fit to both tables. With sample weights of mean one in either table,
:math:`n` training and :math:`m` validation rows, the loss :math:`\ell` and a factor :math:`f` for
each row, they minimise

.. math:: \sum_{i=1}^n f_i u_i \ell_i + \sum_{j=1}^m f_j v_j \ell_j .

A candidate that cannot be fitted to the data at hand raises :class:`StepsAside` with its reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from giw import weights as ratios
from giw.estimators.fitting import fit_weighted, predictions
from giw.estimators.inputs import rows_of

Vector = NDArray[np.float64]
RATIOS = ("classifier", "kmm", "kliep", "lsif", "ulsif", "rulsif")
LARGEST_LOG = 60.0  # of odds: no density ratio is estimated to exp(60)


class StepsAside(Exception):
    """A candidate does not apply to these data; its text is the reason."""


class WeightsError(ValueError):
    """Weights of a user's own making are no weights."""


@dataclass(frozen=True)
class Tables:
    """Both tables, training rows first, and what candidates may know about the rows."""

    base: Any  # the estimator to copy and fit
    rows: Any  # n + m rows of the table
    label: NDArray[Any]  # (n + m,) classes or numbers
    classes: NDArray[Any] | None  # (c,) of both tables, sorted; none of numbers
    weight: Vector  # (n + m,) sample weights, mean one in either table
    is_val: NDArray[np.bool_]  # (n + m,)
    features: Vector  # (n + m, d) numbers in comparable units
    inside: NDArray[np.bool_]  # (n + m,) in the training support; true for training rows
    encoder: Any  # makes ``features`` of a table
    plain: Any  # the base fitted to the training rows alone
    loss: Vector | None = None  # (n + m,) of fits to training rows that have not seen the row
    ratio: Any = "classifier"  # how weights inside the training support are estimated
    target: Vector | None = None  # (u, d) features of unlabelled rows of the target
    inside_weight: Vector | None = None  # (n,) of the candidate "giw", where it is known already
    many: float = 1.0  # training rows in all for each one here
    whole: bool = True  # whether ``plain`` is fitted to the training rows that are here

    @property
    def limits(self) -> tuple[float, float] | None:
        """Least and greatest number among the labels of both tables; none of classes."""
        return (float(self.label.min()), float(self.label.max())) if self.classes is None else None

    def only(self, rows: NDArray[np.int64]) -> Tables:
        """Some of the rows."""
        names = ("label", "weight", "is_val", "features", "inside", "loss")
        parts = {name: getattr(self, name) for name in names}
        some: dict[str, Any] = {k: None if v is None else v[rows] for k, v in parts.items()}
        return replace(self, rows=rows_of(self.rows, rows), whole=False, **some)

    @property
    def sizes(self) -> tuple[float, int]:
        """Training rows, all that there are, and validation rows."""
        m = int(self.is_val.sum())
        return self.many * (len(self.is_val) - m), m

    def fit(self, factor: Vector) -> Any:
        """The base fitted to the rows, each with ``factor`` (n + m,) times its sample weight.

        Where the rows are a sample, training rows stand for all of them.
        """
        weight = factor * self.weight * np.where(self.is_val, 1.0, self.many)
        # mean one over rows that count: penalties and leaf sizes are made for that scale
        return fit_weighted(self.base, self.rows, self.label, weight / weight[weight > 0].mean())


@dataclass(frozen=True)
class Candidate:
    """A named way to make a model of both tables; any object with name, prior and fit is one."""

    name: str
    fit: Callable[[Tables], Any]  # a model with ``predict``, and ``predict_proba`` for classes
    prior: float = 1.0  # weight in the stack before validation points are asked, beside the others
    uses_losses: bool = False  # whether it needs ``Tables.loss``
    if_alike: bool = False  # whether it is right where the tables do not differ


def training_only(data: Tables) -> Any:
    """The base fitted to training rows."""
    if data.whole and data.plain is not None:
        return data.plain
    return data.fit((~data.is_val).astype(np.float64))


def validation_only(data: Tables) -> Any:
    """The base fitted to validation rows; a constant where they have one class."""
    return data.fit(data.is_val.astype(np.float64))


def both_tables(data: Tables, *, power: float) -> Any:
    r"""Both tables, training rows weighted :math:`(m / n)^{\rm power}`.

    Power 0 is plain concatenation; with power 1 both tables weigh the same.
    """
    n, m = data.sizes
    return data.fit(np.where(data.is_val, 1.0, (m / n) ** power))


def generalized_weighting(data: Tables, *, inside_share: float = 0.2, few: float = 20.0) -> Any:
    r"""Generalized importance weighting: weights inside the training support, outside rows join.

    .. math:: \alpha \Big[(1 - \beta) \frac1n \sum_i w_i \ell_i
              + \beta \frac1{m_{\rm in}} \sum_{j\,\rm in} \ell_j \Big]
              + (1 - \alpha) \frac1{m_{\rm out}} \sum_{j\,\rm out} \ell_j

    where :math:`1 - \alpha = m_{\rm out} / m \cdot m_{\rm out} / (m_{\rm out} + a)`: few outside
    rows do not carry most of the risk.

    Parameters
    ----------
    inside_share : float, default=0.2
        :math:`\beta`; with more of it validation rows inside count more beside training rows.
    few : float, default=20
        :math:`a`; with more of it a few outside rows count less.
    """
    inner, outer = data.is_val & data.inside, data.is_val & ~data.inside
    n, m = data.sizes
    outside = outer.sum() ** 2 / (max(m, 1) * (outer.sum() + few))
    share = inside_share if inner.any() else 0.0
    factor = np.zeros(len(data.label))
    factor[~data.is_val] = (1 - outside) * (1 - share) * weight_by_losses(data) / n
    factor[inner] = (1 - outside) * share / max(inner.sum(), 1)
    factor[outer] = outside / max(outer.sum(), 1)
    return data.fit(factor)


def weight_by_losses(data: Tables) -> Vector:
    r"""Mean-one weights of training rows for the rows inside the training support, (n,).

    They estimate :math:`p_{\rm val}(x, y \mid {\rm inside}) / p_{\rm tr}(x, y)` on losses under
    fits to training rows that have not seen the row.
    """
    if data.inside_weight is not None:
        return data.inside_weight
    if data.loss is None:
        raise StepsAside("it needs losses of rows that were left out, and there are none")
    inside = data.is_val & data.inside
    if inside.sum() < 2:
        return np.ones(int((~data.is_val).sum()))
    loss = data.loss[:, None]
    return inside_ratio(data.ratio, loss[~data.is_val], loss[inside])


def feature_weighted(data: Tables) -> Any:
    r"""Both tables, training rows weighted by :math:`p_{\rm val}(x) / p_{\rm tr}(x)`."""
    factor = np.ones(len(data.label))
    factor[~data.is_val] = weight_by_features(data)
    return data.fit(factor)


def weight_by_features(data: Tables) -> Vector:
    """Mean-one weights of training rows, (n,), towards labelled and unlabelled target rows."""
    target = data.features[data.is_val]
    if data.target is not None:
        target = np.vstack([target, data.target])
    return inside_ratio("classifier", data.features[~data.is_val], target)


def ratio_named(weights: Any) -> Any:
    """An estimator with ``fit`` and ``weight_``, or a function of (z_train, z_val, val_weight)."""
    if isinstance(weights, str) and weights in RATIOS:
        return by_classifier if weights == "classifier" else getattr(ratios, weights.upper())()
    if hasattr(weights, "fit") and hasattr(weights, "weigh"):
        return clone(weights)
    if not callable(weights):
        raise ValueError(
            f"weights must be one of {', '.join(RATIOS)}, a function, an estimator with fit "
            f"and weigh, or None for no weights; got {weights!r}"
        )
    return weights


def by_classifier(z: Vector, z_target: Vector, _: Any = None, *, ridge: float = 0.03) -> Vector:
    """Odds of the target at training rows, (n,), both samples weighing the same."""
    each = np.repeat([1 / len(z), 1 / len(z_target)], [len(z), len(z_target)])
    both = StandardScaler().fit_transform(np.concatenate([z, z_target]), sample_weight=each)
    classifier = LogisticRegression(C=1 / ridge, solver="newton-cholesky", tol=1e-8)
    classifier.fit(both, np.arange(len(both)) >= len(z), each)
    found = classifier.decision_function(both[: len(z)])
    return np.exp(found.clip(-LARGEST_LOG, LARGEST_LOG))


def inside_ratio(
    weights: Any, z: Vector, z_target: Vector, *, least_effective: float = 0.1
) -> Vector:  # (n,)
    """Weights of training rows (n, d) towards target rows (k, d), mean one.

    Parameters
    ----------
    weights : str, estimator, function or None
        As in :class:`giw.ReweightedClassifier`.
    least_effective : float, default=0.1
        Weights are drawn towards one until so large a share of the rows is effective.
    """
    if weights is None:
        return np.ones(len(z))
    ratio = ratio_named(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ratios.EffectiveSampleSizeWarning)  # dealt with below
        warnings.simplefilter("ignore", ConvergenceWarning)  # of rows that are all alike
        if hasattr(ratio, "weigh"):
            found = ratio.fit(z, z_target).weight_
        else:
            found = ratio(z, z_target, np.ones(len(z_target)))
    weight = np.asarray(found, dtype=np.float64)
    if weight.shape != (len(z),):
        raise WeightsError(f"weights must give one weight per training point, got {weight.shape}")
    if not np.isfinite(weight).all() or weight.min() < 0 or weight.sum() <= 0:
        raise WeightsError("weights gave values that are negative, infinite, missing or all zero")
    weight = weight / weight.mean()
    # shrinking by rho leaves n / (1 + rho^2 v) effective rows
    allowed, variance = 1 / least_effective - 1, float(np.var(weight))
    rho = 1.0 if variance <= allowed else float(np.sqrt(allowed / variance))
    return 1 - rho + rho * weight


def small_linear(
    data: Tables, *, on_model: bool = True, on_features: bool = True, strength: float = 1.0
) -> Any:
    """A linear model of validation labels, fitted in milliseconds.

    Of classes: logistic regression, and predictions come as log-probabilities; of numbers: ridge
    regression that shrinks towards the training model's own prediction.

    Parameters
    ----------
    on_model, on_features : bool
        What it sees: predictions of the training model, and the encoded columns of the table.
    strength : float, default=1.0
        Inverse penalty; with more of it validation labels change more.
    """
    if on_model and data.plain is None:
        raise StepsAside("training alone cannot be fitted")
    model = Mapped(
        data.plain if on_model else None, data.encoder if on_features else None,
        strength=strength, numbers=data.classes is None,
    )  # fmt: skip
    val = data.is_val
    return model.fit(rows_of(data.rows, val), data.label[val], data.weight[val])


class Mapped(BaseEstimator):
    """A linear model of validation labels on a model's predictions, on features, or on both."""

    def __init__(
        self, model: Any, encoder: Any = None, *, strength: float = 1.0, numbers: bool = False
    ) -> None:
        self.model = model
        self.encoder = encoder
        self.strength = strength
        self.numbers = numbers

    def fit(self, X: Any, y: NDArray[Any], weight: Vector) -> Mapped:
        """Fit to validation rows."""
        if self.numbers:
            self.center_, self.scale_ = float(np.average(y, weights=weight)), float(y.std()) or 1.0
            z, own = self._columns(X)
            left = (y - self.center_) / self.scale_ - own
            self.linear_ = Ridge(1 / self.strength).fit(z, left, weight)
        else:
            linear = LogisticRegression(C=self.strength, max_iter=300)
            self.linear_ = fit_weighted(linear, self._columns(X)[0], y, weight)
            self.classes_ = self.linear_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes or numbers, (k,)."""
        z, own = self._columns(X)
        found = self.linear_.predict(z)
        return found if hasattr(self, "classes_") else self.center_ + self.scale_ * (found + own)

    def predict_proba(self, X: Any) -> Vector:
        """Probabilities, (k, c)."""
        return np.asarray(self.linear_.predict_proba(self._columns(X)[0]))

    def _columns(self, X: Any) -> tuple[Vector, Any]:
        """What the linear model sees, (k, d), and the model's own numbers, (k,), in its units."""
        parts: list[Vector] = []
        own: Any = 0.0
        if self.model is not None:
            classes = getattr(self.model, "classes_", None)
            found = predictions(self.model, X, classes)
            if classes is None:
                own = (found - self.center_) / self.scale_
            parts.append(own[:, None] if classes is None else np.log(found))
        if self.encoder is not None:
            parts.append(self.encoder.transform(X))
        return np.hstack(parts), own


def default_candidates(labelled: bool = True, unlabelled: bool = False) -> list[Candidate]:
    """What is tried where nobody says what.

    Parameters
    ----------
    labelled : bool, default=True
        Whether there are validation labels; without them few can be tried.
    unlabelled : bool, default=False
        Whether there are unlabelled rows of the target. Without them training rows are not
        weighted by features: a few validation rows say more by their labels.
    """
    by_features = Candidate("weighted by features", feature_weighted)
    if not labelled:
        return [TRAINING, by_features]
    usual = [
        TRAINING,
        Candidate("validation", validation_only),
        Candidate("both tables", partial(both_tables, power=0.0), if_alike=True),
        Candidate("intermediate", partial(both_tables, power=0.5)),
        Candidate("balanced", partial(both_tables, power=1.0)),
        Candidate("giw", generalized_weighting, uses_losses=True),
        Candidate("recalibrated", partial(small_linear, on_features=False)),
        Candidate("corrected", small_linear),
        Candidate("validation, linear", partial(small_linear, on_model=False, strength=0.1)),
    ]
    return [*usual, by_features] if unlabelled else usual


TRAINING = Candidate("training", training_only, if_alike=True)
