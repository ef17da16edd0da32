"""The Gaussian kernel and its bandwidths.

Two conventions live side by side in this field and are easily mixed up, so both are keyword-only:
``bandwidth`` is a width σ in the units of the features, ``gamma`` an inverse squared width,
and :math:`k(x, y) = \\exp(-\\gamma \\lVert x - y \\rVert^2)` with :math:`\\gamma = 1 / 2\\sigma^2`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from giw.checks import as_pair, as_points, check_positive, like

MOST_MEDIAN_POINTS = 2_000  # 2 million pairs: the median is then known to about 0.1 %


def squared_distances(x: Any, y: Any) -> Any:
    """Squared Euclidean distances between the rows of two matrices.

    Parameters
    ----------
    x : array-like of shape (..., n, d)
        One dimension is read as n points of one feature.
    y : array-like of shape (..., m, d)

    Returns
    -------
    array of shape (..., n, m)
        Never negative; exactly zero between equal rows when ``d`` is one.
    """
    a, b = as_pair(x, y, ("x", "y"), batched=True)
    return like(pairwise_squared_distances(a, b), x)


def pairwise_squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Squared distances of tensors (..., n, d) and (..., m, d), unchecked: for inner loops."""
    if x.shape[-1] == 1:
        return (x - y.mT).square()  # (..., n, m)
    # ‖x‖² + ‖y‖² − 2xᵀy loses digits far from the origin, so the origin moves to the points
    center = y.mean(-2, keepdim=True)  # (..., 1, d)
    x, y = x - center, y - center
    norms = x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :]  # (..., n, m)
    return (norms - 2 * (x @ y.mT)).clamp(min=0)


def gaussian_kernel(
    x: Any, y: Any, *, bandwidth: float | None = None, gamma: float | None = None
) -> Any:
    r"""Gaussian kernel between the rows of two matrices.

    .. math:: k(x, y) = \exp(-\gamma \lVert x - y \rVert^2), \qquad \gamma = 1 / 2\sigma^2 .

    Parameters
    ----------
    x : array-like of shape (..., n, d)
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
    a, b = as_pair(x, y, ("x", "y"), batched=True)
    distances = pairwise_squared_distances(a, b)
    return like(torch.exp(-check_positive(gamma, "gamma") * distances), x)


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
    return float(median_pair_distance(representatives(as_points(x, "x"), MOST_MEDIAN_POINTS)))


def median_pair_distance(x: Tensor) -> Tensor:
    """Median distance over pairs i < j of the rows of (..., n, d), unchecked; shape (...)."""
    n = x.shape[-2]
    if n == 1:
        return x.new_zeros(x.shape[:-2])
    row, column = torch.triu_indices(n, n, 1, device=x.device)
    squares = pairwise_squared_distances(x, x)[..., row, column]  # (..., pairs)
    lower, upper = middle_pair(squares)
    median = 0.5 * (lower.sqrt() + upper.sqrt())
    return torch.where(median > 0, median, squares.mean(-1).sqrt())


def middle_pair(values: Tensor) -> tuple[Tensor, Tensor]:
    """The two middle values along the last dimension, one and the same where it is odd."""
    lower, upper = (values.shape[-1] - 1) // 2, values.shape[-1] // 2
    if values.is_cuda:  # where a sort is cheap, and a selection not deterministic
        ordered = values.sort(-1).values
        return ordered[..., lower], ordered[..., upper]
    # selection takes a tenth of the time of a sort
    first = values.kthvalue(lower + 1, -1).values
    return first, first if upper == lower else values.kthvalue(upper + 1, -1).values


def representatives(x: Tensor, most: int) -> Tensor:
    """At most ``most`` rows of (n, d), evenly spread and whatever the order of the rows."""
    n = len(x)
    if n <= most:
        return x
    order = x.sum(-1).argsort()
    steps = torch.arange(most, device=x.device) * n // most + n // (2 * most)
    return x[order[steps.clamp(max=n - 1)]]


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
