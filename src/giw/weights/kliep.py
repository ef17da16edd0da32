"""Ratios by likelihood: KLIEP with a log-linear model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from giw.weights.basis import (
    GaussianBasis,
    candidate_widths,
    fold_numbers,
    representatives,
    row_blocks,
)
from giw.weights.estimator import RatioEstimator, TwoSamples

RIDGES = (10.0, 1.0, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)  # strong to weak
WIDTHS = (0.6, 1.0, 2.0, 5.0)  # multiples of the median distance
SELECTION_ROWS = 1_000  # a Newton fit for every fold, width and ridge
MOST_FOLDS = 5
LARGEST_LOG = 60.0  # of a ratio: exp(60) is further than any density ratio that can be estimated


@dataclass(frozen=True)
class LogLinearRatio:
    r"""The ratio :math:`\exp(\theta^\top \phi(x) - \log Z)`."""

    basis: GaussianBasis
    theta: Tensor  # (b,)
    log_mean: float

    def __call__(self, x: Tensor) -> Tensor:
        """Ratio at points (n, d) → (n,)."""
        value = self.basis(x) @ self.theta.to(x.device) - self.log_mean
        return value.clamp(-LARGEST_LOG, LARGEST_LOG).exp()


def tilted_moments(
    parts: Iterable[Tensor],  # blocks of features, (rows, b) each
    theta: Tensor,  # (b,)
) -> tuple[float, Tensor, Tensor]:
    r"""Log-mean of :math:`e^{\theta^\top\phi}` and mean and covariance of φ weighted by it."""
    peak, total, count = -math.inf, 0.0, 0
    first: Tensor | float = 0.0
    second: Tensor | float = 0.0
    for phi in parts:
        value = phi @ theta  # (rows,)
        higher = max(peak, float(value.max()))
        fade = math.exp(peak - higher)  # what came before, seen from the new peak
        weight = (value - higher).exp()
        total = fade * total + float(weight.sum())
        first = fade * first + weight @ phi
        second = fade * second + (phi * weight[:, None]).T @ phi
        peak, count = higher, count + len(phi)
    mean = torch.as_tensor(first) / total
    covariance = torch.as_tensor(second) / total - torch.outer(mean, mean)
    return math.log(total / count) + peak, mean, covariance


def log_linear_coefficients(
    features: Callable[[], Iterable[Tensor]],  # blocks of training features, (rows, b) each
    target: Tensor,  # (b,), validation mean of the features
    *,
    ridge: float,
    start: Tensor,  # (b,)
    tolerance: float = 1e-8,
    most_steps: int = 30,
) -> tuple[Tensor, float]:  # θ (b,), log mean of the unnormalised ratio
    r"""Maximise :math:`E_{\rm val}[\log w] - \tfrac\lambda2\lVert\theta\rVert^2`, by Newton."""
    theta = start
    identity = torch.eye(len(start), dtype=start.dtype, device=start.device)

    def look(at: Tensor) -> tuple[float, float, Tensor, Tensor]:
        log_mean, mean, covariance = tilted_moments(features(), at)
        loss = log_mean - float(target @ at) + 0.5 * ridge * float(at @ at)
        return loss, log_mean, mean, covariance

    loss, log_mean, mean, covariance = look(theta)
    for _ in range(most_steps):
        gradient = mean - target + ridge * theta
        step = torch.linalg.solve(covariance + ridge * identity, gradient)
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
        theta, (loss, log_mean, mean, covariance) = tried, found
    return theta, log_mean


def held_out_likelihood(
    basis: GaussianBasis, samples: TwoSamples, ridges: list[float]
) -> list[float]:
    r"""How well each ridge tells held-out validation points from held-out training points.

    The log likelihood of the label "validation" under the odds w(x): the plain
    :math:`E_{\rm val}[\log w]` does not see how large w becomes on training points.
    """
    n_folds = min(MOST_FOLDS, len(samples.val))
    fold_train, fold_val = fold_numbers(samples.train, n_folds), fold_numbers(samples.val, n_folds)
    phi_train, phi_val = basis(samples.train), basis(samples.val)
    scores = [0.0] * len(ridges)
    for fold in range(n_folds):
        out_train, out_val = fold_train == fold, fold_val == fold
        rest = phi_train[~out_train] if bool((~out_train).any()) else phi_train
        share = torch.where(out_val, 0.0, samples.share)
        target = share @ phi_val / share.sum()
        theta = torch.zeros_like(target)
        for index, ridge in enumerate(ridges):  # from strong to weak, each from the last
            theta, log_mean = log_linear_coefficients(
                partial(iter, [rest]), target, ridge=ridge, start=theta, tolerance=1e-5
            )
            on_train = phi_train[out_train] @ theta - log_mean
            on_val = phi_val[out_val] @ theta - log_mean
            scores[index] -= float(softplus(on_train).sum()) / len(phi_train)
            scores[index] -= float((softplus(-on_val) * samples.share[out_val]).sum())
    return scores


class KLIEP(RatioEstimator):
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

    def _fit_model(self, samples: TwoSamples) -> LogLinearRatio:
        widths = candidate_widths(self.bandwidth, samples.train, samples.val, factors=WIDTHS)
        half = max(1, self.n_centers // 2)
        centers = torch.cat(
            [representatives(samples.train, half), representatives(samples.val, half)]
        )
        ridges = list(RIDGES) if isinstance(self.ridge, str) else [float(self.ridge)]
        few = samples.few(SELECTION_ROWS)
        bases = [GaussianBasis.whitened(centers, width) for width in widths]
        basis, self.ridge_ = _choose(few, bases, ridges)
        self.bandwidth_ = basis.width

        target = samples.share @ basis(samples.val)
        theta = torch.zeros_like(target)
        for data in (few, samples):  # most of the way is walked on few rows
            theta, log_mean = log_linear_coefficients(
                partial(feature_blocks, basis, data.train),
                target,
                ridge=self.ridge_,
                start=theta,
            )
        return LogLinearRatio(basis, theta, log_mean)


def feature_blocks(basis: Callable[[Tensor], Tensor], x: Tensor) -> Iterable[Tensor]:
    """Features of consecutive rows, made as they are asked for."""
    return (basis(part) for part in row_blocks(x))


def _choose(
    few: TwoSamples, bases: list[GaussianBasis], ridges: list[float]
) -> tuple[GaussianBasis, float]:
    if len(bases) * len(ridges) == 1:
        return bases[0], ridges[0]
    if not few.can_hold_out:
        return bases[-1], ridges[0]
    best, best_score = (bases[-1], ridges[0]), -math.inf
    for basis in bases:
        for ridge, score in zip(ridges, held_out_likelihood(basis, few, ridges), strict=True):
            if score > best_score + 1e-12:
                best, best_score = (basis, ridge), score
    return best


def kliep(
    x_train: Any,
    x_val: Any,
    *,
    bandwidth: str | float = "auto",
    ridge: str | float = "auto",
    n_centers: int = 100,
    standardize: bool = True,
    val_weight: Any | None = None,
) -> Any:
    """Mean-one weights at the training points by likelihood; see `giw.KLIEP`.

    Returns
    -------
    array of shape (n,)
        Weights at the training points.
    """
    estimator = KLIEP(bandwidth, ridge, n_centers, standardize)
    return estimator.fit(x_train, x_val, val_weight).weight_
