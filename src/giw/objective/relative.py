"""Relative density ratios estimated anew in every training step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from giw.checks import check_positive
from giw.kernels import median_pair_distance, pairwise_squared_distances
from giw.objective.dynamic import as_columns


@dataclass(frozen=True)
class DynamicRelativeWeights:
    r"""Relative density ratio of a validation to a training batch by least squares.

    .. math:: w_\eta = \frac{p_{\rm val}}{\eta\, p_{\rm val} + (1 - \eta)\, p_{\rm tr}}
              \le \frac1\eta

    is modelled as :math:`\theta^\top \varphi(z)` with Gaussian kernels at the validation points,
    and the squared error under the mixture in the denominator has a closed-form minimum [1]_,

    .. math:: \theta = (H + \lambda I)^{-1} h , \quad
              H = \eta\, E_{\rm val}[\varphi \varphi^\top]
                + (1 - \eta)\, E_{\rm tr}[\varphi \varphi^\top], \quad
              h = E_{\rm val}[\varphi] ,

    whose negative entries are set to zero. A fixed chain of operations: it can be captured in a
    CUDA graph and vectorised by ``torch.func.vmap``.

    Parameters
    ----------
    eta : float, default=0.5
        Share of validation in the denominator, 0 to below 1; more of it flattens the weights,
        0 is the ordinary ratio (uLSIF).
    bandwidth : "median" or float, default="median"
        Width of the Gaussian kernel; the median distance of the training points is scale free.
    ridge : float, default=0.1
        The penalty λ; kernels are at most one, so it needs no scale.

    References
    ----------
    .. [1] Yamada, Suzuki, Kanamori, Hachiya and Sugiyama, NeurIPS 2011.
    """

    eta: float = 0.5
    bandwidth: str | float = "median"
    ridge: float = 0.1

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        if not 0 <= self.eta < 1:
            raise ValueError(f"eta must be at least 0 and below 1, got {self.eta}")
        if isinstance(self.bandwidth, str):
            if self.bandwidth != "median":
                raise ValueError(
                    f"bandwidth must be 'median' or a positive number, got {self.bandwidth!r}"
                )
        else:
            check_positive(self.bandwidth, "bandwidth")
        check_positive(self.ridge, "ridge")

    def __call__(
        self,
        train_z: Tensor,  # (n,) or (n, d)  representation of the training batch
        val_z: Tensor,  # (m,) or (m, d)  the same of the validation batch
        inside: Tensor | None = None,  # (m,)  how much each validation point counts, 0 to 1
    ) -> Tensor:  # (n,)  mean one, no gradient
        """Weights of the training batch; ones where there is nothing to tell points apart by."""
        ratio = self.ratio(train_z, val_z, inside)
        mean = ratio.mean()  # zero where no validation point counts, or all are far away
        return torch.where(mean > 0, ratio / torch.where(mean > 0, mean, 1.0), 1.0)

    @torch.no_grad()
    def ratio(self, train_z: Tensor, val_z: Tensor, inside: Tensor | None = None) -> Tensor:
        """The estimated relative ratio itself, (n,), between 0 and 1/η."""
        dtype = torch.promote_types(train_z.dtype, torch.float32)
        train, val = as_columns(train_z).to(dtype), as_columns(val_z).to(dtype)  # (n, d), (m, d)
        with torch.autocast(train.device.type, enabled=False):
            width = self._width(train)
            phi_train = _gaussian(train, val, width)  # (n, m)
            phi_val = _gaussian(val, val, width)  # (m, m)
            member = phi_val.new_ones(len(val)) if inside is None else inside.detach().to(dtype)
            share = member / torch.where(member.sum() > 0, member.sum(), 1.0)  # (m,)
            theta = relative_coefficients(phi_train, phi_val, share, eta=self.eta, ridge=self.ridge)
            # the truth is bounded so; an estimate is not, unless one says it
            most = 1 / self.eta if self.eta > 0 else float("inf")
            return (phi_train @ theta).clamp(max=most)

    def _width(self, train: Tensor) -> Tensor:
        """Kernel width; where points differ by rounding only, so wide that they are all alike."""
        size = train.square().mean().sqrt()
        if not isinstance(self.bandwidth, str):
            return torch.full_like(size, self.bandwidth)
        median = median_pair_distance(train)
        return torch.where(median > 10 * torch.finfo(train.dtype).eps * size, median, 1 + size)


def relative_coefficients(
    phi_train: Tensor,  # (n, b)
    phi_val: Tensor,  # (m, b)
    share: Tensor,  # (m,)  weights of the validation points, sum one
    *,
    eta: float,
    ridge: float,
) -> Tensor:  # (b,)
    r"""Coefficients :math:`\max(0, (H + \lambda I)^{-1} h)` of the relative ratio."""
    of_val = phi_val.mT @ (share[:, None] * phi_val)  # (b, b)
    of_train = phi_train.mT @ phi_train / len(phi_train)  # (b, b)
    matrix = eta * of_val + (1 - eta) * of_train
    matrix = matrix + ridge * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    # positive definite by the ridge; "ex" and triangular solves never wait for the device
    lower, _ = torch.linalg.cholesky_ex(matrix)
    h = (share @ phi_val)[:, None]  # (b, 1)
    half = torch.linalg.solve_triangular(lower, h, upper=False)
    return torch.linalg.solve_triangular(lower.mT, half, upper=True)[:, 0].clamp(min=0)


def _gaussian(x: Tensor, y: Tensor, width: Tensor) -> Tensor:
    return torch.exp(-pairwise_squared_distances(x, y) / (2 * width.square()))
