r"""The quadratic programme of kernel mean matching.

.. math:: \min_w \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
          \quad\text{s.t.}\quad 0 \le w \le u,\ a \le \sum_i w_i \le b .

Two solvers. :func:`interior_point` is exact to many digits and takes about ten Newton steps;
:func:`accelerated_gradient` is a fixed chain of cheap operations, for use inside training steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from giw.weights.on_host import gradient_on_host, suits_host

Solve = Callable[[Tensor], tuple[Tensor, Tensor]]


class Kernel(Protocol):
    """A kernel matrix K as the interior point method sees it."""

    def product(self, w: Tensor) -> Tensor:
        """K w, (..., n) → (..., n)."""

    def factor(self, diagonal: Tensor, constant: Tensor) -> Solve:
        """A function from r to the x with (K + diag(d) + c 11ᵀ) x = r, and to the sum of x.

        The sum comes from the equations, (..., 1): near a bound on it, adding up the entries
        of x would leave mostly their rounding errors.
        """


def sum_bounds(n: int) -> tuple[float, float]:
    r"""Least and largest sum of weights: :math:`|\sum w - n| \le n (\sqrt n - 1) / \sqrt n`."""
    return math.sqrt(n), 2 * n - math.sqrt(n)


class DenseKernel:
    """All entries of K, (..., n, n), in torch; solved by Cholesky."""

    def __init__(self, kernel: Tensor) -> None:
        self.kernel = kernel

    def product(self, w: Tensor) -> Tensor:
        """K w."""
        return (self.kernel @ w[..., None])[..., 0]

    def factor(self, diagonal: Tensor, constant: Tensor) -> Solve:
        """Solve with K + diag(d) + c 11ᵀ; the constant by the Sherman-Morrison formula."""
        matrix = self.kernel + torch.diag_embed(diagonal)  # (..., n, n)
        lower = torch.linalg.cholesky_ex(matrix).L
        ones = torch.cholesky_solve(torch.ones_like(diagonal)[..., None], lower)[..., 0]
        slope = 1 + constant * ones.sum(-1, keepdim=True)  # (..., 1)

        def solve(right: Tensor) -> tuple[Tensor, Tensor]:
            free = torch.cholesky_solve(right[..., None], lower)[..., 0]  # (..., n)
            total = free.sum(-1, keepdim=True) / slope
            return free - constant * total * ones, total

        return solve


class FactoredKernel:
    """K = F Fᵀ with few columns, (n, b), in torch; solved by Woodbury's identity."""

    def __init__(self, features: Tensor, *, block: int = 65_536) -> None:
        self.features = features
        self.blocks = [slice(start, start + block) for start in range(0, len(features), block)]

    def product(self, w: Tensor) -> Tensor:
        """K w."""
        return self.features @ (self.features.T @ w)

    def factor(self, diagonal: Tensor, constant: Tensor) -> Solve:
        """Solve with K + diag(d) + c 11ᵀ; the constant is one more column of F."""
        b = self.features.shape[1]
        root = constant.sqrt()  # (1,)
        inner = torch.eye(b + 1, dtype=diagonal.dtype, device=diagonal.device)
        for rows in self.blocks:  # a scaled copy of all features would double the memory
            part = self.features[rows]
            part = torch.cat([part, root.expand(len(part), 1)], 1)  # (block, b + 1)
            inner += part.T @ (part / diagonal[rows, None])
        lower = torch.linalg.cholesky(inner)

        def solve(right: Tensor) -> tuple[Tensor, Tensor]:
            scaled = right / diagonal
            means = torch.cat([self.features.T @ scaled, root * scaled.sum()])  # (b + 1,)
            shared = torch.cholesky_solve(means[:, None], lower)[:, 0]  # [F, √c 1]ᵀ x
            back = self.features @ shared[:-1] + root * shared[-1]
            return scaled - back / diagonal, shared[-1:] / root

        return solve


def interior_point(
    kernel: Kernel,
    kappa: Tensor,  # (..., n)
    *,
    ridge: float,
    upper: float,
    bounds: tuple[float, float],
    tolerance: float = 1e-9,
    most_steps: int = 60,
) -> Tensor:  # (..., n)
    """Primal-dual interior point method with Mehrotra's corrector, started from weights of one.

    The sum is carried as one more bounded variable that follows the weights, so that one tensor of
    gaps, to the lower and to the upper bounds, holds all constraints. Stops when the
    complementarity gap and the imbalance of forces fall under ``tolerance`` times the size of the
    objective and of κ in every problem of the batch.
    """
    n = kappa.shape[-1]
    limits = kappa.new_zeros(2, n + 1)
    limits[1, :-1], limits[0, -1], limits[1, -1] = upper, -bounds[0], bounds[1]
    sign = kappa.new_tensor([[1.0], [-1.0]])
    scale = kappa.abs().amax(-1, keepdim=True) + 1.0  # (..., 1)
    point = torch.cat([torch.ones_like(kappa), torch.full_like(scale, n)], -1)  # (..., n + 1)
    dual = (scale / math.sqrt(n))[..., None].expand(*kappa.shape[:-1], 2, n + 1)
    for _ in range(most_steps):
        w = point[..., :-1]
        gap = limits + sign * point[..., None, :]  # (..., 2, n + 1)
        complementarity = (dual * gap).sum((-2, -1))[..., None]  # (..., 1)
        gradient = kernel.product(w) + ridge * w - kappa
        objective = 0.5 * (w * (gradient - kappa)).sum(-1, keepdim=True).abs() + 1.0
        goal = tolerance * objective
        imbalance = (gradient - _on_weights(dual)).abs().amax(-1, keepdim=True)
        running = (complementarity > goal) | (imbalance > max(tolerance, 1e-7) * scale)
        if not bool(running.any()):
            break
        ratio = dual / gap
        diagonal = ratio.sum(-2)  # (..., n + 1)
        solve = kernel.factor(diagonal[..., :-1] + ridge, diagonal[..., -1:])

        # predictor: how far would a step straight to the boundary go?
        move = sign * torch.cat(solve(-gradient), -1)[..., None, :]  # (..., 2, n + 1)
        turn = -dual - ratio * move
        ahead = _step_length(gap, move, dual, turn)[..., None]
        after = ((gap + ahead * move) * (dual + ahead * turn)).sum((-2, -1))[..., None]
        # corrector: aim at the central path, less so the better the predictor did
        target = complementarity * (after / complementarity) ** 3
        target = target.maximum(0.1 * goal) / (2 * (n + 1))  # further down is only rounding
        aim = target[..., None] - move * turn
        step = torch.cat(solve(_on_weights(aim / gap) - gradient), -1)  # (..., n + 1)
        move = sign * step[..., None, :]
        turn = (aim - dual * move) / gap - dual
        # a problem that is solved rests while others of the batch go on
        ahead = torch.where(running, _step_length(gap, move, dual, turn), 0.0)
        point = point + ahead * step
        dual = dual + ahead[..., None] * turn
    return point[..., :-1]


def _on_weights(dual: Tensor) -> Tensor:
    """What duals of (weights, their sum) mean for each weight, (..., 2, n + 1) → (..., n)."""
    net = dual[..., 0, :] - dual[..., 1, :]
    return net[..., :-1] + net[..., -1:]


def _step_length(gap: Tensor, move: Tensor, dual: Tensor, turn: Tensor) -> Tensor:
    """Largest step, up to one, that keeps gaps and duals positive; (..., 1).

    One length for both: in a quadratic programme two would undo each other's balance.
    """
    steepest = torch.maximum((-move / gap).amax((-2, -1)), (-turn / dual).amax((-2, -1)))
    return 0.995 / steepest.clamp(min=0.995)[..., None]


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
    No step looks at a value on the host: works in CUDA graphs and under ``torch.func.vmap``. In the
    host's own memory the same steps are taken by numpy, see :mod:`giw.weights.on_host`.
    """
    if suits_host(kernel, kappa):
        return gradient_on_host(kernel, kappa, upper=upper, bounds=bounds, n_steps=n_steps)
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
