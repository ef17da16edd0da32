r"""The interior point of :mod:`giw.weights.quadratic` in batched torch operations, for any device.

The same steps for a batch of problems, a fixed number of them, in double precision. No value is
read on the host, so that it can be captured in a CUDA graph and vectorised by ``torch.func.vmap``;
a problem that is solved rests while others of the batch go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def batched_interior_point(
    kernel: Tensor,  # (..., n, n)
    kappa: Tensor,  # (..., n)
    *,
    ridge: float,
    upper: float,
    tolerance: float = 1e-3,
    n_steps: int = 30,
) -> Tensor:  # (..., n)
    r"""Minimise :math:`\tfrac12 w^\top (K + \rho I) w - \kappa^\top w` within the bounds.

    Parameters are those of :func:`giw.weights.quadratic.interior_point`, which tells the story;
    more of ``n_steps`` help problems whose weights crowd at their bounds, and twenty are enough
    for most.
    """
    n = kappa.shape[-1]
    kernel, kappa = kernel.double(), kappa.double()
    scale = kappa.amax(-1, keepdim=True) + 1.0  # (..., 1)
    below = torch.ones_like(kappa)  # from equal weights
    room = torch.full_like(scale, n - math.sqrt(n))  # both bounds on the sum are as far from n
    gap = torch.stack([torch.cat([z, room], -1) for z in (below, (upper - 1) * below)], -2)
    gradient = _gradient(kernel, below, kappa, ridge)
    force = 0.1 * gradient.abs().amax(-1, keepdim=True) + 0.01 / math.sqrt(n) * scale
    dual = torch.ones_like(gap) * force[..., None]
    goal = (1e-15 * n * scale).clamp(min=0.5 * ridge * n * tolerance**2)
    balance = (1e-14 * n * scale).clamp(min=ridge * tolerance)
    for _ in range(n_steps):
        spare = _inner(dual, gap)  # (..., 1)
        force = dual[..., 0, :] - dual[..., 1, :]  # (..., n + 1)
        imbalance = (gradient - force[..., :-1] - force[..., -1:]).abs().amax(-1, keepdim=True)
        running = (spare > goal) | (imbalance > balance)
        ratio = dual / gap
        diagonal = ratio.sum(-2)
        solve = _factored(kernel, diagonal[..., :-1] + ridge, diagonal[..., -1:])
        # predictor: how far would a step straight to the boundary go?
        part = _both_ways(solve(-gradient)) / gap
        ahead = 0.995 / torch.maximum(-_least(part), 1 - _least(-part)).clamp(min=0.995)
        bend = dual * part * (1 + part)
        after = spare * (1 - ahead) - ahead.square() * _inner(gap, bend)
        target = torch.maximum(spare * (after / spare) ** 4, 0.1 * goal) / (2 * (n + 1))
        # corrector
        pull = target[..., None] / gap + bend
        right = pull[..., 0, :] - pull[..., 1, :]
        shift = _both_ways(solve(right[..., :-1] + right[..., -1:] - gradient))
        turn = pull - ratio * shift - dual
        ahead = 0.995 / torch.maximum(-_least(shift / gap), -_least(turn / dual)).clamp(min=0.995)
        # where rounding has made a step meaningless the last point stands
        running = (running & torch.isfinite(ahead))[..., None]
        gap = torch.where(running, gap + ahead[..., None] * shift, gap)
        dual = torch.where(running, dual + ahead[..., None] * turn, dual)
        gradient = _gradient(kernel, gap[..., 0, :-1], kappa, ridge)
    return gap[..., 0, :-1]


def _factored(kernel: Tensor, diagonal: Tensor, constant: Tensor) -> Callable[[Tensor], Tensor]:
    """From r to the x with (K + diag(d) + c 11ᵀ) x = r and its sum, (..., n) → (..., n + 1)."""
    matrix = kernel + torch.diag_embed(diagonal)
    lower = torch.linalg.cholesky_ex(matrix).L  # "ex" does not wait for the device
    ones = torch.cholesky_solve(torch.ones_like(diagonal)[..., None], lower)[..., 0]
    slope = 1 + constant * ones.sum(-1, keepdim=True)

    def solve(right: Tensor) -> Tensor:
        free = torch.cholesky_solve(right[..., None], lower)[..., 0]
        total = free.sum(-1, keepdim=True) / slope
        return torch.cat([free - constant * total * ones, total], -1)

    return solve


def _gradient(kernel: Tensor, w: Tensor, kappa: Tensor, ridge: float) -> Tensor:
    return (kernel @ w[..., None])[..., 0] + ridge * w - kappa


def _both_ways(step: Tensor) -> Tensor:
    """What a step does to the gaps below and above, (..., n + 1) → (..., 2, n + 1)."""
    return torch.stack([step, -step], -2)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum((-2, -1))[..., None]


def _least(values: Tensor) -> Tensor:
    return values.amin((-2, -1))[..., None]
