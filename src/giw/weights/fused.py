"""Kernel mean matching of loss values in one CUDA kernel.

Sixty accelerated gradient steps are some seven hundred launches of tiny kernels, more than the rest
of a training step. Here one thread block solves one problem from losses to weights: the median
distance by bisection on the bits of a float, the kernel matrix half in registers and half in cache,
all steps without leaving the kernel. The numbers are those of
:func:`giw.objective.dynamic_kmm`, up to rounding.

Needs Triton, which comes with torch for CUDA; without it nothing here is used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from giw.weights import fused_kernels as kernels
from giw.weights.quadratic import sum_bounds

LARGEST = 256  # training points: the kernel matrix must fit one multiprocessor
RULES = {"median": 0, "paper": 1}
WIDTH = 2
WARPS = 8


def suits(x_train: Tensor, x_val: Tensor) -> bool:
    """Whether the fused kernel can take over: losses on CUDA, a batch of usual size."""
    return (
        kernels.AVAILABLE
        and (x_train.is_cuda or kernels.INTERPRETED)
        and x_train.dtype == torch.float32
        and x_train.shape[-1] == 1
        and 2 <= x_train.shape[-2] <= LARGEST
        and x_val.shape[-2] >= 1
    )


def fused_loss_weights(
    x_train: Tensor,  # (..., n)
    x_val: Tensor,  # (..., m)
    val_weight: Tensor,  # (..., m)
    *,
    bandwidth: str | float,
    ridge: float,
    upper: float,
    n_steps: int,
) -> Tensor:  # (..., n)
    """Weights of mean one, as :func:`giw.objective.dynamic_kmm` gives them."""
    shape = torch.broadcast_shapes(x_train.shape[:-1], x_val.shape[:-1], val_weight.shape[:-1])

    def flat(z: Tensor) -> Tensor:
        return z.expand(*shape, z.shape[-1]).reshape(-1, z.shape[-1])

    rule, width = (RULES[bandwidth], 0.0) if isinstance(bandwidth, str) else (WIDTH, bandwidth)
    weight = _LossWeights.apply(
        flat(x_train), flat(x_val), flat(val_weight), rule, width, ridge, upper, n_steps
    )
    return weight.reshape(*shape, -1)


class _LossWeights(torch.autograd.Function):
    """Weights of p problems at a time, without gradient; more problems under vmap."""

    @staticmethod
    def forward(
        x_train: Tensor,  # (p, n)
        x_val: Tensor,  # (p, m)
        val_weight: Tensor,  # (p, m)
        rule: int,
        width: float,
        ridge: float,
        upper: float,
        n_steps: int,
    ) -> Tensor:  # (p, n)
        problems, n = x_train.shape
        x_train = x_train.contiguous()
        out = torch.empty_like(x_train)
        matrix = x_train.new_empty(problems, LARGEST, LARGEST // 2)
        vector = x_train.new_empty(problems, LARGEST)
        low, high = sum_bounds(n)
        kernels.solve[(problems,)](
            x_train, x_val.contiguous(), val_weight.contiguous(), matrix, vector, out,
            n, x_val.shape[1], width, ridge, upper, low, high, n_steps,
            RULE=rule, N=LARGEST, B=LARGEST // 8, num_warps=WARPS,
        )  # fmt: skip
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, _: Any) -> Any:
        return (None,) * 8

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        flat = [
            (z.expand(info.batch_size, *z.shape) if dim is None else z.movedim(dim, 0)).flatten(
                0, 1
            )
            for z, dim in zip(args[:3], in_dims, strict=False)
        ]
        weight = _LossWeights.apply(*flat, *args[3:])
        return weight.unflatten(0, (info.batch_size, -1)), 0
