"""Accelerated projected gradient in numpy: on a CPU, where each step is a handful of tiny products.

Sixty steps of ten operations on a batch of losses take torch two milliseconds, nearly all of it
spent on getting from one operation to the next, and its batched product of a matrix and a vector
is ten times slower than one product after the other. Numpy gets there sooner.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def suits_host(kernel: Tensor, kappa: Tensor) -> bool:
    """Whether the numbers lie in the host's memory and nobody asks for their gradient."""
    wanted = torch.is_grad_enabled() and (kernel.requires_grad or kappa.requires_grad)
    known = kernel.device.type == "cpu" and kernel.dtype in (torch.float32, torch.float64)
    return known and not wanted and not torch.compiler.is_compiling()


def gradient_on_host(
    kernel: Tensor,  # (..., n, n)
    kappa: Tensor,  # (..., n)
    *,
    upper: float,
    bounds: tuple[float, float],
    n_steps: int,
) -> Tensor:  # (..., n)
    """What :func:`giw.weights.quadratic.accelerated_gradient` does, also under vmap."""
    found: Tensor = _OnHost.apply(kernel, kappa, upper, *bounds, n_steps)
    return found


class _OnHost(torch.autograd.Function):
    """A function of its own because vmap hands numpy no numbers."""

    @staticmethod
    def forward(
        kernel: Tensor, kappa: Tensor, upper: float, low: float, high: float, n_steps: int
    ) -> Tensor:
        numbers = kernel.detach().numpy(), kappa.detach().numpy()
        return torch.from_numpy(_descend(*numbers, upper, (low, high), n_steps))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> tuple[None, ...]:
        return (None,) * 6

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        kernel, kappa = (
            z.expand(info.batch_size, *z.shape) if dim is None else z.movedim(dim, 0)
            for z, dim in zip(args[:2], in_dims, strict=False)
        )
        return _OnHost.apply(kernel, kappa, *args[2:]), 0


def _descend(
    kernel: NDArray[Any],
    kappa: NDArray[Any],
    upper: float,
    bounds: tuple[float, float],
    n_steps: int,
) -> NDArray[Any]:
    inverse = 1 / kernel.sum(-1)  # (..., n)
    rate = 0.5 / inverse.sum(-1, keepdims=True)  # (..., 1)
    lowest, highest = rate * bounds[0], rate * bounds[1]
    dual = np.zeros_like(rate)
    w = point = np.ones_like(kappa)
    momentum = 1.0
    for _ in range(n_steps):
        gradient = np.matmul(kernel, point[..., None])[..., 0] - kappa
        raised = dual + rate * point.sum(-1, keepdims=True)
        dual = raised - np.minimum(np.maximum(raised, lowest), highest)
        moved = np.minimum(np.maximum(point - (gradient + dual) * inverse, 0), upper)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        point = moved + (momentum - 1) / following * (moved - w)
        w, momentum = moved, following
    return w
