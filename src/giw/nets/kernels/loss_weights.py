"""Kernel mean matching of loss values in one CUDA kernel.

Sixty accelerated gradient steps are some seven hundred launches of tiny kernels, more than the rest
of a training step. Here one thread block solves one problem from losses to weights: the median
distance by bisection on the bits of a float, the kernel matrix half in registers and half in cache,
all steps without leaving the kernel. The numbers are those of
:func:`giw.objective.dynamic_kmm`, up to rounding.

Needs Triton, which comes with torch for CUDA; without it nothing here is used.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from giw.nets.kernels import loss_weights_kernel as kernels
from giw.nets.kernels.launch import reaches
from giw.objective.in_step_weights import ask_first

LARGEST = 256  # training points: the kernel matrix must fit one multiprocessor
WARPS = 8


def suits(x_train: Tensor, x_val: Tensor) -> bool:
    """Whether the fused kernel can take over: losses on CUDA, a batch of usual size."""
    return (
        reaches(x_train)
        and x_train.dtype == torch.float32
        and x_train.shape[-1] == 1
        and 2 <= x_train.shape[-2] <= LARGEST
        and x_val.shape[-2] >= 1
    )


def fused_loss_weights(
    x_train: Tensor,  # (..., n, 1)
    x_val: Tensor,  # (..., m, 1)
    val_weight: Tensor,  # (..., m)
    *,
    bandwidth: str | float,
    ridge: float,
    upper: float,
    n_steps: int,
) -> Tensor | None:  # (..., n)
    """Weights of mean one, as :func:`giw.objective.dynamic_kmm` gives them; None if it cannot."""
    if not suits(x_train, x_val):
        return None
    x_train, x_val = x_train[..., 0], x_val[..., 0]
    shape = torch.broadcast_shapes(x_train.shape[:-1], x_val.shape[:-1], val_weight.shape[:-1])

    def flat(z: Tensor) -> Tensor:
        return z.expand(*shape, z.shape[-1]).reshape(-1, z.shape[-1])

    width = 0.0 if bandwidth == "median" else float(bandwidth)
    weight = _LossWeights.apply(
        flat(x_train), flat(x_val), flat(val_weight), width, ridge, upper, n_steps
    )
    return weight.reshape(*shape, -1)


class _LossWeights(torch.autograd.Function):
    """Weights of p problems at a time, without gradient; more problems under vmap."""

    @staticmethod
    def forward(
        x_train: Tensor,  # (p, n)
        x_val: Tensor,  # (p, m)
        val_weight: Tensor,  # (p, m)
        width: float,  # zero stands for the median distance
        ridge: float,
        upper: float,
        n_steps: int,
    ) -> Tensor:  # (p, n)
        problems, n = x_train.shape
        x_train = x_train.contiguous()
        out = torch.empty_like(x_train)
        matrix = x_train.new_empty(problems, LARGEST, LARGEST // 2)
        vector = x_train.new_empty(problems, LARGEST)
        low, high = math.sqrt(n), 2 * n - math.sqrt(n)  # of the sum of weights
        kernels.solve[(problems,)](
            x_train, x_val.contiguous(), val_weight.contiguous(), matrix, vector, out,
            n, x_val.shape[1], width, ridge, upper, low, high, n_steps,
            MEDIAN=width == 0, N=LARGEST, B=LARGEST // 8, num_warps=WARPS,
        )  # fmt: skip
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, _: Any) -> Any:
        return (None,) * 7

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


ask_first(fused_loss_weights)
