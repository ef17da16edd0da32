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

from giw.nets.kernels import patch_kernels as kernels
from giw.nets.kernels.patches import (
    _from_one,
    _over_trials,
    _Paste,
    _ToOne,
    _without_ones,
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
        ctx.set_materialize_grads(False)  # the first layer's images are never pushed: no product
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(x, kernel, *output[1:])
        ctx.save_for_forward(x, kernel, *output[1:])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, *_: Any) -> Any:
        if gradient is None:
            return None, None, None, None
        x, kernel, *saved = ctx.saved_tensors
        of_kernel, *of_x = _HalfBack.apply(
            gradient, x, kernel, *saved, ctx.k, ctx.parts, ctx.needs_input_grad[0]
        )
        return of_x[0] if of_x else None, of_kernel, None, None

    @staticmethod
    def jvp(ctx: Any, of_x: Tensor | None, of_kernel: Tensor | None, *_: Any) -> Any:
        x, kernel, which, patches, _ = ctx.saved_tensors
        changes = []
        if of_kernel is not None:
            scale = _power_of_two(1.0, of_kernel)
            windows = torch.bmm(patches, (of_kernel * scale).to(HALF))
            changes.append(_picked(windows, which) / scale)
        if of_x is not None:
            cut = cut_patches(of_x.flatten(0, 1), ctx.k)  # (t n, h, w, width)
            numbers = ctx.k**2 * x.shape[-1]  # beside them stands a one, which does not change
            rows = cut.reshape(len(kernel), -1, cut.shape[-1])[..., :numbers]
            changes.append(_picked(rows @ kernel[:, :numbers], which))
        return sum(changes), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, kernel: Tensor, k: int, parts: int) -> Any:
        return _over_trials(_HalfConv, info, in_dims, (x, kernel), k, parts)


class _HalfBack(torch.autograd.Function):
    """Gradients of kernels and, where asked for, of images."""

    @staticmethod
    def forward(
        gradient: Tensor,
        x: Tensor,
        kernel: Tensor,
        which: Tensor,
        patches: Tensor,
        half: Tensor,
        k: int,
        parts: int,
        of_images: bool,
    ) -> tuple[Tensor, ...]:
        scale = _power_of_two(LARGEST, gradient)  # (t, 1, 1)
        back = move_to_one(gradient.flatten(0, 1), which.flatten(0, 1), HALF, scale.flatten())
        back = back.view(len(x), -1, kernel.shape[-1])  # (t, rows, 4 out)
        of_kernel = _sum_of_products(patches, back, parts) / scale
        if not of_images:
            return (of_kernel,)
        h, w = (x.shape[2] - k) // 2 + 1, (x.shape[3] - k) // 2 + 1
        rows = torch.bmm(back, half.mT).view(-1, h, w, half.shape[1])
        return of_kernel, move_paste(rows, k, x.shape[2], x.shape[3], scale.flatten()).view(x.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:4])
        ctx.k = inputs[6]

    @staticmethod
    def backward(ctx: Any, of_kernel: Tensor, of_x: Tensor | None = None) -> Any:
        # Gradients of gradients, in float32. With C the patches of x, D those of ``of_x`` and Z the
        # gradient set to its places, what is pulled back was Cᵀ Z and the pasted Z Kᵀ.
        gradient, x, kernel, which = ctx.saved_tensors
        cut = cut_patches(x.flatten(0, 1), ctx.k)  # (t n, h, w, width)
        back = _ToOne.apply(gradient.flatten(0, 1), which.flatten(0, 1))
        back = back.reshape(len(kernel), -1, kernel.shape[-1])  # (t, rows, 4 out)
        to_back = cut.reshape(len(kernel), -1, cut.shape[-1]) @ of_kernel
        to_x = _Paste.apply((back @ of_kernel.mT).reshape(cut.shape), ctx.k, *x.shape[2:4])
        to_kernel = None
        if of_x is not None:
            other = _without_ones(cut_patches(of_x.flatten(0, 1), ctx.k), ctx.k)
            other = other.reshape(len(kernel), -1, cut.shape[-1])
            to_back = to_back + other @ kernel
            to_kernel = other.mT @ back
        return _picked(to_back, which), to_x.reshape(x.shape), to_kernel, *[None] * 6

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        return _over_trials(_HalfBack, info, in_dims, inputs[:6], *inputs[6:])


def _power_of_two(largest: float, z: Tensor) -> Tensor:
    """What brings each trial's numbers near ``largest``, without rounding them; (t, 1, 1)."""
    found = torch.linalg.vector_norm(z, torch.inf, dim=(1, 2), keepdim=True)
    return torch.exp2(torch.floor(torch.log2(largest / found.clamp(min=1e-30))))


def _picked(windows: Tensor, which: Tensor) -> Tensor:
    """Of four windows (t, rows, 4 out) the one at its place, (t, rows, out)."""
    found = _from_one(windows.reshape(-1, 4, which.shape[-1]), which.flatten(0, 1))
    return found.float().view(which.shape)


def _sum_of_products(patches: Tensor, back: Tensor, parts: int) -> Tensor:
    """Σ over rows of patchᵀ back in float32, several products at a time; (t, width, 4 out)."""
    cut = [z.unflatten(1, (parts, -1)).flatten(0, 1) for z in (patches, back)]
    found = torch.bmm(cut[0].mT, cut[1], out_dtype=torch.float32)
    return found.unflatten(0, (-1, parts)).sum(1)
