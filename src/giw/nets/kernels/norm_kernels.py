"""Triton kernels of :mod:`giw.nets.kernels.norm_passes`; of no use where Triton is missing."""

from __future__ import annotations

from giw.nets.kernels.launch import jit, tl


@jit
def moments_kernel(
    y_ptr, parts_ptr, rows, size, C: tl.constexpr, CHANNELS: tl.constexpr, ROWS: tl.constexpr
):
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    piece = tl.program_id(1)
    first = piece * size
    # Sums of y and y² would lose the digits of a variance that is small beside the mean. Counted
    # from a number of the piece, the squares are at most n times the variance, n rows in a piece.
    origin = tl.load(y_ptr + first.to(tl.int64) * C + c).to(tl.float32)
    total = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    square = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for start in range(0, size, ROWS):
        row = first + start + tl.arange(0, ROWS)
        at = row.to(tl.int64)[:, None] * C + c[None, :]
        there = (row < rows)[:, None]
        y = tl.load(y_ptr + at, mask=there, other=0.0).to(tl.float32)
        away = tl.where(there, y - origin[None, :], 0.0)
        total += away
        square += away * away
    # a mean and the squares around it, not around zero, are what pieces can be joined by
    whole = tl.sum(total, 0)
    mean = whole / tl.minimum(rows - first, size).to(tl.float32)
    tl.store(parts_ptr + 2 * piece * C + c, origin + mean)
    tl.store(parts_ptr + (2 * piece + 1) * C + c, tl.sum(square, 0) - mean * whole)


@jit
def join_moments_kernel(
    parts_ptr, stats_ptr, running_mean_ptr, running_var_ptr, batches_ptr, rows, size, count,
    momentum, eps, C: tl.constexpr, FEW: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * FEW + tl.arange(0, FEW)
    total = tl.zeros((PIECES, FEW), dtype=tl.float32)
    for start in range(0, count, PIECES):
        piece = start + tl.arange(0, PIECES)
        at = parts_ptr + 2 * piece[:, None] * C + c[None, :]
        members = tl.minimum(rows - piece * size, size).to(tl.float32)
        total += tl.load(at, mask=(piece < count)[:, None], other=0.0) * members[:, None]
    mean = tl.sum(total, 0) / rows
    around = tl.zeros((PIECES, FEW), dtype=tl.float32)
    for start in range(0, count, PIECES):
        piece = start + tl.arange(0, PIECES)
        at = parts_ptr + 2 * piece[:, None] * C + c[None, :]
        there = (piece < count)[:, None]
        members = tl.minimum(rows - piece * size, size).to(tl.float32)
        away = tl.load(at, mask=there, other=0.0) - mean[None, :]
        own = tl.load(at + C, mask=there, other=0.0)
        around += tl.where(there, own + away * away * members[:, None], 0.0)
    squares = tl.sum(around, 0)
    tl.store(stats_ptr + c, mean)
    tl.store(stats_ptr + C + c, 1 / tl.sqrt(squares / rows + eps))
    mean_before = tl.load(running_mean_ptr + c)
    var_before = tl.load(running_var_ptr + c)
    tl.store(running_mean_ptr + c, mean_before + momentum * (mean - mean_before))
    tl.store(running_var_ptr + c, var_before + momentum * (squares / (rows - 1) - var_before))
    if tl.program_id(0) == 0:
        tl.store(batches_ptr, tl.load(batches_ptr) + 1)


@jit
def normalise_kernel(
    y_ptr, shortcut_ptr, out_ptr, stats_ptr, weight_ptr, bias_ptr, rows, C: tl.constexpr,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr, CHANNELS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row.to(tl.int64)[:, None] * C + c[None, :]
    there = (row < rows)[:, None]
    mean, scale = tl.load(stats_ptr + c)[None, :], tl.load(stats_ptr + C + c)[None, :]
    z = (tl.load(y_ptr + at, mask=there, other=0.0).to(tl.float32) - mean) * scale
    z = z * tl.load(weight_ptr + c)[None, :] + tl.load(bias_ptr + c)[None, :]
    if SHORTCUT:
        z += tl.load(shortcut_ptr + at, mask=there, other=0.0).to(tl.float32)
    if RELU:
        z = tl.maximum(z, 0.0)
    tl.store(out_ptr + at, z, mask=there)


@jit
def sums_kernel(
    t_ptr, y_ptr, out_ptr, through_ptr, stats_ptr, weight_ptr, bias_ptr, parts_ptr, rows, size,
    C: tl.constexpr, RELU: tl.constexpr, SHORTCUT: tl.constexpr,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    piece = tl.program_id(1)
    mean, scale = tl.load(stats_ptr + c)[None, :], tl.load(stats_ptr + C + c)[None, :]
    total = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    cross = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for start in range(0, size, ROWS):
        row = piece * size + start + tl.arange(0, ROWS)
        at = row.to(tl.int64)[:, None] * C + c[None, :]
        there = (row < rows)[:, None]
        t = tl.load(t_ptr + at, mask=there, other=0.0).to(tl.float32)
        z = (tl.load(y_ptr + at, mask=there, other=0.0).to(tl.float32) - mean) * scale
        if RELU:
            if SHORTCUT:
                t = tl.where(
                    tl.load(out_ptr + at, mask=there, other=0.0).to(tl.float32) > 0, t, 0.0
                )
                tl.store(through_ptr + at, t, mask=there)
            else:
                on = z * tl.load(weight_ptr + c)[None, :] + tl.load(bias_ptr + c)[None, :] > 0
                t = tl.where(on, t, 0.0)
        total += t
        cross += t * z
    tl.store(parts_ptr + 2 * piece * C + c, tl.sum(total, 0))
    tl.store(parts_ptr + (2 * piece + 1) * C + c, tl.sum(cross, 0))


@jit
def add_up_kernel(
    parts_ptr, total_ptr, count, C: tl.constexpr, FEW: tl.constexpr, PIECES: tl.constexpr
):
    c = tl.program_id(0) * FEW + tl.arange(0, FEW)  # of both sums
    total = tl.zeros((PIECES, FEW), dtype=tl.float32)
    for start in range(0, count, PIECES):
        piece = start + tl.arange(0, PIECES)
        at = parts_ptr + piece[:, None] * (2 * C) + c[None, :]
        total += tl.load(at, mask=(piece < count)[:, None], other=0.0)
    tl.store(total_ptr + c, tl.sum(total, 0))


@jit
def pull_kernel(
    gradient_ptr, y_ptr, out_ptr, stats_ptr, total_ptr, weight_ptr, bias_ptr, rows,
    C: tl.constexpr, CLIP: tl.constexpr, CHANNELS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row.to(tl.int64)[:, None] * C + c[None, :]
    there = (row < rows)[:, None]
    mean, scale = tl.load(stats_ptr + c)[None, :], tl.load(stats_ptr + C + c)[None, :]
    weight = tl.load(weight_ptr + c)[None, :]
    first, second = tl.load(total_ptr + c)[None, :], tl.load(total_ptr + C + c)[None, :]
    z = (tl.load(y_ptr + at, mask=there, other=0.0).to(tl.float32) - mean) * scale
    g = tl.load(gradient_ptr + at, mask=there, other=0.0).to(tl.float32)
    if CLIP:
        g = tl.where(z * weight + tl.load(bias_ptr + c)[None, :] > 0, g, 0.0)
    tl.store(out_ptr + at, weight * scale * (g - (first + z * second) / rows), mask=there)


@jit
def push_kernel(
    t_ptr, y_ptr, out_ptr, shortcut_ptr, found_ptr, stats_ptr, total_ptr, weight_ptr, bias_ptr,
    of_weight_ptr, of_bias_ptr, rows, C: tl.constexpr, SHORTCUT: tl.constexpr, RELU: tl.constexpr,
    OUT: tl.constexpr, CHANNELS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row.to(tl.int64)[:, None] * C + c[None, :]
    there = (row < rows)[:, None]
    mean, scale = tl.load(stats_ptr + c)[None, :], tl.load(stats_ptr + C + c)[None, :]
    weight = tl.load(weight_ptr + c)[None, :]
    first, second = tl.load(total_ptr + c)[None, :], tl.load(total_ptr + C + c)[None, :]
    z = (tl.load(y_ptr + at, mask=there, other=0.0).to(tl.float32) - mean) * scale
    t = tl.load(t_ptr + at, mask=there, other=0.0).to(tl.float32)
    t = weight * scale * (t - (first + z * second) / rows)
    t += z * tl.load(of_weight_ptr + c)[None, :] + tl.load(of_bias_ptr + c)[None, :]
    if SHORTCUT:
        t += tl.load(shortcut_ptr + at, mask=there, other=0.0).to(tl.float32)
    if RELU:
        if OUT:
            on = tl.load(out_ptr + at, mask=there, other=0.0).to(tl.float32) > 0
        else:
            on = z * weight + tl.load(bias_ptr + c)[None, :] > 0
        t = tl.where(on, t, 0.0)
    tl.store(found_ptr + at, t, mask=there)
