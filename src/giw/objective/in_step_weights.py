"""Kernel mean matching inside a training step.

The published width is solved for exactly: by :mod:`giw.weights` in the host's memory, and by the
same method in batched torch operations elsewhere. Other widths take sixty steps of accelerated
gradient. Nothing waits for a device, whatever the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.checks import check_positive
from giw.objective.distances import median_pair_distance, pairwise_squared_distances
from giw.objective.interior_point import batched_interior_point
from giw.weights.kmm import matched_weights
from giw.weights.ratio import check_auto

Numbers = TypeVar("Numbers", Tensor, NDArray[Any])

LOSSES_WIDER = 2.0  # losses are one-dimensional: a kernel as wide as their distances follows noise


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
        inverse squared width γ *is* that median, under which small losses all look alike. A
        number is a width σ.
    ridge : float, default=1e-5
        Added to the kernel's diagonal; more of it evens the weights out.
    upper : float, default=50.0
        Largest weight before the mean is set to one.
    """

    bandwidth: str | float = "cross"
    ridge: float = 1e-5
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
    ridge: float = 1e-5,
    upper: float = 50.0,
    n_steps: int = 60,
) -> Tensor:  # (..., n)
    r"""Kernel mean matching weights for one training step, without gradient and mean one.

    The problem is that of :func:`giw.kmm` with a given ridge,

    .. math:: \min_w \tfrac12 w^\top (K + \rho I) w - \kappa^\top w, \quad
              \kappa_i = \frac{n}{\sum_j v_j} \sum_j v_j\, k(z_i, z_j^{\rm val}),

    over :math:`0 \le w \le u` and :math:`|\sum w - n| \le n (\sqrt n - 1) / \sqrt n`, then
    rescaled to mean one. With the published width it is solved; with others it is approached by
    ``n_steps`` accelerated gradient steps [1]_, which also evens the weights out: more of them
    come closer to the minimum. Settings are those of :class:`giw.objective.DynamicWeights`;
    nothing is checked and nothing waits for a device, so that it can be captured in a CUDA graph
    and vectorised by ``torch.func.vmap``. Where nothing tells points apart, or all memberships are
    zero, weights are one.

    Shapes: one dimension is one loss per point; with more, the last dimension holds features, as
    everywhere in this package. Losses of several problems come as ``losses[..., None]``, or as
    (..., n) and (..., m) together with a ``val_weight`` of the same number of dimensions. Weights
    come in the dtype of ``z_train``, or float32 where that is narrower.

    References
    ----------
    .. [1] Beck and Teboulle, SIAM J. Imaging Sciences 2:183-202, 2009.
    """
    if z_train.ndim == 1 or (val_weight is not None and val_weight.ndim == z_val.ndim):
        z_train, z_val = z_train[..., None], z_val[..., None]
    val_weight = torch.ones_like(z_val[..., 0]) if val_weight is None else val_weight
    dtype = torch.promote_types(z_train.dtype, torch.float32)
    # a ridge of 1e-5 beside eigenvalues of n asks for double precision
    precision = torch.float64 if bandwidth == "paper" else dtype
    x_train, x_val, member = (z.detach().to(precision) for z in (z_train, z_val, val_weight))
    with torch.autocast(x_train.device.type, enabled=False):
        if bandwidth == "cross":
            width = cross_width(x_train, x_val, member)  # (..., 1, 1)
            x_train, x_val, bandwidth = x_train / width, x_val / width, 1.0
        if bandwidth != "paper":
            steps: dict[str, Any] = {"upper": upper, "n_steps": n_steps}
            for solve in _asked_first:
                found = solve(x_train, x_val, member, bandwidth=bandwidth, ridge=ridge, **steps)
                if found is not None:
                    return found
        gamma, spread = _gamma(x_train, bandwidth)  # (..., 1, 1) each
        if bandwidth == "paper":
            exact = (partial(road, ridge=ridge, upper=upper) for road in (_exact_on_host, _exact))
            w = _WithoutGradient.apply(*exact, x_train, x_val, member, gamma)
        else:
            descend, n = partial(accelerated_gradient, **steps), x_train.shape[-2]
            kernel, kappa = _kernels(x_train, x_val, member, gamma)
            kernel = kernel + ridge * torch.eye(n, dtype=dtype, device=kernel.device)
            w = _WithoutGradient.apply(descend, descend, kernel, kappa)
        mean = w.mean(-1, keepdim=True)
        usable = (member.sum(-1, keepdim=True) > 0) & (spread[..., 0] > 0) & (mean > 0)
        return torch.where(usable, w / torch.where(usable, mean, 1.0), 1.0).to(dtype)


_asked_first: list[Callable[..., Tensor | None]] = []


def ask_first(solve: Callable[..., Tensor | None]) -> None:
    """Let ``solve`` find weights that are approached by steps; it answers None where it cannot.

    :mod:`giw.nets.kernels` hands in a kernel for CUDA when it is imported: this room knows none.
    """
    _asked_first.append(solve)


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


def _gamma(x_train: Tensor, bandwidth: str | float) -> tuple[Tensor, Tensor]:
    """Inverse squared width and spread of the training points, (..., 1, 1) each."""
    if bandwidth in ("median", "paper"):
        spread = median_pair_distance(x_train)[..., None, None]
    else:  # the root mean squared distance of two of them
        away = x_train - x_train.mean(-2, keepdim=True)
        spread = (2 * away.square().sum((-2, -1), True) / x_train.shape[-2]).sqrt()
    # distances of equal points are rounding errors of their size: no width can be read off them
    rounding = 10 * torch.finfo(x_train.dtype).eps * x_train.square().mean((-2, -1), True).sqrt()
    spread = torch.where(spread > rounding, spread, 0.0)
    if bandwidth == "paper":
        return spread, spread
    width = torch.where(spread > 0, spread, 1.0) if bandwidth == "median" else float(bandwidth)
    return 0.5 / (torch.ones_like(spread) * width).square(), spread


def _kernels(
    x_train: Tensor,  # (..., n, d)
    x_val: Tensor,  # (..., m, d)
    member: Tensor,  # (..., m)
    gamma: Tensor,  # (..., 1, 1)
) -> tuple[Tensor, Tensor]:  # K (..., n, n), κ (..., n)
    kernel = torch.exp(-gamma * pairwise_squared_distances(x_train, x_train))
    cross = torch.exp(-gamma * pairwise_squared_distances(x_train, x_val))  # (..., n, m)
    total = member.sum(-1, keepdim=True)  # (..., 1)
    share = member / torch.where(total > 0, total, 1.0)
    return kernel, x_train.shape[-2] * (cross @ share[..., None])[..., 0]


def _exact(
    x_train: Tensor, x_val: Tensor, member: Tensor, gamma: Tensor, **settings: Any
) -> Tensor:  # (..., n)
    """Weights before rescaling, by batched torch operations."""
    return batched_interior_point(*_kernels(x_train, x_val, member, gamma), **settings)


def _exact_on_host(
    x_train: NDArray[np.float64],  # (..., n, d)
    x_val: NDArray[np.float64],  # (..., m, d)
    member: NDArray[np.float64],  # (..., m)
    gamma: NDArray[np.float64],  # (..., 1, 1)
    **settings: Any,
) -> NDArray[np.float64]:  # (..., n)
    """Mean-one weights, one problem after the other in numpy."""
    weight = np.ones(x_train.shape[:-1])
    for at in np.ndindex(gamma.shape[:-2]):
        width = gamma[at].item()
        if width > 0 and member[at].any():  # else there is nothing to tell points apart by
            problem = x_train[at], x_val[at], member[at]
            weight[at] = matched_weights(*problem, gamma=width, **settings)
    return weight


def accelerated_gradient(
    kernel: Numbers,  # (..., n, n), not negative
    kappa: Numbers,  # (..., n)
    *,
    upper: float,
    n_steps: int,
) -> Numbers:  # (..., n)
    r"""Accelerated projected gradient with one step size per weight and a dual for the sum.

    For a kernel without negative entries :math:`K \preceq \mathrm{diag}(K 1)`, so a weight in a
    sparse region, which has few neighbours, may take long steps: those are the weights that matter
    when validation losses are larger than training losses. The bounds on the sum are handled
    by a dual variable that stays zero as long as they are kept. Arrays and tensors alike.
    """
    inverse = 1 / kernel.sum(-1)  # (..., n)
    rate = 0.5 / inverse.sum(-1)[..., None]  # (..., 1)
    n = kappa.shape[-1]
    lowest, highest = rate * math.sqrt(n), rate * (2 * n - math.sqrt(n))
    dual = 0 * rate
    w = point = 0 * kappa + 1
    momentum = 1.0
    for _ in range(n_steps):
        gradient = (kernel @ point[..., None])[..., 0] - kappa  # (..., n)
        raised = dual + rate * point.sum(-1)[..., None]
        dual = raised - raised.clip(lowest, highest)
        moved = (point - (gradient + dual) * inverse).clip(0, upper)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        point = moved + (momentum - 1) / following * (moved - w)
        w, momentum = moved, following
    return w


class _WithoutGradient(torch.autograd.Function):
    """A function of tensors (batch, ...): in numpy where they lie in the host's memory.

    Hundreds of tiny operations take torch several times as long as numpy. An autograd function
    because under ``vmap`` tensors hand out their numbers, with the batch in front, nowhere else.
    """

    @staticmethod
    def forward(
        host: Callable[..., NDArray[Any]], anywhere: Callable[..., Tensor], *x: Tensor
    ) -> Tensor:
        # fake tensors and those of compilers are subclasses; they have no numbers
        if all(type(z) is Tensor and z.device.type == "cpu" for z in x):
            return torch.from_numpy(host(*(z.detach().numpy() for z in x)))
        return anywhere(*x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.mark_non_differentiable(output)
        ctx.n_inputs = len(inputs)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> tuple[None, ...]:
        return (None,) * ctx.n_inputs

    @staticmethod
    def vmap(info: Any, in_dims: Any, host: Any, anywhere: Any, *x: Tensor) -> tuple[Tensor, int]:
        batched = (
            z.expand(info.batch_size, *z.shape) if dim is None else z.movedim(dim, 0)
            for z, dim in zip(x, in_dims[2:], strict=True)
        )
        return _WithoutGradient.apply(host, anywhere, *batched), 0


def effective_share(weight: Tensor) -> Tensor:
    r"""Effective sample size over sample size, :math:`(\sum w)^2 / n \sum w^2`, left on its device.

    One for equal weights, 1/n where a single point carries everything, zero where none does.
    """
    squares = weight.shape[-1] * weight.square().sum(-1)
    return weight.sum(-1).square() / torch.where(squares > 0, squares, 1.0)
