"""Triton kernel of :mod:`giw.nets.kernels.loss_weights`."""

from __future__ import annotations

from giw.nets.kernels.launch import jit, tl


@jit
def up_to(sorted_ptr, x, rows, n, most, N: tl.constexpr):
    """For each row, how many later rows lie within a squared distance, whose bits are ``most``."""
    least = rows  # the last row known to be within
    beyond = tl.zeros_like(rows) + n  # the first row known to be beyond
    beyond = tl.maximum(beyond, rows + 1)
    for _ in tl.static_range(8):  # a search among at most 256 rows
        middle = (least + beyond) // 2
        other = tl.load(sorted_ptr + middle, mask=middle < n, other=0.0)
        gap = other - x
        near = ((gap * gap).to(tl.int32, bitcast=True) <= most) & (middle < n)
        least = tl.where(near, middle, least)
        beyond = tl.where(near, beyond, tl.maximum(middle, least + 1))
    return tl.where(rows < n, least - rows, 0)


@jit
def median_distance(sorted_ptr, x, rows, n, N: tl.constexpr):
    """Median distance of pairs of sorted numbers.

    Floats that are not negative are ordered as their bits are, so the middle pair is found by
    bisection on the bits; that rounding keeps the order lets each count be a search.
    """
    pairs = n * (n - 1) // 2
    least = 0
    most = 0x7F800000  # infinity
    for _ in range(31):
        middle = least + (most - least) // 2
        enough = tl.sum(up_to(sorted_ptr, x, rows, n, middle, N), axis=0) > (pairs - 1) // 2
        most = tl.where(enough, middle, most)
        least = tl.where(enough, least, tl.minimum(middle + 1, most))
    within = up_to(sorted_ptr, x, rows, n, most, N)
    following = rows + within + 1
    gap = tl.load(sorted_ptr + following, mask=following < n, other=float("inf")) - x
    after = tl.min(tl.where(rows < n, gap * gap, float("inf")), axis=0)
    here = most.to(tl.float32, bitcast=True)
    after = tl.where(tl.sum(within, axis=0) > pairs // 2, here, after)
    return 0.5 * (tl.sqrt(here) + tl.sqrt(after))


@jit
def kernel_block(x, x_ptr, rows, columns, n, gamma, ridge):
    """Columns of the kernel matrix with its ridge; zero beyond the problem's size."""
    other = tl.load(x_ptr + columns, mask=columns < n, other=0.0)
    gap = x[:, None] - other[None, :]
    value = tl.exp(-gamma * gap * gap)
    value += tl.where(rows[:, None] == columns[None, :], ridge, 0.0)
    return tl.where((rows < n)[:, None] & (columns < n)[None, :], value, 0.0)


@jit
def solve(
    x_ptr, v_ptr, member_ptr, matrix_ptr, vector_ptr, out_ptr,
    n, m, width, ridge, upper, low, high, n_steps,
    MEDIAN: tl.constexpr, N: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """One problem, from losses to weights. N is 256 and B is 32."""
    problem = tl.program_id(0)
    x_ptr += problem * n
    v_ptr += problem * m
    member_ptr += problem * m
    vector_ptr += problem * N
    matrix_ptr += problem * (N * N // 2)
    rows = tl.arange(0, N)
    real = rows < n
    x = tl.load(x_ptr + rows, mask=real, other=0.0)  # (N,)
    # Σ over pairs of squared distances = n Σ (x − mean)²
    away = tl.where(real, x - tl.sum(x, axis=0) / n, 0.0)
    spread = tl.sqrt(2 * tl.sum(away * away, axis=0) / (n - 1))
    if MEDIAN:
        ordered = tl.sort(tl.where(real, x, float("inf")))
        tl.store(vector_ptr + rows, ordered)
        tl.debug_barrier()  # everyone can look up everyone's number
        median = median_distance(vector_ptr, tl.where(real, ordered, 0.0), rows, n, N)
        spread = tl.where(median > 0, median, spread)
    rounding = 1.1920929e-06 * tl.sqrt(tl.sum(x * x, axis=0) / n)
    spread = tl.where(spread > rounding, spread, 0.0)
    if MEDIAN:
        safe = tl.where(spread > 0, spread, 1.0)
        gamma = 0.5 / (safe * safe)
    else:
        gamma = 0.5 / (width * width) + 0.0 * spread

    kappa = tl.zeros((N,), dtype=tl.float32)
    members = 0.0
    block = tl.arange(0, B)
    for start in range(0, m, B):
        columns = start + block
        member = tl.load(member_ptr + columns, mask=columns < m, other=0.0)
        v = tl.load(v_ptr + columns, mask=columns < m, other=0.0)
        gap = x[:, None] - v[None, :]
        kappa += tl.sum(tl.exp(-gamma * gap * gap) * member[None, :], axis=1)
        members += tl.sum(member, axis=0)
    kappa = tl.where(real, n * kappa / tl.where(members > 0, members, 1.0), 0.0)

    # half of the matrix stays in registers, the other half is read from cache in every step
    k0 = kernel_block(x, x_ptr, rows, 0 * B + block, n, gamma, ridge)  # (N, B)
    k1 = kernel_block(x, x_ptr, rows, 1 * B + block, n, gamma, ridge)
    k2 = kernel_block(x, x_ptr, rows, 2 * B + block, n, gamma, ridge)
    k3 = kernel_block(x, x_ptr, rows, 3 * B + block, n, gamma, ridge)
    total = k0 + k1 + k2 + k3
    within = rows[:, None] * B + block[None, :]
    for part in tl.static_range(4):
        right = kernel_block(x, x_ptr, rows, (4 + part) * B + block, n, gamma, ridge)
        tl.store(matrix_ptr + part * N * B + within, right)
        total += right
    row_sum = tl.sum(total, axis=1)
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
        total = k0 * tl.load(vector_ptr + 0 * B + block)[None, :]
        total += k1 * tl.load(vector_ptr + 1 * B + block)[None, :]
        total += k2 * tl.load(vector_ptr + 2 * B + block)[None, :]
        total += k3 * tl.load(vector_ptr + 3 * B + block)[None, :]
        for part in tl.static_range(4):
            right = tl.load(matrix_ptr + part * N * B + within)
            total += right * tl.load(vector_ptr + (4 + part) * B + block)[None, :]
        gradient = tl.sum(total, axis=1) - kappa
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
