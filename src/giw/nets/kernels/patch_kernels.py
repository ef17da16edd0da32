"""Triton kernels of :mod:`giw.nets.kernels.patches`, and which tensors they can read.

Under ``TRITON_INTERPRET=1`` kernels run as Python on tensors in the host's memory: that is how
they are tested without a GPU (``make test-kernels``).
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for CPU comes without it
    triton = tl = None

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def jit(function):
    """Hand a function to Triton; without Triton it is of no use."""
    return function if triton is None else triton.jit(function)


def reaches(x: Tensor) -> bool:
    """Whether kernels can read a tensor: they are started on the current GPU."""
    if triton is None:
        return False
    return INTERPRETED or (x.is_cuda and x.device.index == torch.cuda.current_device())


@jit
def cut_kernel(
    x_ptr, out_ptr, rows, stride_n, stride_y, stride_x, stride_c,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, EXTRA: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # a patch
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)  # a number in it
    image, place = row // (H * W), row % (H * W)
    corner = (
        image.to(tl.int64) * stride_n + (place // W) * 2 * stride_y + (place % W) * 2 * stride_x
    )
    pixel = column // C
    within = (pixel // K) * stride_y + (pixel % K) * stride_x + (column % C) * stride_c
    size: tl.constexpr = K * K * C
    inside = (row < rows)[:, None] & (column < size)[None, :]
    value = tl.load(x_ptr + corner[:, None] + within[None, :], mask=inside, other=0.0)
    value += tl.where(column == size, 1.0, 0.0)[None, :]
    target = row.to(tl.int64)[:, None] * (size + EXTRA) + column[None, :]
    tl.store(out_ptr + target, value, mask=(row < rows)[:, None] & (column < size + EXTRA)[None, :])


@jit
def paste_kernel(
    patches_ptr, out_ptr, size,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    C: tl.constexpr, K: tl.constexpr, EXTRA: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # a number of an image
    c = at % C
    x = (at // C) % WIDTH
    y = (at // (C * WIDTH)) % HEIGHT
    image = (at // (C * WIDTH * HEIGHT)).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for up in tl.static_range((K + 1) // 2):  # patches that hold this pixel, row by row
        i = y // 2 - up
        a = y - 2 * i
        for left in tl.static_range((K + 1) // 2):
            j = x // 2 - left
            b = x - 2 * j
            inside = (at < size) & (i >= 0) & (i < H) & (j >= 0) & (j < W) & (a < K) & (b < K)
            source = ((image * H + i) * W + j) * (K * K * C + EXTRA) + (a * K + b) * C + c
            total += tl.load(patches_ptr + source, mask=inside, other=0.0)
    tl.store(out_ptr + at, total, mask=at < size)


@jit
def best_kernel(windows_ptr, best_ptr, which_ptr, size, OUT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = at < size
    first = (at // OUT).to(tl.int64) * (4 * OUT) + at % OUT
    best = tl.load(windows_ptr + first, mask=real, other=0.0)
    which = tl.zeros((BLOCK,), dtype=tl.int32)
    for place in tl.static_range(1, 4):
        value = tl.load(windows_ptr + first + place * OUT, mask=real, other=0.0)
        better = value > best
        best = tl.where(better, value, best)
        which = tl.where(better, place, which)
    which = tl.where(best > 0, which, 4)
    tl.store(best_ptr + at, tl.maximum(best, 0.0), mask=real)
    tl.store(which_ptr + at, which.to(tl.uint8), mask=real)


@jit
def to_one_kernel(value_ptr, which_ptr, windows_ptr, size, OUT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = at < size
    first = (at // OUT).to(tl.int64) * (4 * OUT) + at % OUT
    value = tl.load(value_ptr + at, mask=real, other=0.0)
    which = tl.load(which_ptr + at, mask=real, other=0).to(tl.int32)
    for place in tl.static_range(4):
        here = tl.where(which == place, value, 0.0)
        tl.store(windows_ptr + first + place * OUT, here, mask=real)
