"""The Gaussian kernel and its bandwidths.

Two conventions live side by side in this field and are easily mixed up, so both are keyword-only:
``bandwidth`` is a width σ in the units of the features, ``gamma`` an inverse squared width,
and :math:`k(x, y) = \\exp(-\\gamma \\lVert x - y \\rVert^2)` with :math:`\\gamma = 1 / 2\\sigma^2`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_row_pair, as_rows, check_positive, like_input

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


def gaussian_kernel(
    x: Any, y: Any, *, bandwidth: float | None = None, gamma: float | None = None
) -> Any:
    r"""Gaussian kernel between the rows of two matrices.

    .. math:: k(x, y) = \exp(-\gamma \lVert x - y \rVert^2), \qquad \gamma = 1 / 2\sigma^2 .

    Parameters
    ----------
    x : array-like of shape (..., n, d)
        One dimension is read as n points of one feature.
    y : array-like of shape (..., m, d)
    bandwidth : float, optional
        Width :math:`\sigma` in the units of the features; a larger one sees further.
    gamma : float, optional
        Inverse squared width :math:`\gamma`; a larger one sees less far. Give one of the two.

    Returns
    -------
    array of shape (..., n, m)
    """
    if (bandwidth is None) == (gamma is None):
        raise ValueError(
            f"give exactly one of bandwidth= (a width) and gamma= (1 / 2 width²), "
            f"got bandwidth={bandwidth} and gamma={gamma}"
        )
    if gamma is None:
        gamma = bandwidth_to_gamma(check_positive(bandwidth, "bandwidth"))  # type: ignore[arg-type]
    a, b = as_row_pair(x, y, ("x", "y"), batched=True)
    return like_input(np.exp(-check_positive(gamma, "gamma") * pair_squares(a, b)), x)


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


def scale_free_gamma(x: Any) -> float:
    r"""The usual median rule, :math:`\gamma = 1 / (2\,\mathrm{median}^2)`.

    The width σ is the median distance. Scaling the features changes nothing in the kernel.
    """
    median = median_distance(x)
    if median == 0:
        raise ValueError(
            "all points coincide, so no bandwidth can be read off them; "
            "give bandwidth= or gamma= as a number"
        )
    return bandwidth_to_gamma(median)


def paper_gamma(x: Any) -> float:
    r"""The rule of the GIW paper and its code: :math:`\gamma` *is* the median distance.

    It is not scale free: as distances shrink the kernel flattens, and all weights become equal.
    """
    return median_distance(x)
