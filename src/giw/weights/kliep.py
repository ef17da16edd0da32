"""Ratios by likelihood: KLIEP with a log-linear model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.weights.basis import (
    LARGEST_LOG,
    GaussianBasis,
    KernelRatio,
    best_of,
    candidate_widths,
    centers_of_both,
    feature_blocks,
    folds_of,
    newton,
)
from giw.weights.samples import Samples

Array = NDArray[np.float64]
RIDGES = (10.0, 1.0, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)  # strong to weak
WIDTHS = (0.6, 1.0, 2.0, 5.0)  # multiples of the median distance
SELECTION_ROWS = 1_000  # a Newton fit for every fold, width and ridge
MOST_FOLDS = 5


@dataclass(frozen=True)
class LogLinearRatio:
    r"""The ratio :math:`\exp(\theta^\top \phi(x) - \log Z)`."""

    basis: GaussianBasis
    theta: Array  # (b,)
    log_mean: float

    def __call__(self, x: Array) -> Array:
        """Ratio at points (n, d) → (n,)."""
        value = self.basis(x) @ self.theta - self.log_mean
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
    features: Callable[[], Iterable[Array]],  # blocks of training features, (rows, b) each
    target: Array,  # (b,), validation mean of the features
    *,
    ridge: float,
    start: Array,  # (b,)
    tolerance: float = 1e-8,
) -> tuple[Array, float]:  # θ (b,), log mean of the unnormalised ratio
    r"""Maximise :math:`E_{\rm val}[\log w] - \tfrac\lambda2\lVert\theta\rVert^2`, by Newton."""
    identity = np.eye(len(start))

    def look(theta: Array) -> tuple[float, Array, Array]:
        log_mean, mean, covariance = tilted_moments(features(), theta)
        loss = log_mean - float(target @ theta) + 0.5 * ridge * float(theta @ theta)
        return loss, mean - target + ridge * theta, covariance + ridge * identity

    theta = newton(look, start, tolerance=tolerance)
    return theta, tilted_moments(features(), theta)[0]


def held_out_losses(basis: GaussianBasis, samples: Samples, ridges: list[float]) -> list[float]:
    r"""How badly each ridge tells held-out validation points from held-out training points.

    Minus the log likelihood of the label "validation" under the odds w(x): the plain
    :math:`E_{\rm val}[\log w]` does not see how large w becomes on training points.
    """
    phi_train, phi_val = basis(samples.train), basis(samples.val)
    loss = [0.0] * len(ridges)
    for fold in folds_of(samples, MOST_FOLDS):
        rest, target = phi_train[fold.kept_train], fold.share @ phi_val
        theta = np.zeros_like(target)
        for index, ridge in enumerate(ridges):  # from strong to weak, each from the last
            theta, log_mean = log_linear_coefficients(
                partial(iter, [rest]), target, ridge=ridge, start=theta, tolerance=1e-5
            )
            on_train = phi_train[fold.out_train] @ theta - log_mean
            on_val = phi_val[fold.out_val] @ theta - log_mean
            loss[index] += float(np.logaddexp(0, on_train).sum()) / len(phi_train)
            loss[index] += float(samples.share[fold.out_val] @ np.logaddexp(0, -on_val))
    return loss


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

    def _fit_model(self, samples: Samples) -> LogLinearRatio:
        centers = centers_of_both(samples, max(1, self.n_centers // 2))
        widths = candidate_widths(self.bandwidth, samples, WIDTHS)
        few = samples.few(SELECTION_ROWS)
        bases = [GaussianBasis.whitened(centers, width) for width in widths]
        basis, self.ridge_ = best_of(few, bases, self._ridges(RIDGES), held_out_losses)
        self.bandwidth_ = basis.width
        target = samples.share @ basis(samples.val)
        theta = np.zeros_like(target)
        for data in (few, samples):  # most of the way is walked on few rows
            theta, log_mean = log_linear_coefficients(
                partial(feature_blocks, basis, data),
                target,
                ridge=self.ridge_,
                start=theta,
            )
        return LogLinearRatio(basis, theta, log_mean)


def kliep(x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any) -> Any:
    """Mean-one weights by likelihood; parameters are those of `giw.KLIEP`.

    Returns
    -------
    array of shape (n,)
        Weights at the training points.
    """
    return KLIEP(**parameters).fit(x_train, x_val, val_weight).weight_
