"""Relative density ratios estimated anew in every training step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from giw.checks import check_auto, check_positive
from giw.objective.in_step_weights import gaussian, kernel_width


@dataclass(frozen=True)
class DynamicRelativeWeights:
    r"""Relative density ratio of a validation to a training batch by least squares.

    .. math:: w_\eta = \frac{p_{\rm val}}{\eta\, p_{\rm val} + (1 - \eta)\, p_{\rm tr}}
              \le \frac1\eta

    with the model of :class:`giw.RULSIF`, :math:`\theta_0 + \theta^\top \varphi(z)` with a Gaussian
    kernel :math:`\varphi_j` at every validation point. The squared error under the mixture in the
    denominator has its minimum in closed form [1]_; with :math:`\mu` and C the mean and covariance
    of the kernels under that mixture, the ratio is

    .. math:: 1 + (\varphi(z) - \mu)^\top (C + \lambda I)^{-1} (E_{\rm val}[\varphi] - \mu)

    where this lies between 0 and :math:`1 / \eta`. A fixed chain of operations: it can be captured
    in a CUDA graph and vectorised by ``torch.func.vmap``.

    Parameters
    ----------
    eta : float, default=0.5
        Share of validation in the denominator, 0 to below 1; more of it flattens the weights,
        0 is the ordinary ratio (uLSIF).
    bandwidth : {"median", "cross"} or float, default="median"
        Width of the Gaussian kernel; the median distance of the training points is scale free.
    ridge : float, default=0.01
        The penalty λ; a larger one pulls all weights towards one. Kernels are at most one, so it
        needs no scale.

    References
    ----------
    .. [1] Yamada, Suzuki, Kanamori, Hachiya and Sugiyama, NeurIPS 2011.
    """

    eta: float = 0.5
    bandwidth: str | float = "median"
    ridge: float = 0.01

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        if not 0 <= self.eta < 1:
            raise ValueError(f"eta must be at least 0 and below 1, got {self.eta}")
        check_auto(self.bandwidth, "bandwidth", ("cross", "median"))
        check_positive(self.ridge, "ridge")

    def __call__(
        self,
        train_z: Tensor,  # (n,) or (n, d)  representation of the training batch
        val_z: Tensor,  # (m,) or (m, d)  the same of the validation batch
        inside: Tensor | None = None,  # (m,)  how much each validation point counts, 0 to 1
    ) -> Tensor:  # (n,)  mean one, no gradient
        """Weights of the training batch; ones where nothing tells points apart."""
        ratio = self.ratio(train_z, val_z, inside)
        mean = ratio.mean()
        some = mean > 0 if inside is None else (mean > 0) & (inside.sum() > 0)
        return torch.where(some, ratio / torch.where(some, mean, 1.0), 1.0)

    @torch.no_grad()
    def ratio(self, train_z: Tensor, val_z: Tensor, inside: Tensor | None = None) -> Tensor:
        """The estimated relative ratio itself, (n,), between 0 and 1/η."""
        dtype = torch.promote_types(train_z.dtype, torch.float32)
        train, val = (z.detach().to(dtype) for z in (train_z, val_z))
        if train.ndim == 1:
            train, val = train[:, None], val[:, None]
        with torch.autocast(train.device.type, enabled=False):
            member = torch.ones_like(val[:, 0]) if inside is None else inside.detach().to(dtype)
            width, apart = kernel_width(train, val, member, self.bandwidth)
            width = torch.where(apart, width, 1 + train.abs().amax())  # so that all are alike
            phi_train, phi_val = (gaussian(z / width, val / width) for z in (train, val))
            share = member / torch.where(member.sum() > 0, member.sum(), 1.0)  # (m,)
            ratio = relative_ratio(phi_train, phi_val, share, eta=self.eta, ridge=self.ridge)
            # the truth is bounded so; an estimate is not, unless one says it
            return ratio.clamp(0, 1 / self.eta if self.eta > 0 else float("inf"))


def relative_ratio(
    phi_train: Tensor,  # (n, b)
    phi_val: Tensor,  # (m, b)
    share: Tensor,  # (m,)  weights of the validation points, sum one
    *,
    eta: float,
    ridge: float,
) -> Tensor:  # (n,)
    """The least-squares ratio at the training points, as it comes: it may be negative."""
    of_val = share @ phi_val  # (b,)
    mean = eta * of_val + (1 - eta) * phi_train.mean(0)  # (b,)
    train, val = phi_train - mean, phi_val - mean
    matrix = eta * val.mT @ (share[:, None] * val) + (1 - eta) * train.mT @ train / len(train)
    matrix = matrix + ridge * torch.eye(len(mean), dtype=mean.dtype, device=mean.device)
    # positive definite by the ridge; "ex" and triangular solves never wait for the device
    lower, _ = torch.linalg.cholesky_ex(matrix)  # (b, b)
    half = torch.linalg.solve_triangular(lower, (of_val - mean)[:, None], upper=False)  # (b, 1)
    return 1 + (train @ torch.linalg.solve_triangular(lower.mT, half, upper=True))[:, 0]
