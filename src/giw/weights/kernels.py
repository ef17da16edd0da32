"""Squared distances, median distances and evenly spread rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_rows

Array = NDArray[np.float64]
MOST_MEDIAN_POINTS = 2_000  # 2 million pairs: the median is then known to about 0.1 %


def pair_squares(x: Array, y: Array) -> Array:
    """Squared distances of (..., n, d) and (..., m, d), unchecked, (..., n, m)."""
    if x.shape[-1] == 1:
        return np.square(x - y.swapaxes(-1, -2))
    # ‖x‖² + ‖y‖² − 2xᵀy loses digits far from the origin, so the origin moves to the points
    center = y.mean(-2, keepdims=True)  # (..., 1, d)
    x, y = x - center, y - center
    squares = x @ y.swapaxes(-1, -2)
    squares *= -2
    squares += np.square(x).sum(-1)[..., :, None]
    squares += np.square(y).sum(-1)[..., None, :]
    return np.maximum(squares, 0, out=squares)


def bandwidth_to_gamma(bandwidth: float) -> float:
    r"""The inverse squared width :math:`\gamma = 1 / 2\sigma^2` of a width σ."""
    return 0.5 / bandwidth**2


def median_distance(x: Any) -> float:
    """Median Euclidean distance between two different rows.

    Beyond 2,000 rows a systematic sample of them stands for all: every k-th row in the order of
    the row sums, which does not depend on the order in which the rows came. Where more than half
    of the pairs coincide the median is zero and says nothing about scale; the root mean square
    distance takes its place.

    Parameters
    ----------
    x : array-like of shape (n, d)

    Returns
    -------
    float
        Zero only when all rows coincide.
    """
    points = as_rows(x, "x").astype(np.float64)
    points = points[evenly_spread(points.sum(-1), MOST_MEDIAN_POINTS)]
    n = len(points)
    if n == 1:
        return 0.0
    squares = pair_squares(points, points)[np.triu_indices(n, 1)]  # (pairs,)
    middle = [(len(squares) - 1) // 2, len(squares) // 2]  # one and the same where it is odd
    median = float(np.sqrt(np.partition(squares, middle)[middle]).mean())
    return median if median > 0 else float(np.sqrt(squares.mean()))


def evenly_spread(sums: NDArray[Any], most: int) -> NDArray[np.intp]:
    """Indices of at most ``most`` rows, evenly spread along these sums, one per row.

    They do not depend on the order in which the rows came.
    """
    n = len(sums)
    if n <= most:
        return np.arange(n)
    steps = np.arange(most) * n // most + n // (2 * most)
    return sums.argsort(kind="stable")[np.minimum(steps, n - 1)]
