r"""The published programme of kernel mean matching in a training step, solved exactly.

.. math:: \min_w \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
          \quad\text{s.t.}\quad 0 \le w \le u,\ \sqrt n \le \sum_i w_i \le 2n - \sqrt n

Without CUDA tensors go through :mod:`giw.weights` in numpy, which works on a factor of the kernel.
On CUDA the same interior point runs in torch operations, a fixed number of steps with the kernel in
full. There no value is read on the host: it can be captured in a CUDA graph, and
``torch.func.vmap`` solves several problems at once, of which those that are solved rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from giw.objective.terms import median_pair_distance, or_one, pairwise_squared_distances
from giw.weights.kmm import matched_weights
from giw.weights.samples import median_distance

RIDGE = 1e-5


def published_weights(
    x_train: Tensor,  # (n, d)
    x_val: Tensor,  # (m, d)
    member: Tensor,  # (m,)
    upper: float,
) -> Tensor:  # (n,)
    """Mean-one weights; ones where there is nothing to tell points apart by."""
    # fake tensors and those of compilers are subclasses; they have no numbers
    without_host = x_train.is_cuda or type(x_train) is not Tensor
    return (in_torch if without_host else InNumpy.apply)(x_train, x_val, member, upper)


class InNumpy(torch.autograd.Function):
    """One problem after the other, in the host's memory.

    An autograd function because under ``vmap`` tensors hand out their numbers nowhere else.
    """

    @staticmethod
    def forward(x_train: Tensor, x_val: Tensor, member: Tensor, upper: float) -> Tensor:
        # a ridge of 1e-5 beside eigenvalues of n asks for double precision
        train, val, inside = (z.cpu().double().numpy() for z in (x_train, x_val, member))
        rounding = 10 * torch.finfo(x_train.dtype).eps * np.sqrt(np.square(train).mean())
        if not (train.std(0).max() > rounding and inside.any()):
            return torch.ones_like(x_train[:, 0])
        gamma = median_distance(train)
        weight = matched_weights(train, val, inside, gamma=gamma, ridge=RIDGE, upper=upper)
        return torch.from_numpy(weight).to(x_train)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> tuple[None, ...]:
        return (None,) * 4

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[Tensor, int]:
        found = [
            InNumpy.apply(*(z if dim is None else z.select(dim, t)
                            for z, dim in zip(inputs, in_dims, strict=False)))
            for t in range(info.batch_size)
        ]  # fmt: skip
        return torch.stack(found), 0


def in_torch(x_train: Tensor, x_val: Tensor, member: Tensor, upper: float) -> Tensor:
    """The same on any device."""
    if upper == 1:
        return torch.ones_like(x_train[:, 0])
    train, val, inside = (z.double() for z in (x_train, x_val, member))
    total, rounding = inside.sum(), 10 * torch.finfo(x_train.dtype).eps
    apart = train.std(0, correction=0).amax() > rounding * train.square().mean().sqrt()
    gamma = median_pair_distance(train)
    kernel, cross = (torch.exp(-gamma * pairwise_squared_distances(train, z)) for z in (train, val))
    kappa = len(train) * (cross @ (inside / or_one(total)))
    w = interior_point(kernel, kappa, ridge=RIDGE, upper=upper)
    return torch.where(apart & (total > 0), w / w.mean(), 1.0).to(x_train)


def interior_point(
    kernel: Tensor,  # (n, n)
    kappa: Tensor,  # (n,)
    *,
    ridge: float,
    upper: float,
    tolerance: float = 1e-3,
    n_steps: int = 30,
) -> Tensor:  # (n,)
    """Weights that solve the programme.

    ``tolerance`` and steps are those of :func:`giw.weights.quadratic.interior_point`, whose
    comments hold here. Six to 23 of ``n_steps`` solve problems of every kind that was tried.
    """
    n, ones = len(kappa), torch.ones_like(kappa)
    matrix = kernel + ridge * torch.eye(n, dtype=kernel.dtype, device=kernel.device)
    scale = kappa.amax() + 1
    goal = (1e-15 * n * scale).clamp(min=0.5 * ridge * n * tolerance**2)
    balance = (1e-14 * n * scale).clamp(min=ridge * tolerance)
    room = kappa.new_full((1,), n - math.sqrt(n))
    gap = torch.stack(
        [torch.cat([side, room]) for side in (ones, (upper - 1) * ones)]
    )  # (2, n + 1)
    gradient = matrix @ ones - kappa
    dual = torch.ones_like(gap) * (0.1 * gradient.abs().amax() + 0.01 / math.sqrt(n) * scale)
    for _ in range(n_steps):
        spare, force = (dual * gap).sum(), dual[0] - dual[1]
        imbalance = (gradient - force[:-1] - force[-1]).abs().amax()
        running = (spare > goal) | (imbalance > balance)
        ratio = dual / gap
        diagonal = ratio.sum(0)
        # "ex" and triangular solves do not wait for the device
        lower = torch.linalg.cholesky_ex(matrix + torch.diag(diagonal[:-1])).L
        # predictor
        even, free = _solved(lower, torch.stack([ones, -gradient], 1)).unbind(1)  # (n,) each
        part = _both_ways(free, even, diagonal[-1]) / gap
        ahead = 0.995 / torch.maximum(-part.amin(), 1 + part.amax()).clamp(min=0.995)
        bend = dual * part * (1 + part)
        after = spare * (1 - ahead) - ahead.square() * (gap * bend).sum()
        target = torch.maximum(spare * (after / spare) ** 4, 0.1 * goal) / (2 * (n + 1))
        bend = bend * (10 * ahead).clamp(max=1)
        # corrector
        pull = target / gap + bend
        right = pull[0] - pull[1]
        free = _solved(lower, (right[:-1] + right[-1] - gradient)[:, None])[:, 0]
        shift = _both_ways(free, even, diagonal[-1])
        turn = pull - ratio * shift - dual
        least = torch.minimum((shift / gap).amin(), (turn / dual).amin())
        ahead = 0.995 / (-least).clamp(min=0.995)
        # where rounding has made a step meaningless the last point stands
        running = running & torch.isfinite(ahead)
        gap = torch.where(running, gap + ahead * shift, gap)
        dual = torch.where(running, dual + ahead * turn, dual)
        gradient = matrix @ gap[0, :-1] - kappa
    return gap[0, :-1].clamp(max=upper)


def _solved(lower: Tensor, right: Tensor) -> Tensor:
    """The x with L Lᵀ x = r."""
    half = torch.linalg.solve_triangular(lower, right, upper=False)
    return torch.linalg.solve_triangular(lower.mT, half, upper=True)


def _both_ways(free: Tensor, even: Tensor, constant: Tensor) -> Tensor:
    """What a step does to the gaps below and above, those of the sum last, (2, n + 1).

    ``free`` solves A x = r and ``even`` A x = 1; a step solves (A + c 11ᵀ) x = r.
    """
    total = free.sum() / (1 + constant * even.sum())
    step = torch.cat([free - constant * total * even, total[None]])
    return torch.stack([step, -step])
