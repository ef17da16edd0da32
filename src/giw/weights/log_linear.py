"""Log-linear ratios by likelihood: KLIEP, and a classifier that tells the two samples apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from giw.weights.ratio import (
    Features,
    GaussianBasis,
    KernelRatio,
    LinearRatio,
    Ratio,
    candidate_widths,
    centers_of_both,
    held_out_values,
    with_constant,
)
from giw.weights.samples import Samples, blocks

Array = NDArray[np.float64]
LARGEST_LOG = 60.0  # of a ratio: exp(60) is further than any density ratio that can be estimated
SELECTION_ROWS = 1_000  # a Newton fit for every fold, set of functions and ridge
# θ (b + 1,) from blocks of training features, validation features, shares; ridge, start, tolerance
Likelihood = Callable[..., Array]
MOST_TRIED = {"linear": 300, "quadratic": 50}  # features of the data up to which these are tried


@dataclass(frozen=True)
class LogLinearRatio(LinearRatio):
    r"""The ratio :math:`\exp(\theta_0 + \theta^\top \phi(x))`."""

    def __call__(self, x: Array) -> Array:
        """Ratio at points (n, d) → (n,)."""
        value = self.features(x) @ self.theta[1:] + self.theta[0]
        return np.exp(value.clip(-LARGEST_LOG, LARGEST_LOG))


def tilted_moments(
    parts: Iterable[Array],  # blocks of features, (rows, b) each
    theta: Array,  # (b,)
) -> tuple[float, Array, Array]:
    r"""Log-mean of :math:`e^{\theta^\top\phi}` and mean and covariance of φ weighted by it."""
    peak, total, count = -math.inf, 0.0, 0
    first, second = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
    for phi in parts:
        value = phi @ theta  # (rows,)
        higher = max(peak, float(value.max()))
        fade = math.exp(peak - higher)  # what came before, seen from the new peak
        weight = np.exp(value - higher)
        total = fade * total + float(weight.sum())
        first = fade * first + weight @ phi
        second = fade * second + (phi * weight[:, None]).T @ phi
        peak, count = higher, count + len(phi)
    mean = first / total
    return math.log(total / count) + peak, mean, second / total - np.outer(mean, mean)


def log_linear_coefficients(
    train: Callable[[], Iterable[Array]],  # blocks of training features, (rows, b + 1) each
    phi_val: Array,  # (m, b + 1)
    share: Array,  # (m,)
    *,
    ridge: float,
    start: Array,  # (b + 1,)
    tolerance: float = 1e-8,
) -> Array:  # (b + 1,), of which the constant makes the mean training weight one
    r"""Maximise :math:`E_{\rm val}[\log w] - \tfrac\lambda2\lVert\theta\rVert^2`, by Newton."""
    target = share @ phi_val

    def look(theta: Array) -> tuple[float, Array, Array]:
        log_mean, mean, covariance = tilted_moments(train(), theta)
        loss = log_mean - float(target @ theta) + 0.5 * ridge * float(theta @ theta)
        return loss, mean - target + ridge * theta, covariance + ridge * np.eye(len(theta))

    theta = newton(look, np.append(0.0, start[1:]), tolerance=tolerance)
    return np.append(-tilted_moments(train(), np.append(0.0, theta[1:]))[0], theta[1:])


def logistic_coefficients(
    train: Callable[[], Iterable[Array]],  # blocks of training features, (rows, b + 1) each
    phi_val: Array,  # (m, b + 1)
    share: Array,  # (m,), sums to one
    *,
    ridge: float,
    start: Array,  # (b + 1,)
    tolerance: float = 1e-9,
    odds: float = 1.0,  # of being a validation point, before x is seen
) -> Array:  # (b + 1,)
    r"""Logistic regression with odds :math:`c\, e^f` of being a validation point, by Newton steps.

    .. math:: \min_\theta \tfrac1c E_{\rm train}[\log(1 + c\, e^f)]
              + E_{\rm val}[\log(1 + e^{-f} / c)] + \tfrac\lambda2 \sum_{b \ge 1} \theta_b^2 ,

    times c where that is above one, so that the smaller sample always has weight one.
    """
    penalty = np.append(1e-9, np.full(len(start) - 1, float(ridge)))
    shift, each_val = math.log(odds), max(1.0, odds) * share

    def side(phi: Array, theta: Array, each: Any, sign: int) -> tuple[float, Array, Array]:
        value = sign * (phi @ theta + shift)
        chance = expit(value)
        slope = np.broadcast_to(each, chance.shape) * chance
        curvature = (phi * (slope * (1 - chance))[:, None]).T @ phi
        return float(np.sum(each * np.logaddexp(0, value))), sign * slope @ phi, curvature

    def look(theta: Array) -> tuple[float, Array, Array]:
        loss, gradient, curvature = side(phi_val, theta, each_val, -1)
        n, total, slope, bend = 0, 0.0, np.zeros_like(theta), np.zeros_like(curvature)
        for phi in train():
            part = side(phi, theta, 1.0, 1)
            n, total, slope, bend = n + len(phi), total + part[0], slope + part[1], bend + part[2]
        each = max(1.0, 1 / odds) / n
        return (
            loss + each * total + 0.5 * float(penalty @ np.square(theta)),
            gradient + each * slope + penalty * theta,
            curvature + each * bend + np.diag(penalty),
        )

    return newton(look, start, tolerance=tolerance)


def fit_all_rows(
    fit: Likelihood, features: Features, few: Samples, samples: Samples, ridge: float
) -> LogLinearRatio:
    """Fit to all rows, a block at a time; most of the way is walked on few rows."""

    def walk(data: Samples) -> Iterator[Array]:
        return (with_constant(features(part)) for part in blocks(data.train))

    phi_val = with_constant(features(samples.val))
    theta = np.zeros(phi_val.shape[1])
    for data in (few, samples):
        theta = fit(partial(walk, data), phi_val, samples.share, ridge=ridge, start=theta)
    return LogLinearRatio(features, theta)


@dataclass(frozen=True)
class ForeignOdds:
    """The odds of a fitted scikit-learn classifier."""

    classifier: Any

    @classmethod
    def fitted(cls, classifier: Any, samples: Samples) -> ForeignOdds:
        """Both samples weigh n, so that penalties tuned for n points keep their meaning."""
        n, m = len(samples.train), len(samples.val)
        x, label = np.concatenate([samples.train, samples.val]), np.repeat([0, 1], [n, m])
        weight = np.append(np.ones(n), n * samples.share)
        return cls(clone(classifier).fit(x, label, sample_weight=weight))

    def __call__(self, x: Array) -> Array:
        """Ratio at points (n, d) → (n,)."""
        chance = np.asarray(self.classifier.predict_proba(x)[:, 1], dtype=np.float64)
        tiny = math.exp(-LARGEST_LOG)
        return chance.clip(tiny) / (1 - chance).clip(tiny)


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
    fit: Likelihood,
    features: Features,
    samples: Samples,
    ridges: list[float],  # from strong to weak
    *,
    most_folds: int,
    tolerance: float,
    odds: float = 1.0,
) -> HeldOut:
    """Logistic loss of every point for every ridge, (ridges, n) and (ridges, m).

    Also for KLIEP: the plain :math:`E_{\\rm val}[\\log w]` does not see how large w becomes on
    training points.
    """

    def path(phi: Array, phi_val: Array, share: Array, ridges: list[float]) -> Array:
        theta = [np.zeros(phi.shape[1])]
        for ridge in ridges:  # each from the last
            problem = partial(iter, [phi]), phi_val, share
            theta.append(fit(*problem, ridge=ridge, start=theta[-1], tolerance=tolerance))
        return np.stack(theta[1:])

    values = held_out_values(features, samples, ridges, path, most_folds=most_folds)
    train, val = (value + math.log(odds) for value in values)
    return HeldOut(np.logaddexp(0, train), np.logaddexp(0, -val), samples.share, odds)


class KLIEP(KernelRatio):
    r"""Density ratio by Kullback-Leibler importance estimation (KLIEP [1]_), log-linear [2]_.

    Models :math:`w(x) = \exp(f(x)) / E_{\rm train}[\exp(f)]` with f in the function space of a
    Gaussian kernel, spanned by points of both samples, and solves

    .. math:: \max_f\ E_{\rm val}[\log w] - \tfrac{\lambda}{2} \lVert f \rVert^2 ,

    a smooth convex problem with weights that are positive and have mean one by construction.
    A strong penalty leads to equal weights.

    Parameters
    ----------
    bandwidth : "auto", "median" or float, default="auto"
        Kernel width :math:`\sigma`; in standard deviations if ``standardize``, else in the units of
        the features. "auto" chooses it, with the ridge, by five-fold cross-validated likelihood.
        With fewer than three validation points nothing can be held out, and the widest kernel
        and strongest ridge are taken.
    ridge : "auto" or float, default="auto"
        Penalty :math:`\lambda`; a larger one pulls all weights towards one.
    n_centers : int, default=100
        Most kernel centres, half of them from each sample.
    standardize : bool, default=True
        Give every feature the same unit first.

    References
    ----------
    .. [1] Sugiyama, Suzuki, Nakajima, Kashima, von Bünau and Kawanabe, Annals of the Institute
       of Statistical Mathematics 60:699-746, 2008.
    .. [2] Tsuboi, Kashima, Hido, Bickel and Sugiyama, Journal of Information Processing
       17:138-155, 2009.
    """

    widths: ClassVar[tuple[float, ...]] = (0.6, 1.0, 2.0, 5.0)
    ridges: ClassVar[tuple[float, ...]] = (10.0, 1.0, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)
    selection_rows: ClassVar[int] = SELECTION_ROWS

    def _bases(self, samples: Samples, widths: list[float]) -> list[GaussianBasis]:
        centers = centers_of_both(samples, max(1, self.n_centers // 2))
        return [GaussianBasis.whitened(centers, width) for width in widths]

    def _scores(self, basis: GaussianBasis, few: Samples, ridges: list[float]) -> Array:
        fit, rough = log_linear_coefficients, 1e-5
        return held_out_losses(fit, basis, few, ridges, most_folds=5, tolerance=rough).mean()

    def _fit_chosen(self, basis: GaussianBasis, few: Samples, samples: Samples) -> LogLinearRatio:
        return fit_all_rows(log_linear_coefficients, basis, few, samples, self.ridge_)


def kliep(x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any) -> Any:
    """Mean-one weights by likelihood, (n,); parameters are those of `giw.KLIEP`."""
    return KLIEP(**parameters).fit(x_train, x_val, val_weight).weight_


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

    def _fit_model(self, samples: Samples) -> LogLinearRatio | ForeignOdds:
        if self.classifier is not None:
            return ForeignOdds.fitted(self.classifier, samples)
        few, maps = samples.few(SELECTION_ROWS), self._maps(samples)
        ridges = self._ridges((10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4))
        # members that count for less than one make the validation sample smaller
        n_val = 1 / float(np.square(samples.share).sum())
        odds = 1.0 if self.balanced else n_val / len(samples.train)
        self.features_, self.ridge_ = _choose(few, maps, ridges, odds=odds)
        fit = partial(logistic_coefficients, odds=odds)
        return fit_all_rows(fit, maps[self.features_], few, samples, self.ridge_)

    def _maps(self, samples: Samples) -> dict[str, Features]:
        """The functions to choose from, simplest first."""
        maps: dict[str, Features] = {"linear": np.asarray, "quadratic": with_squares}
        if self.features in maps:
            return {self.features: maps[self.features]}
        centers = centers_of_both(samples, max(1, self.n_centers // 2))
        maps["kernel"] = GaussianBasis.whitened(centers, *candidate_widths("median", samples))
        d = samples.train.shape[1]
        names = ["kernel"] if self.features == "kernel" else list(maps)
        return {name: maps[name] for name in names if d <= MOST_TRIED.get(name, d)}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = ("auto", "linear", "quadratic", "kernel")
        if self.features not in names:
            raise ValueError(f"features must be one of {names}, got {self.features!r}")


def with_squares(x: Array) -> Array:
    """Features and their squares, (n, d) → (n, 2 d); of standard normals all have variance one."""
    return np.concatenate([x, (np.square(x) - 1) / math.sqrt(2)], 1)


def _choose(
    few: Samples, maps: dict[str, Features], ridges: list[float], *, odds: float
) -> tuple[str, float]:
    """The simplest functions that no richer ones clearly beat, each with its best ridge."""
    chosen: tuple[str, float] = next(iter(maps)), ridges[0]
    if not few.can_hold_out or len(maps) * len(ridges) == 1:
        return chosen
    lowest: HeldOut | None = None
    fit = partial(logistic_coefficients, odds=odds)
    for name, features in maps.items():
        losses = held_out_losses(
            fit, features, few, ridges, most_folds=10, tolerance=1e-6, odds=odds
        )
        best = int(losses.mean().argmin())
        loss = HeldOut(losses.on_train[best], losses.on_val[best], few.share, odds)
        if lowest is None or lowest.clearly_above(loss):
            chosen, lowest = (name, ridges[best]), loss
    return chosen


def classifier_ratio(
    x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any
) -> Any:
    """Mean-one weights by classification, (n,); parameters are those of `giw.ClassifierRatio`."""
    return ClassifierRatio(**parameters).fit(x_train, x_val, val_weight).weight_


def newton(
    look: Callable[[Array], tuple[float, Array, Array]],
    start: Array,
    *,
    tolerance: float,
    most_steps: int = 40,
) -> Array:
    """Minimise a convex function by Newton steps that are halved while they go too far.

    Parameters
    ----------
    look : callable
        Value, gradient and curvature at a point.
    start : array of shape (b,)
    tolerance : float
        Decrease that a step promises below which to stop.
    most_steps : int
    """
    theta = start
    loss, gradient, curvature = look(theta)
    for _ in range(most_steps):
        step = np.linalg.solve(curvature, gradient)
        decrease = float(gradient @ step)
        if decrease < tolerance:
            break
        length = 1.0
        found = look(theta - step)
        while not found[0] <= loss - 1e-4 * length * decrease and length >= 1e-4:
            length *= 0.5
            found = look(theta - length * step)
        theta, (loss, gradient, curvature) = theta - length * step, found
    return theta
