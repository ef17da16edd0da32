"""Kernel mean matching: a default that helps, and the paper's exact problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.checks import as_pair, as_points, check_positive, like
from giw.weights.basis import GaussianBasis, Units, candidate_widths, row_blocks
from giw.weights.effective import warn_if_few
from giw.weights.estimator import RatioEstimator, TwoSamples, check_auto, check_members
from giw.weights.kernels import (
    bandwidth_to_gamma,
    median_pair_distance,
    pairwise_squared_distances,
    representatives,
)
from giw.weights.least_squares import RIDGES, choose
from giw.weights.quadratic import (
    DenseKernel,
    FactoredKernel,
    interior_point,
    pivoted_cholesky,
    sum_bounds,
)

BANDWIDTHS = ("auto", "median", "paper")
MOST_DENSE = 2_000  # points up to which the kernel matrix is held in full
MOST_MEDIAN_POINTS = 2_000
KAPPA_ROWS = 8_192  # of a kernel between training and validation points, held at a time
ROUNDING = 1e-14  # of a diagonal of ones, below which a factor would hold only rounding errors


def kmm(
    x_train: Any,
    x_val: Any,
    *,
    bandwidth: str | float = "auto",
    gamma: float | None = None,
    ridge: str | float = "auto",
    upper: float = 50.0,
    tolerance: float = 1e-3,
    val_weight: Any | None = None,
) -> Any:
    r"""Weights under which the training points have the validation points' kernel mean [1]_.

    .. math:: \min_w \tfrac12 w^\top K w - \kappa^\top w + \tfrac\rho2 \lVert w - a \rVert^2, \quad
              \kappa_i = \frac{n}{\sum_j v_j} \sum_j v_j\, k(x_i, x_j^{\rm val}),

    subject to :math:`0 \le w \le u` and :math:`|\sum w - n| \le n (\sqrt n - 1) / \sqrt n`,
    then rescaled to mean one.

    **By default** the ridge pulls towards equal weights, :math:`a = 1`, and bandwidth and ridge
    are chosen by leave-one-out. Without the bounds on w this problem is kernel least-squares
    ratio estimation with penalty :math:`\rho / n` [2]_, whose leave-one-out score has a closed
    form; features are brought to common units first and the kernel is held as a product of
    matrices with at most 200 columns, so that time and memory are linear in n.

    **The paper's problem** is the one with a given ridge: :math:`a = 0`, features as they are, and
    for example ``bandwidth="paper", ridge=1e-5, upper=50.0``. It is solved to the weights, which
    may still lie far from the true ratio: with so small a ridge they follow the noise of both
    samples. The kernel is exact up to 2,000 points, and beyond where 128 columns or more span it,
    as they do for losses; else it is an approximation.

    Parameters
    ----------
    x_train : array-like of shape (n,), (n, d) or (..., n, d)
        Training points; leading dimensions are problems of their own.
    x_val : array-like of shape (m,), (m, d) or (..., m, d)
        Validation points.
    bandwidth : "auto", "median", "paper" or float, default="auto"
        "median": the width σ is the median distance of the training points, scale free.
        "paper": the inverse squared width γ *is* that median, as in the GIW paper. A number is
        a width σ in the units of the features; a wider kernel gives smoother weights.
        "auto" chooses among multiples of the median distance; with a given ridge it is "median".
    gamma : float, optional
        Inverse squared width; overrides ``bandwidth``.
    ridge : "auto" or float, default="auto"
        :math:`\rho`; more of it evens the weights out.
    upper : float, default=50.0
        :math:`u`, the largest weight before rescaling; at least one.
    tolerance : float, default=1e-3
        Root mean squared error of the weights, before rescaling, at which the solver stops.
    val_weight : array-like of shape (..., m), optional
        Membership :math:`v_j` of each validation point, between 0 and 1.

    Returns
    -------
    array of shape (..., n)
        Estimates of :math:`p_{\rm val}(x_i) / p_{\rm train}(x_i)`, mean one.

    References
    ----------
    .. [1] Huang, Smola, Gretton, Borgwardt and Schölkopf, NeurIPS 19, 2006.
    .. [2] Kanamori, Suzuki and Sugiyama, Machine Learning 86:335-367, 2012.
    """
    _check_parameters(bandwidth, gamma, ridge, upper, tolerance)
    if not isinstance(ridge, str):
        return _papers_weights(
            x_train,
            x_val,
            val_weight,
            bandwidth=bandwidth,
            gamma=gamma,
            ridge=float(ridge),
            upper=upper,
            tolerance=tolerance,
        )
    train, val = as_pair(x_train, x_val, batched=True)
    member = check_members(val_weight, val)
    lead = train.shape[:-2]
    problems = zip(
        *(part.reshape(-1, *part.shape[len(lead) :]) for part in (train, val, member)), strict=True
    )
    estimator = KMM(bandwidth, gamma, ridge, upper, tolerance)
    weights = [estimator.fit(a, b, v).weight_ for a, b, v in problems]  # a tensor each
    return like(torch.stack(weights).reshape(*lead, -1), x_train)


def _check_parameters(
    bandwidth: str | float,
    gamma: float | None,
    ridge: str | float,
    upper: float,
    tolerance: float,
) -> None:
    check_auto(bandwidth, "bandwidth", BANDWIDTHS)
    check_auto(ridge, "ridge")
    if gamma is not None:
        check_positive(gamma, "gamma")
    check_positive(tolerance, "tolerance")
    if check_positive(upper, "upper") < 1:
        raise ValueError(f"upper must be at least one, the mean of all weights; got {upper}")


def _gammas(train: Tensor, bandwidth: str | float, gamma: float | None) -> Tensor:
    """Inverse squared width for each problem of the batch, (..., 1, 1) in double precision."""
    shape = (*train.shape[:-2], 1, 1)
    if gamma is not None:
        return train.new_full(shape, float(gamma), dtype=torch.float64)
    if not isinstance(bandwidth, str):
        return train.new_full(shape, bandwidth_to_gamma(float(bandwidth)), dtype=torch.float64)
    points = train if train.ndim > 2 else representatives(train, MOST_MEDIAN_POINTS)
    median = median_pair_distance(points.double())[..., None, None]
    # all points equal: every kernel says the same, and every weight will be one
    median = torch.where(median > 0, median, 1.0)
    return median if bandwidth == "paper" else 0.5 / median.square()


def _papers_weights(
    x_train: Any,
    x_val: Any,
    val_weight: Any | None,
    *,
    bandwidth: str | float,
    gamma: float | None,
    ridge: float,
    upper: float,
    tolerance: float,
) -> Any:
    """The problem with a given ridge, solved as it stands."""
    train, val = as_pair(x_train, x_val, batched=True)
    member = check_members(val_weight, val)
    widths = _gammas(train, bandwidth, gamma)  # (..., 1, 1)
    lead, (n, d) = train.shape[:-2], train.shape[-2:]
    raw = [
        matched_weights(a, b, v, gamma=g, ridge=ridge, upper=upper, tolerance=tolerance)
        for a, b, v, g in zip(
            train.double().cpu().numpy().reshape(-1, n, d),
            val.double().cpu().numpy().reshape(-1, val.shape[-2], d),
            member.double().cpu().numpy().reshape(-1, val.shape[-2]),
            widths.ravel().tolist(),
            strict=True,
        )
    ]
    weight = torch.from_numpy(np.stack(raw).reshape(*lead, n)).to(train)
    warn_if_few(weight, "kmm")
    return like(weight, x_train)


def matched_weights(
    x_train: NDArray[np.float64],  # (n, d)
    x_val: NDArray[np.float64],  # (m, d)
    member: NDArray[np.float64],  # (m,), not all zero
    *,
    gamma: float,
    ridge: float,
    upper: float,
    tolerance: float = 1e-3,
) -> NDArray[np.float64]:  # (n,)
    """Mean-one weights by the problem of :func:`giw.kmm` with a given ridge, unchecked."""
    n = len(x_train)
    if n == 1 or upper == 1:
        return np.ones(n)
    kappa = np.empty(n)
    share = member * (n / member.sum())
    for start in range(0, n, KAPPA_ROWS):
        rows = slice(start, start + KAPPA_ROWS)
        kappa[rows] = np.exp(-gamma * _squares(x_train[rows], x_val)) @ share
    weight = interior_point(
        kernel_of(x_train, gamma=gamma, ridge=ridge),
        kappa,
        ridge=ridge,
        upper=upper,
        total=sum_bounds(n),
        tolerance=tolerance,
    )
    return weight * (n / weight.sum())


def kernel_of(
    x: NDArray[np.float64],  # (n, d)
    *,
    gamma: float,
    ridge: float,
) -> DenseKernel | FactoredKernel:
    """The Gaussian kernel matrix: by few rows where they span it, in full up to 2,000 points.

    Beyond, it is approximated by as many rows as fit in memory where they do not span it.
    """
    n = len(x)
    # what is cut off moves the weights by about its share of the ridge
    cut = max(1e-5 * ridge, ROUNDING)
    most = n // 2 if n <= MOST_DENSE else max(128, min(1_000, 10_000_000 // n))
    rows, left = pivoted_cholesky(x, gamma=gamma, cut=cut, most=most)
    if left < cut or n > MOST_DENSE:
        return FactoredKernel(rows)
    return DenseKernel(np.exp(-gamma * _squares(x, x)))


def _squares(
    x: NDArray[np.float64],  # (n, d)
    y: NDArray[np.float64],  # (m, d)
) -> NDArray[np.float64]:  # (n, m)
    """Squared distances; exact for one feature, from centred norms for more."""
    if x.shape[1] == 1:
        return np.square(x - y.T)
    center = y.mean(0)
    x, y = x - center, y - center
    squares = np.square(x).sum(1)[:, None] + np.square(y).sum(1) - 2 * (x @ y.T)
    return np.maximum(squares, 0, out=squares)


@dataclass(frozen=True)
class MatchedRatio:
    r"""What the optimality conditions say of any point.

    :math:`w(x) = \min(u, \max(0, 1 + \phi(x)^\top\theta - c))` with
    :math:`\theta = (n \bar\phi_{\rm val} - \Phi^\top w) / \rho` and c the price of the sum.
    """

    basis: GaussianBasis
    theta: Tensor  # (b,)
    price: float
    upper: float

    def __call__(self, x: Tensor) -> Tensor:
        """Ratio at points (n, d) → (n,)."""
        value = 1 - self.price + self.basis(x) @ self.theta.to(x.device)
        return value.clamp(0, self.upper)


@dataclass(frozen=True)
class KernelAverage:
    """The average of the training points' weights, the nearer ones counting more."""

    x_train: Tensor  # (n, d)
    weight: Tensor  # (n,)
    gamma: float

    def __call__(self, x: Tensor) -> Tensor:
        """Ratio at points (q, d) → (q,)."""
        closeness = -self.gamma * pairwise_squared_distances(x, self.x_train.to(x.device))
        # a point far from all follows its nearest neighbour
        return torch.softmax(closeness, -1) @ self.weight.to(x.device)


class KMM(RatioEstimator):
    r"""Kernel mean matching as an estimator; see :func:`giw.kmm` for the problem and parameters.

    New points are weighed by what the optimality conditions of the problem say of them; with a
    given ridge, where those conditions hardly determine a single weight, by the kernel average of
    the training points' weights.

    Attributes
    ----------
    weight_ : array of shape (n,)
        Weights at the training points, mean one.
    bandwidth_, ridge_ : float
        The width σ that was used, in common units where it was chosen, and the ridge ρ.
    """

    def __init__(
        self,
        bandwidth: str | float = "auto",
        gamma: float | None = None,
        ridge: str | float = "auto",
        upper: float = 50.0,
        tolerance: float = 1e-3,
    ) -> None:
        self.bandwidth = bandwidth
        self.gamma = gamma
        self.ridge = ridge
        self.upper = upper
        self.tolerance = tolerance

    @property
    def standardize(self) -> bool:  # type: ignore[override]
        """A width in the units of the features asks for features in their own units."""
        return self.gamma is None and self.bandwidth in ("auto", "median")

    def fit(self, x_train: Any, x_val: Any, val_weight: Any | None = None) -> KMM:
        """Match training points (n, d) to validation points (m, d).

        Parameters
        ----------
        x_train : array-like of shape (n, d)
            Training points.
        x_val : array-like of shape (m, d)
            Validation points.
        val_weight : array-like of shape (m,), optional
            Membership of each validation point, between 0 and 1.
        """
        if isinstance(self.ridge, str):
            return super().fit(x_train, x_val, val_weight)
        self._check_parameters()
        train = as_points(x_train, "x_train")
        inverse = float(_gammas(train, self.bandwidth, self.gamma))
        self.weight_ = kmm(
            train,
            x_val,
            gamma=inverse,
            ridge=self.ridge,
            upper=self.upper,
            tolerance=self.tolerance,
            val_weight=val_weight,
        )
        origin = train.double().mean(0)
        self.units_ = Units(origin, torch.ones_like(origin))
        self.model_ = KernelAverage(self.units_(train), self.weight_.double(), inverse)
        self.scale_, self.n_features_in_ = 1.0, train.shape[1]
        self.bandwidth_, self.ridge_ = math.sqrt(0.5 / inverse), float(self.ridge)
        self.weight_ = like(self.weight_, x_train)
        return self

    def _fit_model(self, samples: TwoSamples) -> MatchedRatio:
        n = len(samples.train)
        most = 100 if n <= 100_000 else 64
        centers = torch.cat(
            [representatives(samples.train, most), representatives(samples.val, most)]
        )
        bases = [GaussianBasis.whitened(centers, width) for width in self._widths(samples)]
        basis, penalty = choose(samples, bases, list(RIDGES), eta=0.0)
        self.bandwidth_, self.ridge_ = basis.width, n * penalty
        if n == 1 or self.upper == 1:
            return MatchedRatio(basis, torch.zeros_like(basis(centers[:1])[0]), 0.0, self.upper)
        rows = np.empty((basis.size + 1, n))  # (b + 1, n)
        start = 0
        for part in row_blocks(samples.train):
            rows[:-1, start : start + len(part)] = basis(part).T.cpu().numpy()
            start += len(part)
        mean_val = (samples.share @ basis(samples.val)).cpu().numpy()  # (b,)
        w = interior_point(
            FactoredKernel(rows),
            n * (mean_val @ rows[:-1]) + self.ridge_,  # the ridge pulls towards one
            ridge=self.ridge_,
            upper=self.upper,
            total=sum_bounds(n),
            tolerance=self.tolerance,
        )
        theta = (n * mean_val - rows[:-1] @ w) / self.ridge_
        between = (w > 1e-3) & (w < self.upper - 1e-3)  # points whose bounds do not push
        price = float((1 + theta @ rows[:-1] - w)[between].mean()) if between.any() else 0.0
        return MatchedRatio(basis, torch.from_numpy(theta).to(samples.train), price, self.upper)

    def _widths(self, samples: TwoSamples) -> list[float]:
        if self.standardize:
            return candidate_widths(self.bandwidth, samples.train, samples.val)
        return [math.sqrt(0.5 / float(_gammas(samples.train, self.bandwidth, self.gamma)))]

    def _check_parameters(self) -> None:
        _check_parameters(self.bandwidth, self.gamma, self.ridge, self.upper, self.tolerance)
