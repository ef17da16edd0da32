"""Rows of length one."""

from __future__ import annotations

from torch import Tensor


def unit_norm(z: Tensor) -> Tensor:
    """Divide every row by its Euclidean length; a row of zeros stays as it is."""
    length = z.norm(dim=1, keepdim=True)
    return z / length.where(length > 0, length.new_ones(()))
