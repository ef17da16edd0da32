"""Distances of tensors, unchecked: for inner loops."""

from __future__ import annotations

import torch
from torch import Tensor


def pairwise_squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Squared distances of tensors (..., n, d) and (..., m, d), (..., n, m)."""
    if x.shape[-1] == 1:
        return (x - y.mT).square()
    # ‖x‖² + ‖y‖² − 2xᵀy loses digits far from the origin, so the origin moves to the points
    center = y.mean(-2, keepdim=True)  # (..., 1, d)
    x, y = x - center, y - center
    norms = x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :]  # (..., n, m)
    return (norms - 2 * (x @ y.mT)).clamp(min=0)


def median_pair_distance(x: Tensor) -> Tensor:
    """Median distance over pairs i < j of the rows of (..., n, d); shape (...).

    The root mean squared distance where that is zero.
    """
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
