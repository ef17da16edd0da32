"""Convolution, ReLU and pooling with half the bytes, at the precision of TF32.

TF32 products round their operands to eleven bits and read thirty-two. Half precision holds eleven
bits too, so that patches and windows lose nothing in sixteen: what it lacks is range. Pixels,
activations and kernels have no need of it; gradients do, and are scaled by a power of two per trial
before they are rounded, and back after they are summed, in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from giw.training import patch_kernels as kernels
from giw.training.patches import (
    _over_trials,
    _Paste,
    _ToOne,
    cut_patches,
    move_best,
    move_cut,
    move_paste,
    move_to_one,
)

HALF = torch.float16
LARGEST = 64.0  # of a scaled gradient: a thousandfold sum of such is still in range


def suits(x: Tensor) -> bool:
    """Whether products may be rounded to TF32, on a device with Triton."""
    return (
        kernels.AVAILABLE
        and x.is_cuda
        and x.dtype == torch.float32
        and torch.backends.cuda.matmul.allow_tf32
        and not torch.is_autocast_enabled()
    )


def half_conv(x: Tensor, kernel: Tensor, k: int, parts: int) -> Tensor:
    """Best of four windows and of zero.

    Parameters
    ----------
    x : Tensor of shape (n, height, width, channels)
    kernel : Tensor of shape (numbers in a patch and beside it, 4 out)
    k : int
    parts : int
        Divides n: so many products make up the kernel's gradient.

    Returns
    -------
    Tensor of shape (rows, out), one row for each patch
    """
    return _HalfConv.apply(x[None], kernel[None], k, parts)[0][0]


class _HalfConv(torch.autograd.Function):
    """Images (t, n, height, width, c) and kernels (t, width, 4 out) to (t, rows, out)."""

    @staticmethod
    def forward(x: Tensor, kernel: Tensor, k: int, parts: int) -> tuple[Tensor, ...]:
        trials, width, four_out = kernel.shape
        half = kernel.to(HALF)
        patches = move_cut(x.flatten(0, 1), k, HALF).view(trials, -1, width)
        windows = torch.bmm(patches, half)  # (t, rows, 4 out)
        best, which = move_best(windows.view(-1, 4, four_out // 4))
        shape = (trials, -1, four_out // 4)
        return best.view(shape), which.view(shape), patches, half

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, kernel, ctx.k, ctx.parts = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(x, kernel, *output[1:])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Any) -> Any:
        x, kernel, which, patches, half = ctx.saved_tensors
        if torch.is_grad_enabled():  # gradients of gradients go the long way, in float32
            return *_long_way(x, kernel, which, gradient, ctx.k), None, None
        largest = torch.linalg.vector_norm(gradient, torch.inf, dim=(1, 2))  # (t,)
        scale = torch.exp2(torch.floor(torch.log2(LARGEST / largest.clamp(min=1e-30))))
        back = move_to_one(gradient.flatten(0, 1), which.flatten(0, 1), HALF, scale)
        back = back.view(len(x), -1, kernel.shape[-1])  # (t, rows, 4 out)
        of_kernel = _sum_of_products(patches, back, ctx.parts) / scale[:, None, None]
        of_x = None
        if ctx.needs_input_grad[0]:
            h, w = (x.shape[2] - ctx.k) // 2 + 1, (x.shape[3] - ctx.k) // 2 + 1
            rows = torch.bmm(back, half.mT).view(-1, h, w, half.shape[1])
            of_x = move_paste(rows, ctx.k, x.shape[2], x.shape[3], scale).view(x.shape)
        return of_x, of_kernel, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, kernel: Tensor, k: int, parts: int) -> Any:
        return _over_trials(_HalfConv, info, in_dims, (x, kernel), k, parts)


def _sum_of_products(patches: Tensor, back: Tensor, parts: int) -> Tensor:
    """Σ over rows of patchᵀ back in float32, several products at a time; (t, width, 4 out)."""
    cut = [z.unflatten(1, (parts, -1)).flatten(0, 1) for z in (patches, back)]
    found = torch.bmm(cut[0].mT, cut[1], out_dtype=torch.float32)
    return found.unflatten(0, (-1, parts)).sum(1)


def _long_way(
    x: Tensor, kernel: Tensor, which: Tensor, gradient: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """Gradients of images and kernels by operations that can be differentiated again."""
    trials, width, four_out = kernel.shape
    cut = cut_patches(x.flatten(0, 1), k)  # (t n, h, w, width)
    back = _ToOne.apply(gradient.flatten(0, 1), which.flatten(0, 1)).reshape(trials, -1, four_out)
    of_kernel = cut.reshape(trials, -1, width).mT @ back
    of_cut = (back @ kernel.mT).reshape(cut.shape)
    return _Paste.apply(of_cut, k, *x.shape[2:4]).reshape(x.shape), of_kernel
