"""Kernel mean matching."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from giw.checks import as_membership, as_pair, as_points, check_positive, like
from giw.kernels import bandwidth_to_gamma, median_pair_distance, pairwise_squared_distances
from giw.weights.effective import mean_one, warn_if_few
from giw.weights.quadratic import dense_solver, interior_point, sum_bounds

BANDWIDTHS = ("median", "paper")


def kmm(
    x_train: Any,
    x_val: Any,
    *,
    bandwidth: str | float = "median",
    gamma: float | None = None,
    ridge: float = 1e-5,
    upper: float = 50.0,
    val_weight: Any | None = None,
) -> Any:
    r"""Weights under which the training points have the validation points' kernel mean [1]_.

    .. math:: \min_w \tfrac12 w^\top (K + \rho I) w - \kappa^\top w, \quad
              \kappa_i = \frac{n}{\sum_j v_j} \sum_j v_j\, k(x_i, x_j^{\rm val}),

    subject to :math:`0 \le w \le u` and :math:`|\sum w - n| \le n (\sqrt n - 1) / \sqrt n`,
    then rescaled to mean one.

    Parameters
    ----------
    x_train : array-like of shape (n,), (n, d) or (..., n, d)
        Training points; leading dimensions are problems of their own.
    x_val : array-like of shape (m,), (m, d) or (..., m, d)
        Validation points.
    bandwidth : "median", "paper" or float, default="median"
        "median": the width σ is the median distance of the training points, scale free.
        "paper": the inverse squared width γ *is* that median, as in the GIW paper. A number is
        a width σ in the units of the features; a wider kernel gives smoother weights.
    gamma : float, optional
        Inverse squared width; overrides ``bandwidth``.
    ridge : float, default=1e-5
        :math:`\rho`; more of it evens the weights out.
    upper : float, default=50.0
        :math:`u`, the largest weight before rescaling; at least one.
    val_weight : array-like of shape (..., m), optional
        Membership :math:`v_j` of each validation point, between 0 and 1.

    Returns
    -------
    array of shape (..., n)
        Estimates of :math:`p_{\rm val}(x_i) / p_{\rm train}(x_i)`, mean one.

    References
    ----------
    .. [1] Huang, Smola, Gretton, Borgwardt and Schölkopf, NeurIPS 19, 2006.
    """
    train, val = as_pair(x_train, x_val, batched=True)
    member = check_members(val_weight, val)
    check_positive(ridge, "ridge")
    if check_positive(upper, "upper") < 1:
        raise ValueError(f"upper must be at least one, the mean of all weights; got {upper}")
    n = train.shape[-2]
    width = _gammas(train, bandwidth, gamma)  # (..., 1, 1)
    if n == 1 or upper == 1:
        return like(torch.ones_like(train[..., 0]), x_train)
    # a ridge of 1e-5 beside eigenvalues of n: single precision would not see it
    a, b = train.double(), val.double()
    kernel = torch.exp(-width * pairwise_squared_distances(a, a))  # (..., n, n)
    cross = torch.exp(-width * pairwise_squared_distances(a, b))  # (..., n, m)
    share = member.double() / member.double().sum(-1, keepdim=True)  # (..., m)
    kappa = n * (cross @ share[..., None])[..., 0]  # (..., n)
    raw = interior_point(
        lambda w: (kernel @ w[..., None])[..., 0],
        dense_solver(kernel),
        kappa,
        ridge=ridge,
        upper=upper,
        bounds=sum_bounds(n),
    )
    weight = mean_one(raw.clamp(0, upper))
    warn_if_few(weight, "kmm")
    return like(weight.to(train.dtype), x_train)


def check_members(val_weight: Any | None, val: Tensor) -> Tensor:
    """Membership of each validation point, (..., m); not all of them zero."""
    member = as_membership(val_weight, tuple(val.shape[:-1]), "val_weight", val)
    if not bool((member.sum(-1) > 0).all()):
        raise ValueError(
            "val_weight is zero for every validation point: no point is left to match; "
            "use weights of one, or look at why the split calls everything outside"
        )
    return member


def _gammas(train: Tensor, bandwidth: str | float, gamma: float | None) -> Tensor:
    """Inverse squared width for each problem of the batch, (..., 1, 1) in double precision."""
    shape = (*train.shape[:-2], 1, 1)
    if gamma is not None:
        return train.new_full(shape, check_positive(gamma, "gamma"), dtype=torch.float64)
    if isinstance(bandwidth, str):
        if bandwidth not in BANDWIDTHS:
            raise ValueError(f"bandwidth must be one of {BANDWIDTHS} or a width, got {bandwidth!r}")
        median = median_pair_distance(train.double())[..., None, None]
        # all points equal: every kernel says the same, and every weight will be one
        median = torch.where(median > 0, median, 1.0)
        return median if bandwidth == "paper" else 0.5 / median.square()
    number = bandwidth_to_gamma(check_positive(bandwidth, "bandwidth"))
    return train.new_full(shape, number, dtype=torch.float64)


class KMM(BaseEstimator):
    r"""Kernel mean matching as an estimator; see :func:`giw.kmm` for the problem and parameters.

    Attributes
    ----------
    weight_ : array of shape (n,)
        Weights at the training points, mean one.
    """

    def __init__(
        self,
        bandwidth: str | float = "median",
        gamma: float | None = None,
        ridge: float = 1e-5,
        upper: float = 50.0,
    ) -> None:
        self.bandwidth = bandwidth
        self.gamma = gamma
        self.ridge = ridge
        self.upper = upper

    def fit(self, x_train: Any, x_val: Any, val_weight: Any | None = None) -> KMM:
        """Match training points of shape (n, d) to validation points of shape (m, d)."""
        self.x_train_ = as_points(x_train, "x_train")
        self.gamma_ = float(_gammas(self.x_train_, self.bandwidth, self.gamma))
        self.weight_ = kmm(
            x_train,
            x_val,
            gamma=self.gamma_,
            ridge=self.ridge,
            upper=self.upper,
            val_weight=val_weight,
        )
        return self

    def weigh(self, x_new: Any) -> Any:
        """Weights at new points: the kernel average of the weights of the training points."""
        new, train = as_pair(x_new, self.x_train_, ("x_new", "x_train"))
        closeness = -self.gamma_ * pairwise_squared_distances(new, train)  # (q, n)
        share = torch.softmax(closeness, -1)  # a point far from all follows its nearest one
        weight = torch.as_tensor(self.weight_, dtype=share.dtype, device=share.device)
        return like(share @ weight, x_new)
