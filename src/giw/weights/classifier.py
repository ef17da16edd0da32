"""Ratios from a classifier that tells validation points from training points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from giw.weights.basis import (
    LARGEST_LOG,
    GaussianBasis,
    candidate_widths,
    centers_of_both,
    feature_blocks,
    folds_of,
    newton,
    with_constant,
)
from giw.weights.kliep import SELECTION_ROWS
from giw.weights.ratio import Model, Ratio
from giw.weights.samples import Samples

Array = NDArray[np.float64]
Features = Callable[[Array], Array]
RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)  # strong to weak
MOST_FOLDS = 10
MOST_TRIED = {"linear": 300, "quadratic": 50}  # features of the data up to which these are tried


@dataclass(frozen=True)
class LinearFeatures:
    """The features themselves and, if asked for, their squares."""

    squares: bool

    def __call__(self, x: Array) -> Array:
        """(n, d) → (n, d) or (n, 2 d)."""
        return np.concatenate([x, (np.square(x) - 1) / math.sqrt(2)], 1) if self.squares else x


@dataclass(frozen=True)
class Odds:
    """The odds of a logistic regression."""

    features: Features
    theta: Array  # (b + 1,), the constant first

    def __call__(self, x: Array) -> Array:
        """Ratio at points (n, d) → (n,)."""
        value = self.features(x) @ self.theta[1:] + self.theta[0]
        return np.exp(value.clip(-LARGEST_LOG, LARGEST_LOG))


@dataclass(frozen=True)
class ForeignOdds:
    """The odds of a fitted scikit-learn classifier."""

    classifier: Any

    def __call__(self, x: Array) -> Array:
        """Ratio at points (n, d) → (n,)."""
        chance = np.asarray(self.classifier.predict_proba(x)[:, 1], dtype=np.float64)
        tiny = math.exp(-LARGEST_LOG)
        return chance.clip(tiny) / (1 - chance).clip(tiny)


def logistic_coefficients(
    train: Callable[[], Iterable[Array]],  # blocks of training features, (rows, b + 1) each
    n_train: int,
    phi_val: Array,  # (m, b + 1)
    share: Array,  # (m,), sums to one
    *,
    ridge: float,
    odds: float,  # of being a validation point, before x is seen
    start: Array,  # (b + 1,)
    tolerance: float = 1e-9,
) -> Array:  # (b + 1,)
    r"""Logistic regression with odds :math:`c\, e^f` of being a validation point, by Newton steps.

    .. math:: \min_\theta \tfrac1c E_{\rm train}[\log(1 + c\, e^f)]
              + E_{\rm val}[\log(1 + e^{-f} / c)] + \tfrac\lambda2 \sum_{b \ge 1} \theta_b^2 ,

    times c where that is above one, so that the smaller sample always has weight one.
    """
    penalty = np.full(len(start), float(ridge))
    penalty[0] = 1e-9
    shift = math.log(odds)
    each_train, each_val = max(1.0, 1 / odds) / n_train, max(1.0, odds) * share

    def look(theta: Array) -> tuple[float, Array, Array]:
        value = phi_val @ theta + shift
        chance = expit(value)
        loss = float(np.logaddexp(0, -value) @ each_val) + 0.5 * float(penalty @ np.square(theta))
        gradient = -(each_val * (1 - chance)) @ phi_val + penalty * theta
        curvature = (phi_val * (each_val * chance * (1 - chance))[:, None]).T @ phi_val
        for phi in train():
            value = phi @ theta + shift
            chance = expit(value)
            loss += each_train * float(np.logaddexp(0, value).sum())
            gradient += (each_train * chance) @ phi
            curvature += (phi * (each_train * chance * (1 - chance))[:, None]).T @ phi
        return loss, gradient, curvature + np.diag(penalty)

    return newton(look, start, tolerance=tolerance)


@dataclass(frozen=True)
class HeldOut:
    """Logistic loss of each point under a fit that it took no part in."""

    on_train: Array  # (..., n)
    on_val: Array  # (..., m)
    share: Array  # (m,)
    odds: float

    def mean(self) -> Array:
        """Every point weighing the same, (...)."""
        mean: Array = self.on_train.mean(-1) / self.odds + (self.on_val * self.share).sum(-1)
        return mean

    def clearly_above(self, other: HeldOut) -> bool:
        """Whether this loss is higher by more than one standard error of the difference."""
        train, val = (self.on_train - other.on_train) / self.odds, self.on_val - other.on_val
        average = float(val @ self.share)
        variance = train.var() / len(train) + np.square(self.share) @ np.square(val - average)
        return bool(train.mean() + average > math.sqrt(variance))


def held_out_losses(
    features: Features, samples: Samples, ridges: list[float], *, odds: float
) -> HeldOut:
    """Loss of every point for every ridge, (ridges, n) and (ridges, m)."""
    phi_train, phi_val = (with_constant(features(x)) for x in (samples.train, samples.val))
    on_train, on_val = (np.empty((len(ridges), len(phi))) for phi in (phi_train, phi_val))
    shift = math.log(odds)
    for fold in folds_of(samples, MOST_FOLDS):
        rest, theta = phi_train[fold.kept_train], np.zeros(phi_val.shape[1])
        for index, ridge in enumerate(ridges):  # from strong to weak, each from the last
            theta = logistic_coefficients(
                partial(iter, [rest]),
                len(rest),
                phi_val,
                fold.share,
                ridge=ridge,
                odds=odds,
                start=theta,
                tolerance=1e-6,
            )
            value = phi_train[fold.out_train] @ theta + shift
            on_train[index, fold.out_train] = np.logaddexp(0, value)
            value = phi_val[fold.out_val] @ theta + shift
            on_val[index, fold.out_val] = np.logaddexp(0, -value)
    return HeldOut(on_train, on_val, samples.share, odds)


class ClassifierRatio(Ratio):
    r"""Density ratio as the odds of a classifier that tells the two samples apart [1]_.

    By Bayes' rule :math:`w(x) = \frac nm P({\rm val} \mid x) / P({\rm train} \mid x)`. The
    classifier is a logistic regression with ridge penalty,

    .. math:: \log w(x) = \theta_0 + \theta^\top \phi(x) ,

    on one of three sets of functions: the features, the features and their squares (exact for
    Gaussians with uncorrelated features), or Gaussian kernel functions around points of both
    samples. Every point of either sample weighs the same: without the penalty, no other estimating
    equation for this model has a smaller asymptotic variance [2]_. The penalty is chosen by
    ten-fold cross-validated likelihood, and a richer set is taken only where it is better by more
    than one standard error.

    Parameters
    ----------
    features : "auto", "linear", "quadratic" or "kernel", default="auto"
        The functions :math:`\phi`. "auto" tries "quadratic" up to 50 features of the data and
        "linear" up to 300.
    ridge : "auto" or float, default="auto"
        Penalty :math:`\lambda`; a larger one pulls all weights towards one. With fewer than three
        validation points nothing can be held out, and the strongest is taken.
    classifier : scikit-learn classifier, optional
        Takes the place of the logistic regression; needs ``predict_proba`` and ``sample_weight``
        in ``fit``. Its odds are taken as they are, at the very points it was fitted to: calibrate
        it, and keep it from learning the training points by heart.
    n_centers : int, default=100
        Most kernel centres, half of them from each sample.
    standardize : bool, default=True
        Give every feature the same unit first.
    balanced : bool, default=False
        Let both samples weigh the same, however many points they hold, instead of all points. A
        given ridge then means the same whatever the sizes.

    References
    ----------
    .. [1] Bickel, Brückner and Scheffer, JMLR 10:2137-2155, 2009.
    .. [2] Qin, Biometrika 85:619-630, 1998.
    """

    def __init__(
        self,
        features: str = "auto",
        ridge: str | float = "auto",
        classifier: Any | None = None,
        n_centers: int = 100,
        standardize: bool = True,
        balanced: bool = False,
    ) -> None:
        self.features = features
        self.ridge = ridge
        self.classifier = classifier
        self.n_centers = n_centers
        self.standardize = standardize
        self.balanced = balanced

    def _fit_model(self, samples: Samples) -> Model:
        if self.classifier is not None:
            return ForeignOdds(self._fit_foreign(samples))
        few = samples.few(SELECTION_ROWS)
        maps = self._maps(samples)
        ridges = list(RIDGES) if isinstance(self.ridge, str) else [float(self.ridge)]
        # members that count for less than one make the validation sample smaller
        n_val = 1 / float(np.square(samples.share).sum())
        odds = 1.0 if self.balanced else n_val / len(samples.train)
        self.features_, self.ridge_ = _choose(few, maps, ridges, odds=odds)
        chosen = maps[self.features_]
        phi_val = with_constant(chosen(samples.val))
        theta = np.zeros(phi_val.shape[1])
        for data in (few, samples):  # most of the way is walked on few rows
            theta = logistic_coefficients(
                partial(feature_blocks, lambda x: with_constant(chosen(x)), data),
                len(data.train),
                phi_val,
                samples.share,
                ridge=self.ridge_,
                odds=odds,
                start=theta,
            )
        return Odds(chosen, theta)

    def _maps(self, samples: Samples) -> dict[str, Features]:
        """The functions to choose from, simplest first."""
        maps: dict[str, Features] = {
            "linear": LinearFeatures(squares=False),
            "quadratic": LinearFeatures(squares=True),
        }
        if self.features in maps:
            return {self.features: maps[self.features]}
        centers = centers_of_both(samples, max(1, self.n_centers // 2))
        maps["kernel"] = GaussianBasis.whitened(centers, *candidate_widths("median", samples))
        d = samples.train.shape[1]
        names = ["kernel"] if self.features == "kernel" else list(maps)
        return {name: maps[name] for name in names if d <= MOST_TRIED.get(name, d)}

    def _fit_foreign(self, samples: Samples) -> Any:
        n, m = len(samples.train), len(samples.val)
        x, label = np.concatenate([samples.train, samples.val]), np.repeat([0, 1], [n, m])
        # both samples weigh n, so that penalties tuned for n points keep their meaning
        weight = np.append(np.ones(n), n * samples.share)
        return clone(self.classifier).fit(x, label, sample_weight=weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = ("auto", "linear", "quadratic", "kernel")
        if self.features not in names:
            raise ValueError(f"features must be one of {names}, got {self.features!r}")


def _choose(
    few: Samples, maps: dict[str, Features], ridges: list[float], *, odds: float
) -> tuple[str, float]:
    """The simplest functions that no richer ones clearly beat, each with its best ridge."""
    names = list(maps)
    if not few.can_hold_out or len(names) * len(ridges) == 1:
        return names[0], ridges[0]
    chosen: tuple[str, float] | None = None
    lowest: HeldOut | None = None
    for name in names:
        losses = held_out_losses(maps[name], few, ridges, odds=odds)
        index = int(losses.mean().argmin())
        loss = HeldOut(losses.on_train[index], losses.on_val[index], few.share, odds)
        if chosen is None or lowest is None or lowest.clearly_above(loss):
            chosen, lowest = (name, ridges[index]), loss
    return chosen or (names[0], ridges[0])


def classifier_ratio(
    x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any
) -> Any:
    """Mean-one weights by classification; parameters are those of `giw.ClassifierRatio`.

    Returns
    -------
    array of shape (n,)
        Weights at the training points.
    """
    return ClassifierRatio(**parameters).fit(x_train, x_val, val_weight).weight_
