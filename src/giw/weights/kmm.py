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
from giw.weights.effective import mean_one, warn_if_few, warn_of
from giw.weights.estimator import RatioEstimator, TwoSamples, check_auto, check_members
from giw.weights.kernels import (
    bandwidth_to_gamma,
    median_pair_distance,
    pairwise_squared_distances,
    representatives,
)
from giw.weights.least_squares import RIDGES, choose
from giw.weights.quadratic import DenseKernel, FactoredKernel, interior_point, sum_bounds
from giw.weights.small import pivoted_cholesky, small_interior_point

BANDWIDTHS = ("auto", "median", "paper")
MOST_SMALL = 1_000  # points up to which numpy beats torch's cost per call
MOST_DENSE = 2_000  # points up to which the kernel matrix is held in full
MOST_MEDIAN_POINTS = 2_000
SMALL_LEFT = 1e-4  # what the small solver may leave out of the kernel's diagonal


def kmm(
    x_train: Any,
    x_val: Any,
    *,
    bandwidth: str | float = "auto",
    gamma: float | None = None,
    ridge: str | float = "auto",
    upper: float = 50.0,
    tolerance: float = 1e-6,
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
    for example ``bandwidth="paper", ridge=1e-5, upper=50.0``. A ridge that small leaves the
    minimiser nearly undetermined and its weights far from the true ratio. Up to 2,000 points the
    kernel is exact; beyond, it is a Nyström approximation of at least 128 columns.

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
    tolerance : float, default=1e-6
        How far from the minimum, relative to the objective, the solver may stop.
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
    member = None if val_weight is None else check_members(val_weight, val).double()
    n = train.shape[-2]
    if n == 1 or upper == 1:
        return like(torch.ones_like(train[..., 0]), x_train)
    problem: dict[str, Any] = {"ridge": ridge, "upper": upper, "tolerance": tolerance}
    # a ridge of 1e-5 beside eigenvalues of n: single precision would not see it
    a, b = train.double(), val.double()
    if n <= MOST_SMALL and a.ndim == 2 and a.device.type == "cpu":
        width = float(gamma) if gamma is not None else float(_gammas(train, bandwidth, None))
        small = _small_weights(a.numpy(), b.numpy(), member, gamma=width, **problem)
        if small is not None:
            return like(torch.from_numpy(small).to(train.dtype), x_train)
    if member is None:
        member = torch.ones_like(b[..., 0])
    inverse = _gammas(train, bandwidth, gamma)  # (..., 1, 1)
    kappa = n * _kernel_means(a, b, member / member.sum(-1, keepdim=True), inverse)  # (..., n)
    kernel = _general_kernel(a, inverse)
    weight = mean_one(
        interior_point(kernel, kappa, bounds=sum_bounds(n), **problem).clamp(0, upper)
    )
    warn_if_few(weight, "kmm")
    return like(weight.to(train.dtype), x_train)


def _small_weights(
    a: NDArray[np.float64],  # (n, d)
    b: NDArray[np.float64],  # (m, d)
    member: Tensor | None,  # (m,)
    *,
    gamma: float,
    **problem: Any,
) -> NDArray[np.float64] | None:  # (n,)
    """Few points, all in numpy; nothing where few columns do not span the kernel."""
    features, left = pivoted_cholesky(a, gamma=gamma)
    if left > SMALL_LEFT:
        return None
    n = len(a)
    squares = (a - b.T) ** 2 if a.shape[1] == 1 else ((a[:, None] - b) ** 2).sum(-1)  # (n, m)
    cross = np.exp(-gamma * squares)
    share = np.ones(len(b)) if member is None else member.numpy()
    kappa = cross @ (share * (n / share.sum()))
    raw = small_interior_point(features, kappa, bounds=sum_bounds(n), **problem)
    weight = raw * (n / raw.sum())
    warn_of(n * n / float(weight @ weight), n, "kmm")
    return weight


def _kernel_means(a: Tensor, b: Tensor, share: Tensor, gamma: Tensor) -> Tensor:
    """Mean kernel value of each training point to the validation points, (..., n)."""
    if a.ndim > 2:
        cross = torch.exp(-gamma * pairwise_squared_distances(a, b))  # (..., n, m)
        return (cross @ share[..., None])[..., 0]
    return torch.cat(
        [torch.exp(-gamma * pairwise_squared_distances(part, b)) @ share for part in row_blocks(a)]
    )


def _general_kernel(a: Tensor, gamma: Tensor) -> DenseKernel | FactoredKernel:
    n = a.shape[-2]
    if n <= MOST_DENSE or a.ndim > 2:
        return DenseKernel(torch.exp(-gamma * pairwise_squared_distances(a, a)))
    rank = max(128, min(512, 10_000_000 // n))
    basis = GaussianBasis.whitened(representatives(a, rank), float((2 * gamma) ** -0.5))
    return FactoredKernel(torch.cat([basis(part) for part in row_blocks(a)]))


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
        tolerance: float = 1e-6,
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
        x_val : array-like of shape (m, d)
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
        features = torch.cat([basis(part) for part in row_blocks(samples.train)])  # (n, b)
        mean_val = samples.share @ basis(samples.val)  # (b,)
        w = interior_point(
            FactoredKernel(features),
            n * (features @ mean_val) + self.ridge_,  # the ridge pulls towards one
            ridge=self.ridge_,
            upper=self.upper,
            bounds=sum_bounds(n),
            tolerance=self.tolerance,
        )
        theta = (n * mean_val - features.T @ w) / self.ridge_
        between = (w > 1e-3) & (w < self.upper - 1e-3)  # points whose bounds do not push
        price = (
            (1 + features @ theta - w)[between].mean() if bool(between.any()) else w.new_zeros(())
        )
        return MatchedRatio(basis, theta, float(price), self.upper)

    def _widths(self, samples: TwoSamples) -> list[float]:
        if self.standardize:
            return candidate_widths(self.bandwidth, samples.train, samples.val)
        return [math.sqrt(0.5 / float(_gammas(samples.train, self.bandwidth, self.gamma)))]

    def _check_parameters(self) -> None:
        _check_parameters(self.bandwidth, self.gamma, self.ridge, self.upper, self.tolerance)
