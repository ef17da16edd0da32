"""Kernel mean matching inside a training step.

Weights are those of kernel mean matching with a ridge that pulls them towards one: the solution of
one linear system, on any device and without waiting for it. The published programme, which has next
to no ridge and is solved exactly, is found in the host's memory by :mod:`giw.weights`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.checks import check_auto, check_positive
from giw.weights.kmm import matched_weights

LOSSES_WIDER = 2.0  # losses are one-dimensional: a kernel as wide as their distances follows noise
PUBLISHED_RIDGE = 1e-5


class Weigh(Protocol):
    """A way to weigh a training batch by a validation batch."""

    def __call__(self, train_z: Tensor, val_z: Tensor, inside: Tensor | None = None) -> Tensor:
        """Weights of the training batch, (n,), mean one, without gradient."""
        ...


@dataclass(frozen=True)
class DynamicWeights:
    r"""Match a training batch to a validation batch by kernel mean matching.

    Parameters
    ----------
    bandwidth : {"cross", "median", "paper"} or float, default="cross"
        Width of the Gaussian kernel. "cross": the root mean squared distance of training from
        validation points, twice that for losses (:func:`giw.objective.cross_width`); scale free,
        and wide enough to reach from most training points to what validation holds and training
        lacks. "median": the median distance of the training points, scale free; where most of them
        are alike (a rare class) it is so small that the others get no weight. "paper": the
        published programme, solved exactly in the host's memory. Its inverse squared width γ *is*
        that median, under which small losses all look alike. A number is a width σ.
    ridge : float, default=0.003
        Squared distance of weights from one that is added to what is minimised, per training point;
        more of it shrinks all weights towards one. The published programme has its own, 1e-5 in
        all.
    upper : float, default=50.0
        Largest weight before the mean is set to one.
    """

    bandwidth: str | float = "cross"
    ridge: float = 0.003
    upper: float = 50.0

    def __post_init__(self) -> None:
        """Refuse settings that no kernel has."""
        check_auto(self.bandwidth, "bandwidth", ("cross", "median", "paper"))
        check_positive(self.ridge, "ridge")
        check_positive(self.upper, "upper")

    def __call__(
        self,
        train_z: Tensor,  # (n,) or (n, d)  representation of the training batch
        val_z: Tensor,  # (m,) or (m, d)  the same of the validation batch
        inside: Tensor | None = None,  # (m,)  how much each validation point counts, 0 to 1
    ) -> Tensor:  # (n,)  mean one, no gradient
        """Weights of the training batch."""
        settings: dict[str, Any] = vars(self)
        return dynamic_kmm(train_z, val_z, inside, **settings)


@torch.no_grad()
def dynamic_kmm(
    z_train: Tensor,  # (n,) losses, or (..., n, d) features
    z_val: Tensor,  # (m,) losses, or (..., m, d) features
    val_weight: Tensor | None = None,  # (..., m)  membership, 0 to 1 or boolean
    *,
    bandwidth: str | float = "cross",
    ridge: float = 0.003,
    upper: float = 50.0,
) -> Tensor:  # (..., n)
    r"""Kernel mean matching weights for one training step, without gradient and mean one.

    They minimise the distance of the two kernel means, with a ridge towards equal weights,

    .. math:: \tfrac12 w^\top K w - \kappa^\top w + \tfrac{\lambda n}2 \lVert w - 1 \rVert^2, \quad
              \kappa_i = \frac{n}{\sum_j v_j} \sum_j v_j\, k(z_i, z_j^{\rm val}),

    are then cut off at zero and ``upper``, and scaled to mean one. With ``bandwidth="paper"`` it is
    the published problem, see :func:`giw.kmm`. Settings are those of
    :class:`giw.objective.DynamicWeights`; nothing is checked and, but for the published problem,
    nothing waits for a device, so that it can be captured in a CUDA graph. Where nothing tells
    points apart, or all memberships are zero, weights are one.

    Shapes: one dimension is one loss per point; with more, the last dimension holds features, as
    everywhere in this package. Losses of several problems come as ``losses[..., None]``, or as
    (..., n) and (..., m) together with a ``val_weight`` of the same number of dimensions. Weights
    come in the dtype of ``z_train``, or float32 where that is narrower.
    """
    if z_train.ndim == 1 or (val_weight is not None and val_weight.ndim == z_val.ndim):
        z_train, z_val = z_train[..., None], z_val[..., None]
    val_weight = torch.ones_like(z_val[..., 0]) if val_weight is None else val_weight
    dtype = torch.promote_types(z_train.dtype, torch.float32)
    x_train, x_val, member = (z.detach().to(dtype) for z in (z_train, z_val, val_weight))
    with torch.autocast(x_train.device.type, enabled=False):
        if bandwidth == "paper":
            return _OnHost.apply(x_train, x_val, member, upper)
        width, apart = kernel_width(x_train, x_val, member, bandwidth)  # (..., 1, 1) each
        w = _ridged(x_train / width, x_val / width, member, ridge).clamp(0, upper)
        mean = w.mean(-1, keepdim=True)
        usable = (member.sum(-1, keepdim=True) > 0) & apart[..., 0] & (mean > 0)
        return torch.where(usable, w / torch.where(usable, mean, 1.0), 1.0)


def cross_width(
    x_train: Tensor,  # (..., n, d)
    x_val: Tensor,  # (..., m, d)
    val_weight: Tensor | None = None,  # (..., m)
) -> Tensor:  # (..., 1, 1)
    r"""Root mean squared distance of training from validation points, twice that if d is one.

    .. math:: \frac1n \sum_i \frac{\sum_j v_j (x_i - x_j^{\rm val})^2}{\sum_j v_j}
              = \frac1n \sum_i (x_i - \bar x)^2
              + \frac{\sum_j v_j (x_j^{\rm val} - \bar x)^2}{\sum_j v_j}

    One where all points coincide.
    """
    center = x_train.mean(-2, keepdim=True)  # (..., 1, d)
    own = (x_train - center).square().sum(-1).mean(-1)  # (...)
    gap = (x_val - center).square().sum(-1)  # (..., m)
    member = torch.ones_like(gap) if val_weight is None else val_weight
    total = member.sum(-1)
    theirs = (member * gap).sum(-1) / torch.where(total > 0, total, 1.0)
    width = (LOSSES_WIDER if x_train.shape[-1] == 1 else 1.0) * (own + theirs).sqrt()
    return torch.where(width > 0, width, 1.0)[..., None, None]


def kernel_width(
    x_train: Tensor, x_val: Tensor, member: Tensor, bandwidth: str | float
) -> tuple[Tensor, Tensor]:
    """Width of the kernel and whether training points differ at all, (..., 1, 1) each."""
    if bandwidth == "median":
        spread = median_pair_distance(x_train)[..., None, None]
    else:  # the root mean squared distance of two of them
        away = x_train - x_train.mean(-2, keepdim=True)
        spread = (2 * away.square().sum((-2, -1), True) / x_train.shape[-2]).sqrt()
    # distances of equal points are rounding errors of their size: no width can be read off them
    rounding = 10 * torch.finfo(x_train.dtype).eps * x_train.square().mean((-2, -1), True).sqrt()
    apart = spread > rounding
    if bandwidth == "cross":
        return cross_width(x_train, x_val, member), apart
    if bandwidth == "median":
        return torch.where(apart, spread, 1.0), apart
    return torch.full_like(spread, float(bandwidth)), apart


def _ridged(
    x_train: Tensor,  # (..., n, d), in units of the width
    x_val: Tensor,  # (..., m, d)
    member: Tensor,  # (..., m)
    ridge: float,
) -> Tensor:  # (..., n)
    """Weights before they are cut off."""
    n = x_train.shape[-2]
    kernel, cross = gaussian(x_train, x_train), gaussian(x_train, x_val)  # (..., n, n), (..., n, m)
    total = member.sum(-1, keepdim=True)  # (..., 1)
    share = member / torch.where(total > 0, total, 1.0)
    gap = n * (cross @ share[..., None]) - kernel.sum(-1, keepdim=True)  # (..., n, 1)
    ridged = kernel + ridge * n * torch.eye(n, dtype=kernel.dtype, device=kernel.device)
    # "ex" and triangular solves do not wait for the device
    lower = torch.linalg.cholesky_ex(ridged).L
    half = torch.linalg.solve_triangular(lower, gap, upper=False)
    return 1 + torch.linalg.solve_triangular(lower.mT, half, upper=True)[..., 0]


def gaussian(x: Tensor, y: Tensor) -> Tensor:
    """Gaussian kernel of width one, (..., n, m)."""
    return torch.exp(-0.5 * pairwise_squared_distances(x, y))


class _OnHost(torch.autograd.Function):
    """The published programme for problems (batch, ...), one after the other in numpy.

    An autograd function because under ``vmap`` tensors hand out their numbers nowhere else.
    """

    @staticmethod
    def forward(x_train: Tensor, x_val: Tensor, member: Tensor, upper: float) -> Tensor:
        # a ridge of 1e-5 beside eigenvalues of n asks for double precision
        problem = [z.double().cpu().numpy() for z in (x_train, x_val, member)]
        rounding = 10 * torch.finfo(x_train.dtype).eps
        return torch.from_numpy(_published(*problem, rounding=rounding, upper=upper)).to(x_train)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> tuple[None, ...]:
        return (None,) * 4

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[Tensor, int]:
        *x, upper = inputs
        batched = (
            z.expand(info.batch_size, *z.shape) if dim is None else z.movedim(dim, 0)
            for z, dim in zip(x, in_dims, strict=False)
        )
        return _OnHost.apply(*batched, upper), 0


def _published(
    x_train: NDArray[np.float64],  # (..., n, d)
    x_val: NDArray[np.float64],  # (..., m, d)
    member: NDArray[np.float64],  # (..., m)
    *,
    rounding: float,
    upper: float,
) -> NDArray[np.float64]:  # (..., n)
    """Mean-one weights; ones where there is nothing to tell points apart by."""
    weight = np.ones(x_train.shape[:-1])
    for at in np.ndindex(x_train.shape[:-2]):
        gamma = _median_distance(x_train[at])
        apart = gamma > rounding * np.sqrt(np.square(x_train[at]).mean())
        if apart and member[at].any():
            weight[at] = matched_weights(
                x_train[at], x_val[at], member[at],
                gamma=gamma, ridge=PUBLISHED_RIDGE, upper=upper,
            )  # fmt: skip
    return weight


def _median_distance(x: NDArray[np.float64]) -> float:
    """As :func:`median_pair_distance`; numpy selects in a third of the time that torch takes."""
    pairs = np.triu_indices(len(x), 1)
    squares = pairwise_squared_distances(*[torch.from_numpy(x)] * 2).numpy()[pairs]
    if not len(squares):
        return 0.0
    middle = [(len(squares) - 1) // 2, len(squares) // 2]
    median = float(np.sqrt(np.partition(squares, middle)[middle]).mean())
    return median if median > 0 else float(np.sqrt(squares.mean()))


def effective_share(weight: Tensor) -> Tensor:
    r"""Effective sample size over sample size, :math:`(\sum w)^2 / n \sum w^2`, left on its device.

    One for equal weights, 1/n where a single point carries everything, zero where none does.
    """
    squares = weight.shape[-1] * weight.square().sum(-1)
    return weight.sum(-1).square() / torch.where(squares > 0, squares, 1.0)


# Distances, unchecked: for inner loops ------------------------------------------------------------


def pairwise_squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Squared distances of tensors (..., n, d) and (..., m, d), (..., n, m)."""
    if x.shape[-1] == 1:
        return (x - y.mT).square()
    # ‖x‖² + ‖y‖² − 2xᵀy loses digits far from the origin, so the origin moves to the points
    center = y.mean(-2, keepdim=True)  # (..., 1, d)
    x, y = x - center, y - center
    norms = x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :]  # (..., n, m)
    return (norms - 2 * (x @ y.mT)).clamp(min=0)


def median_pair_distance(x: Tensor) -> Tensor:
    """Median distance over pairs i < j of the rows of (..., n, d); shape (...).

    The root mean squared distance where that is zero.
    """
    n = x.shape[-2]
    if n == 1:
        return x.new_zeros(x.shape[:-2])
    row, column = torch.triu_indices(n, n, 1, device=x.device)
    squares = pairwise_squared_distances(x, x)[..., row, column]  # (..., pairs)
    lower, upper = middle_pair(squares)
    median = 0.5 * (lower.sqrt() + upper.sqrt())
    return torch.where(median > 0, median, squares.mean(-1).sqrt())


def middle_pair(values: Tensor) -> tuple[Tensor, Tensor]:
    """The two middle values along the last dimension, one and the same where it is odd."""
    lower, upper = (values.shape[-1] - 1) // 2, values.shape[-1] // 2
    if values.is_cuda:  # where a sort is cheap, and a selection not deterministic
        ordered = values.sort(-1).values
        return ordered[..., lower], ordered[..., upper]
    # selection takes a tenth of the time of a sort
    first = values.kthvalue(lower + 1, -1).values
    return first, first if upper == lower else values.kthvalue(upper + 1, -1).values
