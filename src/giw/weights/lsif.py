"""Ratios by least squares with non-negative coefficients: LSIF."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.weights.basis import (
    GaussianBasis,
    KernelRatio,
    best_of,
    candidate_widths,
    folds_of,
    with_constant,
)
from giw.weights.least_squares import LinearRatio, mean_features, relative_gram, robust_score
from giw.weights.samples import Samples

Array = NDArray[np.float64]
RIDGES = tuple(10.0**power for power in (1, 0, -0.5, -1, -1.5, -2, -2.5, -3))
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # multiples of the median distance
SELECTION_ROWS = 1_000
MOST_FOLDS = 5


def nonnegative_coefficients(
    gram: Array,  # (..., b + 1, b + 1), no negative entries
    target: Array,  # (..., b + 1)
    *,
    ridge: float | Array,  # (...), broadcasts against the batch
    n_steps: int = 200,
) -> Array:  # (..., b + 1)
    r"""Minimise :math:`\tfrac12\theta^\top H\theta - h^\top\theta` plus the penalty, for θ ≥ 0.

    Accelerated projected gradient with a step size for each coefficient:
    :math:`H \preceq \mathrm{diag}(H 1)` because H has no negative entries.
    """
    free = np.ones(target.shape[-1])
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


def held_out_scores(
    basis: GaussianBasis, samples: Samples, ridges: list[float]
) -> Array:  # one per ridge
    """Score of each ridge on folds that took no part in the fit."""
    phi_train = with_constant(basis(samples.train))  # (n, b + 1)
    phi_val = with_constant(basis(samples.val))  # (m, b + 1)
    folds = list(folds_of(samples, MOST_FOLDS))
    kept = [phi_train[fold.kept_train] for fold in folds]
    theta = nonnegative_coefficients(
        np.stack([phi.T @ phi / len(phi) for phi in kept]),
        np.stack([fold.share @ phi_val for fold in folds]),
        ridge=np.array(ridges)[:, None],
    )  # (ridges, folds, b + 1)
    at_train, at_val = (
        np.empty((len(ridges), len(phi_train))),
        np.empty((len(ridges), len(phi_val))),
    )
    for number, fold in enumerate(folds):
        at_train[:, fold.out_train] = theta[:, number] @ phi_train[fold.out_train].T
        at_val[:, fold.out_val] = theta[:, number] @ phi_val[fold.out_val].T
    return robust_score(at_train, at_val, samples.share)


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

    def _fit_model(self, samples: Samples) -> LinearRatio:
        centers = samples.some_val(self.n_centers)
        widths = candidate_widths(self.bandwidth, samples, WIDTHS)
        bases = [GaussianBasis(centers, width) for width in widths]
        few = samples.few(SELECTION_ROWS)
        basis, self.ridge_ = best_of(few, bases, self._ridges(RIDGES), held_out_scores)
        self.bandwidth_ = basis.width
        theta = nonnegative_coefficients(
            relative_gram(basis, samples, 0.0),
            mean_features(basis, samples),
            ridge=self.ridge_,
            n_steps=2_000,
        )
        return LinearRatio(basis, theta)


def lsif(x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any) -> Any:
    """Mean-one weights by non-negative least squares; parameters are those of `giw.LSIF`.

    Returns
    -------
    array of shape (n,)
        Weights at the training points.
    """
    return LSIF(**parameters).fit(x_train, x_val, val_weight).weight_
