"""Rows of a matrix in memory, or of one that comes in chunks: the same few questions of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from giw.support.chunks import BLOCK, Chunks

Rows = Tensor | Chunks


def blocks_of(z: Rows) -> Iterator[Tensor]:
    """A block of rows at a time, the same blocks for both."""
    return iter(z) if isinstance(z, Chunks) else iter(z.split(BLOCK))


def take(z: Rows, index: Tensor) -> Tensor:
    """The rows with these numbers, in this order."""
    return z.rows(index) if isinstance(z, Chunks) else z[index]


def per_row(z: Rows, number: Callable[[Tensor], Tensor]) -> Tensor:
    """One number for every row, (n,), a block at a time."""
    if isinstance(z, Chunks):
        return z.per_row(number)
    return torch.cat([number(block) for block in z.split(BLOCK)])


def only(z: Rows, mask: Tensor) -> Rows:
    """The marked rows."""
    return z.where(mask) if isinstance(z, Chunks) else z[mask]


def center_of(z: Rows) -> Tensor:
    """Mean row, summed up in double precision, (d,)."""
    total = torch.stack([block.sum(dim=0, dtype=torch.float64) for block in blocks_of(z)]).sum(0)
    return (total / len(z)).to(z.dtype)


def spread_of(z: Rows, center: Tensor) -> Tensor:
    """Root mean square distance of the rows from their centre, ()."""
    squares = [(block - center).square().sum(dtype=torch.float64) for block in blocks_of(z)]
    return (torch.stack(squares).sum() / len(z)).sqrt().to(z.dtype)


def means_by(z: Rows, cell: Tensor, cells: int) -> Tensor:
    """Mean row of each cell in double precision; zero for an empty one, (cells, d)."""
    total = torch.zeros(cells, z.shape[1], dtype=torch.float64, device=z.device)
    for block, here in zip(blocks_of(z), cell.split(BLOCK), strict=True):
        total.index_add_(0, here, block.double())
    return total / torch.bincount(cell, minlength=cells).clamp(min=1)[:, None]
