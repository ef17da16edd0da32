"""Kernel mean matching: a default that helps, and the paper's exact problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from giw.checks import as_members, as_row_pair, check_positive, like_input
from giw.weights.least_squares import ULSIF
from giw.weights.quadratic import interior_point, pivoted_cholesky
from giw.weights.ratio import (
    GaussianBasis,
    LinearRatio,
    candidate_widths,
    check_auto,
    warn_if_few,
)
from giw.weights.samples import Samples, blocks, median_distance, pair_squares

Array = NDArray[np.float64]
MOST_EXACT = 2_000  # points up to which as many rows as needed span the kernel
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
    estimator = KMM(bandwidth, gamma, ridge, upper, tolerance)
    estimator._check_parameters()
    train, val = as_row_pair(x_train, x_val, batched=True)
    member = as_members(val_weight, val.shape[:-1])
    weight = np.empty(train.shape[:-1])
    for at in np.ndindex(weight.shape[:-1]):
        problem = train[at], val[at], member[at]
        if isinstance(ridge, str):
            weight[at] = estimator.fit(*problem).weight_
        else:  # without the estimator's bookkeeping, which takes as long as a small problem
            weight[at] = estimator._matched(*problem)
            warn_if_few(weight[at], "KMM")
    return like_input(weight.astype(train.dtype), x_train)


def matched_weights(
    x_train: Array,  # (n, d)
    x_val: Array,  # (m, d)
    member: Array,  # (m,), not all zero
    *,
    gamma: float,
    ridge: float,
    upper: float,
    tolerance: float = 1e-3,
) -> Array:  # (n,)
    """Mean-one weights by the problem of :func:`giw.kmm` with a given ridge, unchecked."""
    n = len(x_train)
    if n == 1 or upper == 1:
        return np.ones(n)
    share = member * (n / member.sum())
    parts = [np.exp(-gamma * pair_squares(part, x_val)) @ share for part in blocks(x_train)]
    # what is cut off moves the weights by about its share of the ridge
    cut = max(1e-5 * min(ridge, 1.0), ROUNDING)
    most = n if n <= MOST_EXACT else max(128, min(1_000, 10_000_000 // n))
    weight = interior_point(
        pivoted_cholesky(x_train, gamma=gamma, cut=cut, most=most),
        np.concatenate(parts),
        ridge=ridge,
        upper=upper,
        tolerance=tolerance,
    )
    return weight * (n / weight.sum())


@dataclass(frozen=True)
class KernelAverage:
    """The average of the training points' weights, the nearer ones counting more."""

    x_train: Array  # (n, d)
    weight: Array  # (n,)
    gamma: float

    def __call__(self, x: Array) -> Array:
        """Ratio at points (q, d) → (q,)."""
        # softmax: a point far from all follows its nearest neighbour
        return softmax(-self.gamma * pair_squares(x, self.x_train), axis=1) @ self.weight


class KMM(ULSIF):
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

    takes_chunks: ClassVar[bool] = False

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
        """A given width or ridge asks for features in their own units."""
        chosen = isinstance(self.ridge, str) and self.gamma is None
        return chosen and self.bandwidth in ("auto", "median")

    def _gamma(self, train: NDArray[Any]) -> float:
        """Inverse squared width."""
        if self.gamma is not None:
            return float(self.gamma)
        if not isinstance(self.bandwidth, str):
            return 0.5 / float(self.bandwidth) ** 2
        # all points equal: every kernel says the same, and every weight will be one
        median = median_distance(train) or 1.0
        return median if self.bandwidth == "paper" else 0.5 / median**2

    def _matched(self, train: NDArray[Any], val: NDArray[Any], member: Array) -> Array:
        """Mean-one weights of one problem with a given ridge, (n,)."""
        return matched_weights(
            train.astype(np.float64),
            val.astype(np.float64),
            member,
            gamma=self._gamma(train),
            ridge=float(self.ridge),
            upper=self.upper,
            tolerance=self.tolerance,
        )

    def _raw_weights(self, samples: Samples) -> Array:
        if isinstance(self.model_, KernelAverage):
            return self.model_.weight
        return super()._raw_weights(samples)

    def _fit_model(self, samples: Samples) -> Callable[[Array], Array]:
        if not isinstance(self.ridge, str):
            gamma = self._gamma(samples.train)
            self.bandwidth_, self.ridge_ = math.sqrt(0.5 / gamma), float(self.ridge)
            weight = self._matched(samples.train, samples.val, samples.share)
            return KernelAverage(samples.train, weight, gamma)
        return super()._fit_model(samples)

    def _bases(self, samples: Samples) -> list[GaussianBasis]:
        given = self.bandwidth if self.standardize else math.sqrt(0.5 / self._gamma(samples.train))
        centers = samples.some_of_both(100 if len(samples.train) <= 100_000 else 64)
        widths = candidate_widths(given, samples)
        return [GaussianBasis.whitened(centers, width) for width in widths]

    def _fit_chosen(self, basis: GaussianBasis, samples: Samples) -> LinearRatio:
        r"""What the optimality conditions say of any point.

        :math:`w(x) = \min(u, \max(0, 1 - c + \phi(x)^\top\theta))` with
        :math:`\theta = (n \bar\phi_{\rm val} - \Phi^\top w) / \rho` and c the price of the sum.
        """
        n = len(samples.train)
        self.ridge_ *= n
        if n == 1 or self.upper == 1:
            return LinearRatio(basis, np.append(1.0, np.zeros(basis.size)), self.upper)
        rows, start = np.empty((basis.size + 1, n)), 0  # (b + 1, n)
        for part in blocks(samples.train):
            rows[:-1, start : start + len(part)] = basis(part).T
            start += len(part)
        mean_val = samples.share @ basis(samples.val)  # (b,)
        w = interior_point(
            rows,
            n * (mean_val @ rows[:-1]) + self.ridge_,  # the ridge pulls towards one
            ridge=self.ridge_,
            upper=self.upper,
            tolerance=self.tolerance,
        )
        theta = (n * mean_val - rows[:-1] @ w) / self.ridge_
        between = (w > 1e-3) & (w < self.upper - 1e-3)  # points whose bounds do not push
        price = float((1 + theta @ rows[:-1] - w)[between].mean()) if between.any() else 0.0
        return LinearRatio(basis, np.append(1 - price, theta), self.upper)

    def _check_parameters(self) -> None:
        check_auto(self.bandwidth, "bandwidth", ("auto", "median", "paper"))
        check_auto(self.ridge, "ridge", ("auto",))
        if self.gamma is not None:
            check_positive(self.gamma, "gamma")
        check_positive(self.tolerance, "tolerance")
        if check_positive(self.upper, "upper") < 1:
            raise ValueError(
                f"upper must be at least one, the mean of all weights; got {self.upper}"
            )
