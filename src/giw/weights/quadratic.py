r"""The quadratic programme of kernel mean matching.

.. math:: \min_w \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
          \quad\text{s.t.}\quad 0 \le w \le u,\ a \le \sum_i w_i \le b .

Two solvers. :func:`interior_point` is exact to many digits and takes a dozen Newton steps;
:func:`accelerated_gradient` is a fixed chain of cheap operations, for use inside training steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Solve = Callable[[Tensor, Tensor, Tensor], Tensor]


def sum_bounds(n: int) -> tuple[float, float]:
    r"""Least and largest sum of weights: :math:`|\sum w - n| \le n (\sqrt n - 1) / \sqrt n`."""
    return math.sqrt(n), 2 * n - math.sqrt(n)


def dense_solver(kernel: Tensor) -> Solve:
    """Solve (K + diag(d) + c 11ᵀ) x = r by Cholesky for K of shape (..., n, n)."""

    def solve(diagonal: Tensor, constant: Tensor, right: Tensor) -> Tensor:
        matrix = kernel + constant[..., None] + torch.diag_embed(diagonal)  # (..., n, n)
        factor = torch.linalg.cholesky_ex(matrix).L
        return torch.cholesky_solve(right[..., None], factor)[..., 0]  # (..., n)

    return solve


def interior_point(
    product: Callable[[Tensor], Tensor],  # (..., n) → K w, (..., n)
    solve: Solve,  # d, c, r → (K + diag(d) + c 11ᵀ)⁻¹ r
    kappa: Tensor,  # (..., n)
    *,
    ridge: float,
    upper: float,
    bounds: tuple[float, float],
    tolerance: float = 1e-9,
    most_steps: int = 60,
) -> Tensor:  # (..., n)
    """Primal-dual interior point method, started from weights of one.

    The sum is carried as one more bounded variable that follows the weights, so that one list of
    gaps to the bounds holds all constraints. Stops when the complementarity gap falls under
    ``tolerance`` times the size of the objective in every problem of the batch.
    """
    n = kappa.shape[-1]
    size = math.sqrt(max(bounds[1] - bounds[0], 1e-300))
    low = kappa.new_zeros(n + 1)
    high = kappa.new_full((n + 1,), upper)
    low[-1], high[-1] = bounds
    w = torch.ones_like(kappa)
    scale = kappa.abs().amax(-1, keepdim=True) + 1.0  # (..., 1)
    dual_low = dual_high = (scale * size / n).expand(*kappa.shape[:-1], n + 1)
    for _ in range(most_steps):
        point = torch.cat([w, w.sum(-1, keepdim=True)], -1)  # (..., n + 1)
        gap_low, gap_high = point - low, high - point
        complementarity = (dual_low * gap_low + dual_high * gap_high).mean(-1, keepdim=True) / 2
        gradient = product(w) + ridge * w - kappa
        residual = gradient - _on_weights(dual_low - dual_high)
        objective = 0.5 * (w * (gradient - kappa)).sum(-1, keepdim=True).abs() + 1.0
        goal = tolerance * objective / (2 * (n + 1))
        balanced = (residual.abs() <= 1e-6 * scale).all(-1, keepdim=True)
        running = ~((complementarity <= goal) & balanced)  # (..., 1)
        if not bool(running.any()):
            break
        diagonal = dual_low / gap_low + dual_high / gap_high
        weigh, constant = diagonal[..., :-1] + ridge, diagonal[..., -1:]

        # predictor: how far would a step straight to the boundary go?
        step = solve(weigh, constant, -gradient)
        change = torch.cat([step, step.sum(-1, keepdim=True)], -1)
        to_low = -dual_low - dual_low / gap_low * change
        to_high = -dual_high + dual_high / gap_high * change
        longest = _step_length(gap_low, change), _step_length(gap_high, -change)
        primal = torch.minimum(*longest)
        dual = torch.minimum(_step_length(dual_low, to_low), _step_length(dual_high, to_high))
        after = (
            (gap_low + primal * change) * (dual_low + dual * to_low)
            + (gap_high - primal * change) * (dual_high + dual * to_high)
        ).mean(-1, keepdim=True) / 2
        # corrector: aim at the central path, less so the better the predictor did (Mehrotra)
        target = complementarity * (after / complementarity).clamp(0, 1) ** 3
        target = target.maximum(0.1 * goal)  # further down there is only rounding
        aim_low = target - change * to_low
        aim_high = target + change * to_high
        step = solve(
            weigh, constant, -gradient + _on_weights(aim_low / gap_low - aim_high / gap_high)
        )
        change = torch.cat([step, step.sum(-1, keepdim=True)], -1)
        to_low = (aim_low - dual_low * change) / gap_low - dual_low
        to_high = (aim_high + dual_high * change) / gap_high - dual_high
        primal = torch.minimum(_step_length(gap_low, change), _step_length(gap_high, -change))
        dual = torch.minimum(_step_length(dual_low, to_low), _step_length(dual_high, to_high))
        # a problem that is solved rests while others of the batch go on
        primal, dual = torch.where(running, primal, 0.0), torch.where(running, dual, 0.0)
        w = w + primal * step
        dual_low, dual_high = dual_low + dual * to_low, dual_high + dual * to_high
    return w


def _on_weights(dual: Tensor) -> Tensor:
    """What duals of (weights, their sum) mean for each weight, (..., n + 1) → (..., n)."""
    return dual[..., :-1] + dual[..., -1:]


def _step_length(value: Tensor, change: Tensor) -> Tensor:
    """Largest step that keeps positive values positive, a little short of it, at most one."""
    return (0.995 / (-change / value).amax(-1, keepdim=True).clamp(min=0.995)).clamp(max=1.0)


def accelerated_gradient(
    kernel: Tensor,  # (..., n, n), not negative
    kappa: Tensor,  # (..., n)
    *,
    upper: float,
    bounds: tuple[float, float],
    n_steps: int,
) -> Tensor:  # (..., n)
    r"""Accelerated projected gradient with one step size per weight and a dual for the sum.

    For a kernel without negative entries :math:`K \preceq \mathrm{diag}(K 1)`, so a weight in a
    sparse region, which has few neighbours, may take long steps: those are the weights that matter
    when validation losses are larger than training losses. The bounds on the sum are handled
    by a dual variable that stays zero as long as they are kept.
    No step looks at a value on the host: works in CUDA graphs and under ``torch.func.vmap``.
    """
    inverse = 1 / kernel.sum(-1)  # (..., n)
    rate = 0.5 / inverse.sum(-1, keepdim=True)  # (..., 1)
    lowest, highest = rate * bounds[0], rate * bounds[1]
    dual = torch.zeros_like(rate)
    w = point = torch.ones_like(kappa)
    momentum = 1.0
    for _ in range(n_steps):
        gradient = (kernel @ point[..., None])[..., 0] - kappa  # (..., n)
        raised = dual + rate * point.sum(-1, keepdim=True)
        dual = raised - torch.minimum(torch.maximum(raised, lowest), highest)
        moved = (point - (gradient + dual) * inverse).clamp(0, upper)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        point = moved + (momentum - 1) / following * (moved - w)
        w, momentum = moved, following
    return w
