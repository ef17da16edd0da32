"""Ratios from a classifier that tells validation points from training points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor
from torch.nn.functional import softplus

from giw.weights.basis import (
    GaussianBasis,
    fold_numbers,
    representatives,
    typical_distance,
)
from giw.weights.estimator import Model, RatioEstimator, TwoSamples
from giw.weights.kliep import LARGEST_LOG, SELECTION_ROWS, feature_blocks

RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)  # strong to weak
MOST_FOLDS = 10
Features = Callable[[Tensor], Tensor]
MOST_SQUARES, MOST_LINEAR = 50, 300  # features of the data up to which these are tried


@dataclass(frozen=True)
class LinearFeatures:
    """The features themselves and, if asked for, their squares."""

    squares: bool

    def __call__(self, x: Tensor) -> Tensor:
        """(n, d) → (n, d) or (n, 2 d)."""
        return torch.cat([x, (x.square() - 1) / math.sqrt(2)], 1) if self.squares else x


@dataclass(frozen=True)
class Odds:
    """The odds of a logistic regression."""

    features: Features
    theta: Tensor  # (b + 1,), the constant first

    def __call__(self, x: Tensor) -> Tensor:
        """Ratio at points (n, d) → (n,)."""
        theta = self.theta.to(x.device)
        return (self.features(x) @ theta[1:] + theta[0]).clamp(-LARGEST_LOG, LARGEST_LOG).exp()


@dataclass(frozen=True)
class ForeignOdds:
    """The odds of a fitted scikit-learn classifier."""

    classifier: Any

    def __call__(self, x: Tensor) -> Tensor:
        """Ratio at points (n, d) → (n,)."""
        chance = torch.as_tensor(self.classifier.predict_proba(x.cpu().numpy())[:, 1])
        tiny = math.exp(-LARGEST_LOG)
        ratio = chance.clamp(min=tiny) / (1 - chance).clamp(min=tiny)
        return ratio.to(device=x.device, dtype=x.dtype)


def logistic_coefficients(
    train: Callable[[], Iterable[Tensor]],  # blocks of training features, (rows, b + 1) each
    n_train: int,
    phi_val: Tensor,  # (m, b + 1)
    share: Tensor,  # (m,), sums to one
    *,
    ridge: float,
    odds: float,  # of being a validation point, before x is seen
    start: Tensor,  # (b + 1,)
    tolerance: float = 1e-9,
    most_steps: int = 40,
) -> Tensor:  # (b + 1,)
    r"""Logistic regression with odds :math:`c\, e^f` of being a validation point, by Newton steps.

    .. math:: \min_\theta \tfrac1c E_{\rm train}[\log(1 + c\, e^f)]
              + E_{\rm val}[\log(1 + e^{-f} / c)] + \tfrac\lambda2 \sum_{b \ge 1} \theta_b^2 ,

    times c where that is above one, so that the smaller sample always has weight one.
    """
    penalty = torch.full_like(start, ridge)
    penalty[0] = 1e-9
    shift = math.log(odds)
    each_train, each_val = max(1.0, 1 / odds) / n_train, max(1.0, odds) * share

    def look(theta: Tensor) -> tuple[float, Tensor, Tensor]:
        value = phi_val @ theta + shift
        chance = torch.sigmoid(value)
        loss = float(softplus(-value) @ each_val) + 0.5 * float(penalty @ theta.square())
        gradient = -(each_val * (1 - chance)) @ phi_val + penalty * theta
        curvature = (phi_val * (each_val * chance * (1 - chance))[:, None]).T @ phi_val
        for phi in train():
            value = phi @ theta + shift
            chance = torch.sigmoid(value)
            loss += each_train * float(softplus(value).sum())
            gradient = gradient + (each_train * chance) @ phi
            curvature = curvature + (phi * (each_train * chance * (1 - chance))[:, None]).T @ phi
        return loss, gradient, curvature + torch.diag(penalty)

    theta = start
    loss, gradient, curvature = look(theta)
    for _ in range(most_steps):
        step = torch.linalg.solve(curvature, gradient)
        decrease = float(gradient @ step)
        if decrease < tolerance:
            break
        length = 1.0
        while True:
            tried = theta - length * step
            found = look(tried)
            if found[0] <= loss - 1e-4 * length * decrease or length < 1e-4:
                break
            length *= 0.5
        theta, (loss, gradient, curvature) = tried, found
    return theta


def _with_constant(features: Features, x: Tensor) -> Tensor:
    phi = features(x)
    return torch.cat([torch.ones_like(phi[:, :1]), phi], 1)


@dataclass(frozen=True)
class HeldOut:
    """Logistic loss of each point under a fit that it took no part in."""

    on_train: Tensor  # (..., n)
    on_val: Tensor  # (..., m)
    share: Tensor  # (m,)
    odds: float

    def mean(self) -> Tensor:
        """Every point weighing the same, (...)."""
        return self.on_train.mean(-1) / self.odds + (self.on_val * self.share).sum(-1)

    def clearly_above(self, other: HeldOut) -> bool:
        """Whether this loss is higher by more than one standard error of the difference."""
        train, val = (self.on_train - other.on_train) / self.odds, self.on_val - other.on_val
        average = (val * self.share).sum()
        variance = train.var(correction=0) / len(train)
        variance = variance + (self.share.square() * (val - average).square()).sum()
        return bool(train.mean() + average > variance.sqrt())


def held_out_losses(
    features: Features, samples: TwoSamples, ridges: list[float], *, odds: float
) -> HeldOut:
    """Loss of every point for every ridge, (ridges, n) and (ridges, m)."""
    n_folds = min(MOST_FOLDS, len(samples.val))
    fold_train, fold_val = fold_numbers(samples.train, n_folds), fold_numbers(samples.val, n_folds)
    phi_train, phi_val = (_with_constant(features, x) for x in (samples.train, samples.val))
    on_train = phi_train.new_zeros(len(ridges), len(phi_train))
    on_val = phi_train.new_zeros(len(ridges), len(phi_val))
    shift = math.log(odds)
    for fold in range(n_folds):
        out_train, out_val = fold_train == fold, fold_val == fold
        rest = phi_train[~out_train] if bool((~out_train).any()) else phi_train
        share = torch.where(out_val, 0.0, samples.share)
        theta = torch.zeros_like(phi_val[0])
        for index, ridge in enumerate(ridges):  # from strong to weak, each from the last
            theta = logistic_coefficients(
                partial(iter, [rest]),
                len(rest),
                phi_val,
                share / share.sum(),
                ridge=ridge,
                odds=odds,
                start=theta,
                tolerance=1e-6,
            )
            on_train[index, out_train] = softplus(phi_train[out_train] @ theta + shift)
            on_val[index, out_val] = softplus(-(phi_val[out_val] @ theta + shift))
    return HeldOut(on_train, on_val, samples.share, odds)


class ClassifierRatio(RatioEstimator):
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

    def _fit_model(self, samples: TwoSamples) -> Model:
        if self.classifier is not None:
            return ForeignOdds(self._fit_foreign(samples))
        few = samples.few(SELECTION_ROWS)
        maps = self._maps(samples)
        ridges = list(RIDGES) if isinstance(self.ridge, str) else [float(self.ridge)]
        # members that count for less than one make the validation sample smaller
        n_val = 1 / float(samples.share.square().sum())
        odds = 1.0 if self.balanced else n_val / len(samples.train)
        self.features_, self.ridge_ = _choose(few, maps, ridges, odds=odds)
        chosen = maps[self.features_]
        phi_val = _with_constant(chosen, samples.val)
        theta = torch.zeros_like(phi_val[0])
        for data in (few, samples):  # most of the way is walked on few rows
            theta = logistic_coefficients(
                partial(feature_blocks, partial(_with_constant, chosen), data.train),
                len(data.train),
                phi_val,
                samples.share,
                ridge=self.ridge_,
                odds=odds,
                start=theta,
            )
        return Odds(chosen, theta)

    def _maps(self, samples: TwoSamples) -> dict[str, Features]:
        """The functions to choose from, simplest first."""
        d = samples.train.shape[1]
        half = max(1, self.n_centers // 2)
        known: dict[str, Features] = {
            "linear": LinearFeatures(squares=False),
            "quadratic": LinearFeatures(squares=True),
        }
        if self.features in known:
            return {self.features: known[self.features]}
        centers = torch.cat(
            [representatives(samples.train, half), representatives(samples.val, half)]
        )
        width = typical_distance(samples.train, samples.val)
        known["kernel"] = GaussianBasis.whitened(centers, width)
        if self.features == "kernel":
            return {"kernel": known["kernel"]}
        most = {"linear": MOST_LINEAR, "quadratic": MOST_SQUARES}
        return {name: phi for name, phi in known.items() if d <= most.get(name, d)}

    def _fit_foreign(self, samples: TwoSamples) -> Any:
        n, m = len(samples.train), len(samples.val)
        x = torch.cat([samples.train, samples.val]).cpu().numpy()
        label = torch.cat([torch.zeros(n), torch.ones(m)]).long().numpy()
        # both samples weigh n, so that penalties tuned for n points keep their meaning
        weight = torch.cat([torch.ones(n).double(), n * samples.share.cpu()]).numpy()
        return clone(self.classifier).fit(x, label, sample_weight=weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = ("auto", "linear", "quadratic", "kernel")
        if self.features not in names:
            raise ValueError(f"features must be one of {names}, got {self.features!r}")


def _choose(
    few: TwoSamples, maps: dict[str, Features], ridges: list[float], *, odds: float
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
    x_train: Any,
    x_val: Any,
    *,
    features: str = "auto",
    ridge: str | float = "auto",
    classifier: Any | None = None,
    n_centers: int = 100,
    standardize: bool = True,
    balanced: bool = False,
    val_weight: Any | None = None,
) -> Any:
    """Mean-one weights at the training points by classification; see `giw.ClassifierRatio`.

    Returns
    -------
    array of shape (n,)
        Weights at the training points.
    """
    estimator = ClassifierRatio(features, ridge, classifier, n_centers, standardize, balanced)
    return estimator.fit(x_train, x_val, val_weight).weight_
