"""Triton kernels of :mod:`giw.weights.fused`; plain functions of no use where Triton is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for CPU comes without it
    triton = None

AVAILABLE = triton is not None


def jit(function: Callable[..., Any]) -> Any:
    """Hand a function to Triton."""
    return triton.jit(function) if AVAILABLE else function


@jit
def _squares(x_rows, x_ptr, columns, n):  # (N, B) squared distances
    x_columns = tl.load(x_ptr + columns, mask=columns < n, other=0.0)
    gap = x_rows[:, None] - x_columns[None, :]
    return gap * gap


@jit
def _count(x_rows, x_ptr, rows, n, most, N: tl.constexpr, B: tl.constexpr):
    """Pairs i < j whose squared distance, as an integer, is at most ``most``."""
    found = tl.zeros((N, B), dtype=tl.int32)
    for start in range(0, N, B):
        columns = start + tl.arange(0, B)
        bits = _squares(x_rows, x_ptr, columns, n).to(tl.int32, bitcast=True)
        pair = (rows[:, None] < columns[None, :]) & (columns < n)[None, :]
        found += tl.where(pair & (bits <= most), 1, 0)
    return tl.sum(tl.sum(found, axis=1), axis=0)


@jit
def _spread(x_rows, x_ptr, rows, n, N: tl.constexpr, B: tl.constexpr):
    """Median distance of pairs; the root mean square where it is zero; zero if rounding."""
    pairs = n * (n - 1) // 2
    # floats that are not negative are ordered as their bits are
    least, most = 0, 0x7F800000
    for _ in range(31):
        middle = least + (most - least) // 2
        enough = _count(x_rows, x_ptr, rows, n, middle, N, B) > (pairs - 1) // 2
        most = tl.where(enough, middle, most)
        least = tl.where(enough, least, tl.minimum(middle + 1, most))
    up_to_here = _count(x_rows, x_ptr, rows, n, most, N, B)
    following = tl.full((N, B), 0x7F800000, dtype=tl.int32)
    total = tl.zeros((N, B), dtype=tl.float32)
    for start in range(0, N, B):
        columns = start + tl.arange(0, B)
        squares = _squares(x_rows, x_ptr, columns, n)
        bits = squares.to(tl.int32, bitcast=True)
        pair = (rows[:, None] < columns[None, :]) & (columns < n)[None, :]
        following = tl.where(pair & (bits > most), tl.minimum(following, bits), following)
        total += tl.where(pair, squares, 0.0)
    after = tl.min(tl.min(following, axis=1), axis=0)
    after = tl.where(up_to_here > pairs // 2, most, after)
    lower = tl.sqrt(most.to(tl.float32, bitcast=True))
    median = 0.5 * (lower + tl.sqrt(after.to(tl.float32, bitcast=True)))
    mean_square = tl.sum(tl.sum(total, axis=1), axis=0) / pairs
    spread = tl.where(median > 0, median, tl.sqrt(mean_square))
    rounding = 1.1920929e-06 * tl.sqrt(tl.sum(x_rows * x_rows, axis=0) / n)
    return tl.where(spread > rounding, spread, 0.0)


@jit
def _kernel(x_rows, x_ptr, rows, columns, n, gamma, ridge):
    """Kernel matrix with its ridge; zero beyond the problem's size."""
    value = tl.exp(-gamma * _squares(x_rows, x_ptr, columns, n))
    value += tl.where(rows[:, None] == columns[None, :], ridge, 0.0)
    return tl.where((rows < n)[:, None] & (columns < n)[None, :], value, 0.0)


@jit
def solve(
    x_ptr, v_ptr, member_ptr, matrix_ptr, vector_ptr, out_ptr,
    n, m, width, ridge, upper, low, high, n_steps,
    RULE: tl.constexpr, N: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    problem = tl.program_id(0)
    x_ptr += problem * n
    v_ptr += problem * m
    member_ptr += problem * m
    vector_ptr += problem * N
    matrix_ptr += problem * N * (N // 2)
    HALF: tl.constexpr = N // 2
    rows = tl.arange(0, N)
    real = rows < n
    x = tl.load(x_ptr + rows, mask=real, other=0.0)  # (N,)

    spread = _spread(x, x_ptr, rows, n, N, B)
    if RULE == 0:
        safe = tl.where(spread > 0, spread, 1.0)
        gamma = 0.5 / (safe * safe)
    elif RULE == 1:
        gamma = spread
    else:
        gamma = 0.5 / (width * width) + 0.0 * spread

    kappa = tl.zeros((N,), dtype=tl.float32)
    members = 0.0
    for start in range(0, m, B):
        columns = start + tl.arange(0, B)
        member = tl.load(member_ptr + columns, mask=columns < m, other=0.0)
        v = tl.load(v_ptr + columns, mask=columns < m, other=0.0)
        gap = x[:, None] - v[None, :]
        kappa += tl.sum(tl.exp(-gamma * gap * gap) * member[None, :], axis=1)
        members += tl.sum(member, axis=0)
    kappa = tl.where(real, n * kappa / tl.where(members > 0, members, 1.0), 0.0)

    # half of the matrix stays in registers, the other half is read from cache in every step
    left_columns = tl.arange(0, HALF)
    left = _kernel(x, x_ptr, rows, left_columns, n, gamma, ridge)  # (N, N / 2)
    row_sum = tl.sum(left, axis=1)
    for start in tl.static_range(0, HALF, B):
        columns = start + tl.arange(0, B)
        right = _kernel(x, x_ptr, rows, HALF + columns, n, gamma, ridge)
        tl.store(matrix_ptr + rows[:, None] * HALF + columns[None, :], right)
        row_sum += tl.sum(right, axis=1)
    inverse = tl.where(real, 1.0 / tl.where(real, row_sum, 1.0), 0.0)
    rate = 0.5 / tl.sum(inverse, axis=0)
    lowest = rate * low
    highest = rate * high

    dual = 0.0 * rate
    w = tl.where(real, 1.0, 0.0)
    point = w
    momentum = 1.0
    for _ in range(n_steps):
        tl.debug_barrier()  # everyone has read the last point
        tl.store(vector_ptr + rows, point)
        tl.debug_barrier()
        product = tl.sum(left * tl.load(vector_ptr + left_columns)[None, :], axis=1)
        rest = tl.zeros((N, B), dtype=tl.float32)
        for start in tl.static_range(0, HALF, B):
            columns = start + tl.arange(0, B)
            right = tl.load(matrix_ptr + rows[:, None] * HALF + columns[None, :])
            rest += right * tl.load(vector_ptr + HALF + columns)[None, :]
        gradient = product + tl.sum(rest, axis=1) - kappa
        raised = dual + rate * tl.sum(point, axis=0)
        dual = raised - tl.minimum(tl.maximum(raised, lowest), highest)
        moved = tl.minimum(tl.maximum(point - (gradient + dual) * inverse, 0.0), upper)
        moved = tl.where(real, moved, 0.0)
        following = (1.0 + tl.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        point = moved + (momentum - 1.0) / following * (moved - w)
        w = moved
        momentum = following
    mean = tl.sum(w, axis=0) / n
    usable = (members > 0) & (spread > 0) & (mean > 0)
    weight = tl.where(usable, w / tl.where(usable, mean, 1.0), 1.0)
    tl.store(out_ptr + problem * n + rows, weight, mask=real)
