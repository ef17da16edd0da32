"""Ratios by least squares with non-negative coefficients: LSIF."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from giw.weights.basis import GaussianBasis, candidate_widths, fold_numbers, representatives
from giw.weights.estimator import RatioEstimator, TwoSamples
from giw.weights.least_squares import LinearRatio, relative_gram, robust_score, with_constant

RIDGES = tuple(10.0**power for power in (-3, -2.5, -2, -1.5, -1, -0.5, 0, 1))
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # multiples of the median distance
SELECTION_ROWS = 1_000
MOST_FOLDS = 5


def nonnegative_coefficients(
    gram: Tensor,  # (..., b + 1, b + 1), no negative entries
    target: Tensor,  # (..., b + 1)
    *,
    ridge: Tensor,  # (...), broadcasts against the batch
    n_steps: int = 200,
) -> Tensor:  # (..., b + 1)
    r"""Minimise :math:`\tfrac12\theta^\top H\theta - h^\top\theta` plus the penalty, for θ ≥ 0.

    Accelerated projected gradient with a step size for each coefficient:
    :math:`H \preceq \mathrm{diag}(H 1)` because H has no negative entries.
    """
    free = torch.ones_like(target)
    free[..., 0] = 0.0  # the constant is not penalised
    penalty = ridge[..., None] * free  # (..., b + 1)
    matrix = gram + torch.diag_embed(penalty)
    linear = target - penalty
    inverse = 1 / matrix.sum(-1)
    theta = (1 - free).expand_as(linear)
    point, momentum = theta, 1.0
    for _ in range(n_steps):
        gradient = (matrix @ point[..., None])[..., 0] - linear
        moved = (point - gradient * inverse).clamp(min=0)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        point = moved + (momentum - 1) / following * (moved - theta)
        theta, momentum = moved, following
    return theta


def held_out_scores(
    basis: GaussianBasis, samples: TwoSamples, ridges: Tensor
) -> Tensor:  # one per ridge
    """Score of each ridge on folds that took no part in the fit."""
    n_folds = min(MOST_FOLDS, len(samples.val))
    fold_train, fold_val = fold_numbers(samples.train, n_folds), fold_numbers(samples.val, n_folds)
    phi_train = with_constant(basis(samples.train))  # (n, b + 1)
    phi_val = with_constant(basis(samples.val))  # (m, b + 1)
    kept = [fold_train != fold for fold in range(n_folds)]
    kept = [rows if bool(rows.any()) else ~rows for rows in kept]  # a single training point
    gram = torch.stack([phi_train[rows].T @ phi_train[rows] / rows.sum() for rows in kept])
    rest = torch.stack([torch.where(fold_val == f, 0.0, samples.share) for f in range(n_folds)])
    target = rest @ phi_val / rest.sum(1, keepdim=True)  # (folds, b + 1)
    theta = nonnegative_coefficients(
        gram, target.expand(len(ridges), *target.shape), ridge=ridges[:, None]
    )  # (ridges, folds, b + 1)
    at_train = (theta[:, fold_train] * phi_train).sum(-1)  # (ridges, n)
    at_val = (theta[:, fold_val] * phi_val).sum(-1)  # (ridges, m)
    return robust_score(at_train, at_val, samples.share)


class LSIF(RatioEstimator):
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
    bandwidth : "auto", "median" or float, default="auto"
        Kernel width :math:`\sigma`; in standard deviations if ``standardize``, else in the units of
        the features. "auto" chooses it, with the ridge, by five-fold cross-validation of the
        bounded ratio :math:`w / (\tfrac12 w + \tfrac12)`. With fewer than three validation points
        nothing can be held out, and the widest kernel and strongest ridge are taken.
    ridge : "auto" or float, default="auto"
        Penalty :math:`\lambda`; a larger one pulls all weights towards one.
    n_centers : int, default=100
        Most basis functions.
    standardize : bool, default=True
        Give every feature the same unit first.

    References
    ----------
    .. [1] Kanamori, Hido and Sugiyama, JMLR 10:1391-1445, 2009.
    """

    def __init__(
        self,
        bandwidth: str | float = "auto",
        ridge: str | float = "auto",
        n_centers: int = 100,
        standardize: bool = True,
    ) -> None:
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_centers = n_centers
        self.standardize = standardize

    def _fit_model(self, samples: TwoSamples) -> LinearRatio:
        centers = representatives(samples.val, self.n_centers)
        widths = candidate_widths(self.bandwidth, samples.train, samples.val, factors=WIDTHS)
        ridges = list(RIDGES) if isinstance(self.ridge, str) else [float(self.ridge)]
        basis, self.ridge_ = self._choose(
            samples, [GaussianBasis(centers, width) for width in widths], ridges
        )
        self.bandwidth_ = basis.width
        theta = nonnegative_coefficients(
            relative_gram(basis, samples, 0.0),
            samples.share @ with_constant(basis(samples.val)),
            ridge=samples.share.new_tensor(self.ridge_),
            n_steps=2_000,
        )
        return LinearRatio(basis, theta)

    def _choose(
        self, samples: TwoSamples, bases: list[GaussianBasis], ridges: list[float]
    ) -> tuple[GaussianBasis, float]:
        if len(bases) * len(ridges) == 1 or not samples.can_hold_out:
            return bases[-1], ridges[-1]
        few = samples.few(SELECTION_ROWS)
        table = torch.stack(
            [held_out_scores(basis, few, few.share.new_tensor(ridges)) for basis in bases]
        )  # (bases, ridges)
        best = int(table.argmin())
        return bases[best // len(ridges)], ridges[best % len(ridges)]


def lsif(
    x_train: Any,
    x_val: Any,
    *,
    bandwidth: str | float = "auto",
    ridge: str | float = "auto",
    n_centers: int = 100,
    standardize: bool = True,
    val_weight: Any | None = None,
) -> Any:
    """Mean-one weights at the training points by non-negative least squares; see `giw.LSIF`.

    Returns
    -------
    array of shape (n,)
        Weights at the training points.
    """
    estimator = LSIF(bandwidth, ridge, n_centers, standardize)
    return estimator.fit(x_train, x_val, val_weight).weight_
