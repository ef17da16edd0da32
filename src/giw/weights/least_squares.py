"""Ratios by least squares: uLSIF, the relative ratio RuLSIF, and LSIF without negative terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from giw.weights.ratio import (
    GaussianBasis,
    KernelRatio,
    LinearRatio,
    held_out_values,
    with_constant,
)
from giw.weights.samples import Samples, blocks

Array = NDArray[np.float64]
RIDGES = tuple(10.0**power for power in (2, 1, 0.5, 0, -0.5, -1, -1.5, -2, -2.5, -3, -4))
ROBUST = 0.5  # the share of validation data in the score that chooses parameters, see pearson_score


@dataclass(frozen=True)
class Spectrum:
    r"""The normal equations :math:`(H + \lambda P)\theta = h` for all ridges at once.

    The constant is not penalised, so it is eliminated first: with :math:`\tilde\phi` the features
    less their mean under H, :math:`\phi^\top (H + \lambda P)^{-1} \psi = 1 + \tilde\phi^\top
    (C + \lambda I)^{-1} \tilde\psi`, where C is their covariance, diagonal in its eigenvectors.
    """

    center: Array  # (b,)
    value: Array  # (b,)
    vector: Array  # (b, b)

    @classmethod
    def of(cls, gram: Array) -> Spectrum:
        """From a gram matrix (b + 1, b + 1) whose first row and column belong to the constant."""
        center = gram[0, 1:]
        value, vector = np.linalg.eigh(gram[1:, 1:] - np.outer(center, center))
        return cls(center, value.clip(0), vector)

    def rotate(self, phi: Array) -> Array:
        """Features with their constant, (..., b + 1) → (..., b) along the eigenvectors."""
        return (phi[..., 1:] - self.center) @ self.vector

    def coefficients(self, target: Array, ridge: float) -> Array:
        """θ with the constant first, (b + 1,), for the validation mean of the features."""
        slope = self.vector @ (self.rotate(target) / (self.value + ridge))
        return np.append(1 - self.center @ slope, slope)


def relative_gram(basis: GaussianBasis, samples: Samples, eta: float) -> Array:
    r""":math:`(1-\eta) E_{\rm train}[\phi\phi^\top] + \eta E_{\rm val}[\phi\phi^\top]`."""
    gram = np.zeros((basis.size + 1, basis.size + 1))
    for part in blocks(samples.train):
        phi = with_constant(basis(part))
        gram += phi.T @ phi
    gram *= (1 - eta) / len(samples.train)
    if eta > 0:
        for part, share in samples.val_blocks():
            phi = with_constant(basis(part))
            gram += eta * (phi * share[:, None]).T @ phi
    return gram


def mean_features(basis: GaussianBasis, samples: Samples) -> Array:
    r""":math:`E_{\rm val}[\phi]` with the constant first, (b + 1,)."""
    return np.sum(
        [share @ with_constant(basis(part)) for part, share in samples.val_blocks()], axis=0
    )


def leave_one_out(
    phi_train: Array,  # (n, b + 1)
    phi_val: Array,  # (m, b + 1)
    share: Array,  # (m,), sums to one
    *,
    ridges: Array,  # (r,)
    eta: float = 0.0,
) -> tuple[Array, Array]:  # (r, n), (r, m)
    r"""What the model says of each point when that point is left out, in closed form.

    One point changes :math:`H` by a rank-one matrix and, if it is a validation point, changes
    :math:`h`, so that both solutions follow from :math:`\phi^\top A^{-1}\phi` and
    :math:`\phi^\top A^{-1} h` (Sherman-Morrison). Left-out points are taken out of :math:`H`
    without renormalising the rest.
    """
    n = len(phi_train)
    gram = (1 - eta) / n * phi_train.T @ phi_train
    if eta > 0:
        gram = gram + eta * (phi_val * share[:, None]).T @ phi_val
    spectrum = Spectrum.of(gram)
    inverse = 1 / (spectrum.value + ridges[:, None])  # (r, b)
    mean = spectrum.rotate(share @ phi_val) * inverse  # (r, b)

    def value_and_leverage(phi: Array) -> tuple[Array, Array]:
        along = spectrum.rotate(phi)  # (rows, b)
        return 1 + mean @ along.T, 1 + inverse @ np.square(along).T  # (r, rows) each

    value, own = value_and_leverage(phi_train)
    out_train = value / (1 - (1 - eta) / n * own).clip(1e-6)
    value, own = value_and_leverage(phi_val)
    shifted = (value - share * own) / (1 - share)  # h without the point
    out_val = shifted / (1 - eta * share * own).clip(1e-6)
    return out_train.clip(0), out_val.clip(0)


def pearson_score(
    at_train: Array,  # (..., n)
    at_val: Array,  # (..., m)
    share: Array,  # (m,)
    *,
    eta: float,
) -> Array:  # (...)
    r"""Least-squares loss of a relative ratio r, less a constant; smaller is better.

    .. math:: \tfrac{1-\eta}{2} E_{\rm train}[r^2] + \tfrac{\eta}{2} E_{\rm val}[r^2]
              - E_{\rm val}[r]
    """
    on_train = 0.5 * (1 - eta) * np.square(at_train).mean(-1)
    return on_train + ((0.5 * eta * np.square(at_val) - at_val) * share).sum(-1)


def robust_score(at_train: Array, at_val: Array, share: Array) -> Array:
    r"""Score of a plain ratio w by its bounded form :math:`r = w / (\tfrac12 w + \tfrac12)`.

    The plain score averages :math:`w^2`, which a handful of points in the tail decide, and then
    picks wiggly models by accident; the relative ratio lies between 0 and 2.
    """
    train, val = (w / (ROBUST * w + 1 - ROBUST) for w in (at_train, at_val))
    return pearson_score(train, val, share, eta=ROBUST)


def leave_one_out_scores(
    basis: GaussianBasis, few: Samples, ridges: list[float], *, eta: float = 0.0
) -> Array:  # one per ridge
    """Leave-one-out score of every ridge."""
    phi_train, phi_val = with_constant(basis(few.train)), with_constant(basis(few.val))
    train, val = leave_one_out(phi_train, phi_val, few.share, ridges=np.array(ridges), eta=eta)
    if eta > 0:
        return pearson_score(train, val, few.share, eta=eta)
    return robust_score(train, val, few.share)


class ULSIF(KernelRatio):
    r"""Density ratio by unconstrained least squares (uLSIF [1]_).

    Models :math:`w(x) = \theta_0 + \sum_b \theta_b \exp(-\lVert x - c_b \rVert^2 / 2\sigma^2)`
    around validation points :math:`c_b` and solves

    .. math:: \min_\theta\ \tfrac12 E_{\rm train}[w^2] - E_{\rm val}[w]
              + \tfrac{\lambda}{2} \sum_{b \ge 1} \theta_b^2

    in closed form; negative values become zero, then the mean becomes one. The constant is not
    penalised, so that a strong penalty leads to equal weights and two equal samples give
    weights of one.

    Parameters
    ----------
    bandwidth : "auto", "median" or float, default="auto"
        Kernel width :math:`\sigma`; in standard deviations if ``standardize``, else in the units of
        the features. "auto" chooses it, with the ridge, by leave-one-out in closed form: a model
        is scored by the bounded ratio :math:`w / (\tfrac12 w + \tfrac12)`, because the plain
        score depends on a handful of tail points. With fewer than three validation points nothing
        can be left out, and the widest kernel and strongest ridge are taken.
    ridge : "auto" or float, default="auto"
        Penalty :math:`\lambda`; a larger one pulls all weights towards one.
    n_centers : int, default=100
        Most basis functions.
    standardize : bool, default=True
        Give every feature the same unit first; without it the feature with the largest
        numbers decides.

    References
    ----------
    .. [1] Kanamori, Hido and Sugiyama, JMLR 10:1391-1445, 2009.
    """

    takes_chunks: ClassVar[bool] = True
    ridges: ClassVar[tuple[float, ...]] = RIDGES
    eta: float = 0.0

    def _scores(self, basis: GaussianBasis, few: Samples, ridges: list[float]) -> Array:
        return leave_one_out_scores(basis, few, ridges, eta=float(self.eta))

    def _fit_chosen(self, basis: GaussianBasis, few: Samples, samples: Samples) -> LinearRatio:
        spectrum = Spectrum.of(relative_gram(basis, samples, float(self.eta)))
        return LinearRatio(basis, spectrum.coefficients(mean_features(basis, samples), self.ridge_))


def ulsif(x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any) -> Any:
    """Mean-one weights by least squares, (n,); parameters are those of `giw.ULSIF`."""
    return ULSIF(**parameters).fit(x_train, x_val, val_weight).weight_


class RULSIF(ULSIF):
    r"""Relative density ratio by least squares (RuLSIF [1]_).

    Estimates :math:`r_\eta = p_{\rm val} / (\eta\, p_{\rm val} + (1-\eta)\, p_{\rm train})`, which
    never exceeds :math:`1/\eta`, with the model of :class:`giw.ULSIF` and

    .. math:: \min_\theta\ \tfrac{1-\eta}2 E_{\rm train}[r^2] + \tfrac{\eta}2 E_{\rm val}[r^2]
              - E_{\rm val}[r] + \tfrac{\lambda}{2} \sum_{b \ge 1} \theta_b^2 .

    The mean of :math:`r_\eta` is one under the mixture, and under the training data it is below
    one unless the two distributions agree. Dividing by that mean, as is done by default, keeps the
    proportions between weights, makes them comparable with other estimators' (and fit for
    learners whose regularisation feels the scale), and lets them exceed :math:`1/\eta`. With
    ``raw=True`` weights are the relative ratio itself.

    Parameters
    ----------
    eta : float, default=0.1
        Share of validation data in the denominator, 0 to 1. Zero is the plain ratio of
        :class:`giw.ULSIF`; more flattens the weights; at one they are all equal.
    bandwidth, ridge, n_centers, standardize
        As in :class:`giw.ULSIF`.
    raw : bool, default=False
        Leave the relative ratio as it is instead of rescaling it to mean one.

    References
    ----------
    .. [1] Yamada, Suzuki, Kanamori, Hachiya and Sugiyama, Neural Computation 25:1324-1370, 2013.
    """

    def __init__(
        self,
        eta: float = 0.1,
        bandwidth: str | float = "auto",
        ridge: str | float = "auto",
        n_centers: int = 100,
        raw: bool = False,
        standardize: bool = True,
    ) -> None:
        super().__init__(bandwidth, ridge, n_centers, standardize)
        self.eta = eta
        self.raw = raw

    def _scale(self, raw: Array) -> float:
        return 1.0 if self.raw else super()._scale(raw)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 <= self.eta <= 1:
            raise ValueError(f"eta must lie between 0 and 1, got {self.eta}")


def rulsif(x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any) -> Any:
    """Weights by the relative ratio, (n,); parameters are those of `giw.RULSIF`."""
    return RULSIF(**parameters).fit(x_train, x_val, val_weight).weight_


def nonnegative_coefficients(
    gram: Array,  # (b + 1, b + 1), no negative entries
    target: Array,  # (b + 1,)
    *,
    ridge: float | Array,  # (...), one or several at once
    n_steps: int = 200,
) -> Array:  # (..., b + 1)
    r"""Minimise :math:`\tfrac12\theta^\top H\theta - h^\top\theta` plus the penalty, for θ ≥ 0.

    Accelerated projected gradient with a step size for each coefficient:
    :math:`H \preceq \mathrm{diag}(H 1)` because H has no negative entries.
    """
    free = np.ones(len(target))
    free[0] = 0.0  # the constant is not penalised
    penalty = np.asarray(ridge)[..., None] * free  # (..., b + 1)
    matrix = gram + penalty[..., None] * np.eye(len(free))
    linear = target - penalty
    inverse = 1 / matrix.sum(-1)
    theta = np.broadcast_to(1 - free, linear.shape)
    point, momentum = theta, 1.0
    for _ in range(n_steps):
        gradient = (matrix @ point[..., None])[..., 0] - linear
        moved = (point - gradient * inverse).clip(0)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        point = moved + (momentum - 1) / following * (moved - theta)
        theta, momentum = moved, following
    return theta


class LSIF(KernelRatio):
    r"""Density ratio by least squares with non-negative coefficients (LSIF [1]_).

    Models :math:`w(x) = \theta_0 + \sum_b \theta_b \exp(-\lVert x - c_b \rVert^2 / 2\sigma^2)`
    around validation points :math:`c_b` and solves

    .. math:: \min_{\theta \ge 0}\ \tfrac12 E_{\rm train}[w^2] - E_{\rm val}[w]
              + \lambda \sum_{b \ge 1} (\theta_b + \tfrac12 \theta_b^2) .

    No ratio is ever negative, and many coefficients are exactly zero. The square beside the
    original's linear penalty bounds the coefficient of a basis function that stands where there
    are next to no training points; the free constant makes equal weights the limit of a
    strong penalty.

    Parameters
    ----------
    bandwidth, ridge, n_centers, standardize
        As in :class:`giw.ULSIF`, but that "auto" chooses by five-fold cross-validation of the
        same bounded ratio.

    References
    ----------
    .. [1] Kanamori, Hido and Sugiyama, JMLR 10:1391-1445, 2009.
    """

    widths: ClassVar[tuple[float, ...]] = (0.25, 0.5, 1.0, 2.0)
    ridges: ClassVar[tuple[float, ...]] = (10.0, *(10.0 ** (-k / 2) for k in range(7)))
    selection_rows: ClassVar[int] = 1_000  # two hundred steps for every fold, width and ridge

    def _scores(self, basis: GaussianBasis, few: Samples, ridges: list[float]) -> Array:
        def fit(phi: Array, phi_val: Array, share: Array, ridges: list[float]) -> Array:
            gram, target = phi.T @ phi / len(phi), share @ phi_val
            return nonnegative_coefficients(gram, target, ridge=np.array(ridges))

        at_train, at_val = held_out_values(basis, few, ridges, fit, most_folds=5)
        return robust_score(at_train, at_val, few.share)

    def _fit_chosen(self, basis: GaussianBasis, few: Samples, samples: Samples) -> LinearRatio:
        gram, target = relative_gram(basis, samples, 0.0), mean_features(basis, samples)
        theta = nonnegative_coefficients(gram, target, ridge=self.ridge_, n_steps=2_000)
        return LinearRatio(basis, theta)


def lsif(x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any) -> Any:
    """Mean-one weights by non-negative least squares, (n,); parameters are those of `giw.LSIF`."""
    return LSIF(**parameters).fit(x_train, x_val, val_weight).weight_
