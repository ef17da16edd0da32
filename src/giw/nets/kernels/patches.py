"""Cutting images into patches and taking the best of four, with and without Triton.

Both are pure movement of numbers. On CUDA, torch's general kernels move them at a fraction of the
memory's speed, so each has a Triton kernel; everywhere else torch's own operations serve. All
four operations are linear in what is differentiated, and each one's derivative is another of them,
so that gradients of gradients work too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from giw.nets.kernels import patch_kernels as kernels
from giw.nets.kernels.patch_kernels import reaches


def beside(numbers: int) -> int:
    """Columns beside a patch: a one, for the bias, and zeros up to a multiple of eight.

    Tensor cores want rows that are so aligned.
    """
    return 8 - numbers % 8


def cut_patches(x: Tensor, k: int) -> Tensor:
    """All patches of k × k with stride two, a one beside each.

    (n, height, width, c) → (n, h, w, k² c + ``beside(k² c)``), for k of at least 3.
    """
    if reaches(x) and x.dtype == torch.float32:
        return _Cut.apply(x, k)
    patches = x.unfold(1, k, 2).unfold(2, k, 2)  # (n, h, w, c, k, k)
    patches = patches.permute(0, 1, 2, 4, 5, 3).flatten(3)
    extra = beside(patches.shape[-1])
    return pad(pad(patches, (0, 1), value=1.0), (0, extra - 1))


def best_of_four(windows: Tensor) -> Tensor:
    """Largest of four and of zero: (rows, 4, out) → (rows, out)."""
    if reaches(windows) and windows.dtype == torch.float32:
        return _Best.apply(windows)[0]
    return windows.max(dim=-2).values.relu()


class _Cut(torch.autograd.Function):
    """Patches of images."""

    @staticmethod
    def forward(x: Tensor, k: int) -> Tensor:
        n, height, width, c = x.shape
        h, w = (height - k) // 2 + 1, (width - k) // 2 + 1
        extra = beside(k * k * c)
        out = torch.empty(n, h, w, k * k * c + extra, device=x.device)
        tiles = (_blocks(n * h * w, 32), _blocks(k * k * c + extra, 128))
        kernels.cut_kernel[tiles](
            x, out, n * h * w, *x.stride(),
            H=h, W=w, C=c, K=k, EXTRA=extra, ROWS=32, COLUMNS=128, num_warps=4,
        )  # fmt: skip
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.k = inputs
        ctx.size = x.shape[1:3]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Paste.apply(gradient, ctx.k, *ctx.size), None

    @staticmethod
    def jvp(ctx: Any, change: Tensor, *_: Any) -> Tensor:
        return _without_ones(_Cut.apply(change, ctx.k), ctx.k)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, k: int) -> Any:
        return _over_trials(_Cut, info, in_dims, (x,), k)


class _Paste(torch.autograd.Function):
    """Patches added up where they came from: the transpose of cutting."""

    @staticmethod
    def forward(patches: Tensor, k: int, height: int, width: int) -> Tensor:
        n, h, w, size = patches.shape
        c, block = size // (k * k), 1024
        out = torch.empty(n, height, width, c, device=patches.device)
        kernels.paste_kernel[(_blocks(out.numel(), block),)](
            patches.contiguous(), out, out.numel(), HEIGHT=height, WIDTH=width, H=h, W=w, C=c, K=k,
            EXTRA=size - k * k * c, BLOCK=block, num_warps=8,
        )  # fmt: skip
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        # pasting drops the columns beside a patch, so nothing comes back to them: not even the one
        return _without_ones(_Cut.apply(gradient, ctx.k), ctx.k), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, patches: Tensor, k: int, height: int, width: int) -> Any:
        return _over_trials(_Paste, info, in_dims, (patches,), k, height, width)


class _Best(torch.autograd.Function):
    """The largest of four and of zero, and its place; 4 stands for zero."""

    @staticmethod
    def forward(windows: Tensor) -> tuple[Tensor, Tensor]:
        rows, _, out = windows.shape
        best = torch.empty(rows, out, device=windows.device)
        which = torch.empty(rows, out, dtype=torch.uint8, device=windows.device)
        kernels.best_kernel[(_blocks(rows * out, 1024),)](
            windows.contiguous(), best, which, rows * out, OUT=out, BLOCK=1024, num_warps=4
        )
        return best, which

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> Any:
        return _ToOne.apply(gradient, *ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, change: Tensor) -> Any:
        return _from_one(change, *ctx.saved_tensors), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, windows: Tensor) -> Any:
        return _over_trials(_Best, info, in_dims, (windows,))


class _ToOne(torch.autograd.Function):
    """Each value at its place among four, zeros at the others."""

    @staticmethod
    def forward(value: Tensor, which: Tensor) -> Tensor:
        rows, out = value.shape
        windows = torch.empty(rows, 4, out, device=value.device)
        kernels.to_one_kernel[(_blocks(rows * out, 1024),)](
            value.contiguous(), which, windows, rows * out, OUT=out, BLOCK=1024, num_warps=4
        )
        return windows

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _from_one(gradient, *ctx.saved_tensors), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, value: Tensor, which: Tensor) -> Any:
        return _over_trials(_ToOne, info, in_dims, (value, which))


def _from_one(windows: Tensor, which: Tensor) -> Tensor:
    """What stands at its place among four, nothing at place 4: (rows, 4, out) → (rows, out)."""
    place = which.long().clamp(max=3)[:, None]
    return windows.gather(1, place)[:, 0] * (which < 4)


def _without_ones(patches: Tensor, k: int) -> Tensor:
    """Zeros in all columns beside a patch: the one there is a constant."""
    extra = patches.shape[-1] % (k * k)  # at most eight, and k² is at least nine
    return pad(patches[..., :-extra], (0, extra))


def _over_trials(
    operation: Any, info: Any, in_dims: Any, tensors: tuple[Tensor, ...], *settings: int
) -> tuple[Any, Any]:
    """Every operation here works row by row, so trials are just more rows."""
    flat = [
        (z.expand(info.batch_size, *z.shape) if dim is None else z.movedim(dim, 0)).flatten(0, 1)
        for z, dim in zip(tensors, in_dims, strict=False)
    ]
    out = operation.apply(*flat, *settings)
    if isinstance(out, tuple):
        return tuple(z.unflatten(0, (info.batch_size, -1)) for z in out), (0,) * len(out)
    return out.unflatten(0, (info.batch_size, -1)), 0


def _blocks(size: int, block: int) -> int:
    return -(-size // block)
