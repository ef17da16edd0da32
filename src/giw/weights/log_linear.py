"""Log-linear ratios by likelihood: KLIEP, and a classifier that tells the two samples apart."""

from __future__ import annotations

import math
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
    LinearRatio,
    Ratio,
    candidate_widths,
    held_out_values,
    with_constant,
)
from giw.weights.samples import Samples

Array = NDArray[np.float64]
LARGEST_LOG = 60.0  # of a ratio: exp(60) is further than any density ratio that can be estimated
SELECTION_ROWS = 1_000  # a Newton fit for every fold, set of functions and ridge
VANISHING = 1e-9  # odds of validation under which logistic regression is likelihood of the ratio


@dataclass(frozen=True)
class LogLinearRatio(LinearRatio):
    r"""The ratio :math:`\exp(\theta_0 + \theta^\top \phi(x))`."""

    def __call__(self, x: Array) -> Array:
        """Ratio at points (n, d) → (n,)."""
        value = self.features(x) @ self.theta[1:] + self.theta[0]
        return np.exp(value.clip(-LARGEST_LOG, LARGEST_LOG))

    @classmethod
    def fitted(
        cls, features: Features, samples: Samples, *, most_rows: int = 30_000, **problem: Any
    ) -> LogLinearRatio:
        """By logistic regression on so many rows of each sample at most, evenly spread."""
        rows = samples.few(most_rows)  # 200 features of 30,000 are 48 MB
        phi_train, phi_val = (with_constant(features(x)) for x in (rows.train, rows.val))
        theta = logistic_coefficients(phi_train, phi_val, rows.share, **problem)
        return cls(features, theta)


def logistic_coefficients(
    phi_train: Array,  # (n, b + 1)
    phi_val: Array,  # (m, b + 1)
    share: Array,  # (m,), sums to one
    *,
    ridge: float,
    odds: float,  # of being a validation point, before x is seen
    start: Array | None = None,  # (b + 1,), zero if not given
    tolerance: float = 1e-9,
    most_steps: int = 60,
) -> Array:  # (b + 1,)
    r"""Logistic regression with odds :math:`c\, e^f` of being a validation point, by Newton steps.

    .. math:: \min_\theta \tfrac1c E_{\rm train}[\log(1 + c\, e^f)]
              + E_{\rm val}[\log(1 + e^{-f} / c)] + \tfrac\lambda2 \sum_{b \ge 1} \theta_b^2 ,

    times c where that is above one, so that the smaller sample always has weight one. Where c
    vanishes this is :math:`E_{\rm train}[e^f] - E_{\rm val}[f]` plus the penalty, whose minimum is
    the likelihood of a ratio with mean one.

    Steps are halved while they go too far, and end where one promises to decrease the loss by less
    than ``tolerance``.
    """
    n, m = len(phi_train), len(phi_val)
    phi = np.concatenate([phi_train, -phi_val])  # (n + m, b + 1), such that loss grows with φᵀθ
    shift = math.log(odds) * np.repeat([1, -1], [n, m])
    each = np.append(np.full(n, max(1.0, 1 / odds) / n), max(1.0, odds) * share)
    penalty = np.append(1e-9, np.full(phi.shape[1] - 1, ridge))

    def loss_at(theta: Array) -> float:
        value = phi @ theta + shift
        return float(each @ np.logaddexp(0, value) + 0.5 * penalty @ np.square(theta))

    theta = np.zeros(phi.shape[1]) if start is None else start
    loss = loss_at(theta)
    for _ in range(most_steps):
        value = phi @ theta + shift
        slope = each * expit(value)
        curvature = (phi * (slope * expit(-value))[:, None]).T @ phi + np.diag(penalty)
        gradient = slope @ phi + penalty * theta
        step = np.linalg.solve(curvature, gradient)
        decrease, length = float(gradient @ step), 1.0
        if decrease < tolerance:
            break
        while not (found := loss_at(theta - length * step)) <= loss - 1e-4 * length * decrease:
            if (length := 0.5 * length) < 1e-4:  # only rounding is left
                return theta
        theta, loss = theta - length * step, found
    return theta


def held_out_losses(
    features: Features,
    samples: Samples,
    ridges: list[float],  # from strong to weak
    *,
    most_folds: int,
    tolerance: float,
    odds: float,  # as in the fit
    judged_odds: float,
) -> tuple[Array, Array]:  # (r, n), (r, m)
    """Logistic loss of every point under fits that it took no part in, for every ridge.

    The mean loss of training points plus that of validation points by their shares lets every
    point weigh the same. It judges KLIEP as well: the plain :math:`E_{\\rm val}[\\log w]` does not
    see how large w becomes on training points.
    """
    fit = partial(logistic_coefficients, odds=odds, tolerance=tolerance)
    values = held_out_values(features, samples, ridges, fit, most_folds=most_folds)
    train, val = (value + math.log(judged_odds) for value in values)
    return np.logaddexp(0, train) / judged_odds, np.logaddexp(0, -val)


class KLIEP(Ratio):
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

    def _bases(self, samples: Samples) -> list[GaussianBasis]:
        centers = samples.some_of_both(max(1, self.n_centers // 2))
        widths = candidate_widths(self.bandwidth, samples, self.widths)
        return [GaussianBasis.whitened(centers, width) for width in widths]

    def _scores(self, basis: GaussianBasis, few: Samples, ridges: list[float]) -> Array:
        train, val = held_out_losses(
            basis, few, ridges, most_folds=5, tolerance=1e-5, odds=VANISHING, judged_odds=1.0
        )
        return train.mean(-1) + val @ few.share

    def _fit_chosen(self, basis: GaussianBasis, samples: Samples) -> LogLinearRatio:
        return LogLinearRatio.fitted(
            basis, samples, ridge=self.ridge_, odds=VANISHING, tolerance=1e-12
        )


@dataclass(frozen=True)
class ForeignOdds:
    """The odds of a fitted scikit-learn classifier."""

    classifier: Any

    def __call__(self, x: Array) -> Array:
        """Ratio at points (n, d) → (n,)."""
        chance = np.asarray(self.classifier.predict_proba(x)[:, 1], dtype=np.float64)
        tiny = math.exp(-LARGEST_LOG)
        return chance.clip(tiny) / (1 - chance).clip(tiny)


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

    ridges: ClassVar[tuple[float, ...]] = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)

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
            n, m = len(samples.train), len(samples.val)
            x, label = np.concatenate([samples.train, samples.val]), np.repeat([0, 1], [n, m])
            # both samples weigh n, so that penalties tuned for n points keep their meaning
            weight = np.append(np.ones(n), n * samples.share)
            return ForeignOdds(clone(self.classifier).fit(x, label, sample_weight=weight))
        few, maps = samples.few(SELECTION_ROWS), self._maps(samples)
        # members that count for less than one make the validation sample smaller
        n_val = 1 / float(np.square(samples.share).sum())
        odds = 1.0 if self.balanced else n_val / len(samples.train)
        self.features_, self.ridge_ = self._chosen(few, maps, odds)
        chosen = maps[self.features_]
        return LogLinearRatio.fitted(chosen, samples, ridge=self.ridge_, odds=odds)

    def _maps(self, samples: Samples) -> dict[str, Features]:
        """The functions to choose from, simplest first."""
        d = samples.train.shape[1]
        maps: dict[str, Features] = {}
        if self.features == "linear" or (self.features == "auto" and d <= 300):
            maps["linear"] = np.asarray
        if self.features == "quadratic" or (self.features == "auto" and d <= 50):
            maps["quadratic"] = with_squares
        if self.features in ("auto", "kernel"):
            centers = samples.some_of_both(max(1, self.n_centers // 2))
            maps["kernel"] = GaussianBasis.whitened(centers, *candidate_widths("median", samples))
        return maps

    def _chosen(self, few: Samples, maps: dict[str, Features], odds: float) -> tuple[str, float]:
        """The simplest functions that no richer ones clearly beat, each with its best ridge."""
        ridges = self._ridges()
        chosen: tuple[str, float] = next(iter(maps)), ridges[0]
        if not few.can_hold_out or len(maps) * len(ridges) == 1:
            return chosen
        lowest: tuple[Array, Array] | None = None
        for name, features in maps.items():
            train, val = held_out_losses(
                features, few, ridges, most_folds=10, tolerance=1e-6, odds=odds, judged_odds=odds
            )
            best = int((train.mean(-1) + val @ few.share).argmin())
            loss = train[best], val[best]
            if lowest is None or clearly_lower(loss, lowest, few.share):
                chosen, lowest = (name, ridges[best]), loss
        return chosen

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = ("auto", "linear", "quadratic", "kernel")
        if self.features not in names:
            raise ValueError(f"features must be one of {names}, got {self.features!r}")


def with_squares(x: Array) -> Array:
    """Features and their squares, (n, d) → (n, 2 d); of standard normals all have variance one."""
    return np.concatenate([x, (np.square(x) - 1) / math.sqrt(2)], 1)


def clearly_lower(loss: tuple[Array, Array], than: tuple[Array, Array], share: Array) -> bool:
    """Whether losses (n,) and (m,) are lower by more than one standard error of the difference."""
    train, val = (b - a for a, b in zip(loss, than, strict=True))
    gain = float(val @ share)
    variance = train.var() / len(train) + np.square(share) @ np.square(val - gain)
    return bool(train.mean() + gain > math.sqrt(variance))


kliep, classifier_ratio = KLIEP.weights, ClassifierRatio.weights
