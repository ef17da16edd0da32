"""Passes over images that batch normalisation takes, forwards, backwards and along a direction.

Images lie channels last: a matrix of m rows (places of all images) and c channels. Sums over rows
are taken in pieces, each piece by one program, and added up in a fixed order: the same numbers give
the same sums. Numbers are read and written as they come, sixteen bits each, and computed with in
thirty-two.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from giw.nets.kernels import norm_kernels as kernels

CHANNELS = 64  # of a tile; nets whose widths are no multiple of it take torch's own operations
FEW = 4  # channels of a program that joins pieces
PIECES_AT_ONCE = 128


class Tiling(NamedTuple):
    """How a pass is cut; the numbers were the fastest of a few on an H200."""

    rows: int  # of a tile
    warps: int
    most: int = 0  # pieces of 64 channels, where a pass sums over rows


MOMENTS = Tiling(128, 8, 256)
SUMS = Tiling(32, 4, 1024)
TILES = Tiling(32, 4)


class Pieces(NamedTuple):
    """How the rows of a batch are shared among programs that sum over them."""

    rows: int  # in all
    channels: int
    pieces: int
    size: int  # rows of a piece

    @classmethod
    def of(cls, y: Tensor, tiling: Tiling) -> Pieces:
        """For images (n, c, height, width)."""
        rows, channels = _matrix(y)
        wanted = max(1, min(tiling.most * CHANNELS // channels, rows // (2 * tiling.rows)))
        size = -(-rows // (wanted * tiling.rows)) * tiling.rows
        return cls(rows, channels, -(-rows // size), size)

    @property
    def grid(self) -> tuple[int, int]:
        """One program for each piece of each 64 channels."""
        return self.channels // CHANNELS, self.pieces

    def empty(self, y: Tensor) -> Tensor:
        """Room for two numbers of each piece and channel."""
        return torch.empty(self.pieces, 2, self.channels, device=y.device)


def _matrix(y: Tensor) -> tuple[int, int]:
    """Rows and channels."""
    return y.numel() // y.shape[1], y.shape[1]


def _tiles(y: Tensor) -> tuple[int, int]:
    """One program for each tile."""
    rows, channels = _matrix(y)
    return -(-rows // TILES.rows), channels // CHANNELS


def moments(
    y: Tensor, running: tuple[Tensor, Tensor, Tensor], *, momentum: float, eps: float
) -> Tensor:
    """Mean and 1 / √(variance + eps) of each channel, (2, c).

    Moves the running mean and variance, and counts the batch beside them.
    """
    at = Pieces.of(y, MOMENTS)
    parts, stats = at.empty(y), torch.empty(2, at.channels, device=y.device)
    kernels.moments_kernel[at.grid](
        y, parts, at.rows, at.size, at.channels, CHANNELS, MOMENTS.rows, num_warps=MOMENTS.warps
    )
    kernels.join_moments_kernel[(at.channels // FEW,)](
        parts, stats, *running, at.rows, at.size, at.pieces, momentum, eps,
        at.channels, FEW, PIECES_AT_ONCE,
    )  # fmt: skip
    return stats


def normalise(
    y: Tensor, stats: Tensor, weight: Tensor, bias: Tensor, shortcut: Tensor | None, relu: bool
) -> Tensor:
    """The forward pass, once the moments are known."""
    out = torch.empty_like(y)
    kernels.normalise_kernel[_tiles(y)](
        y, shortcut, out, stats, weight, bias, *_matrix(y),
        shortcut is not None, relu, CHANNELS, TILES.rows, num_warps=TILES.warps,
    )  # fmt: skip
    return out


def sums(y: Tensor, stats: Tensor, t: Tensor) -> Tensor:
    """Of ``t`` and of ``t`` times the normalised ``y``, for each channel, (2, c)."""
    at = Pieces.of(y, SUMS)
    parts = at.empty(y)
    kernels.sums_kernel[at.grid](
        t, y, None, None, stats, None, None, parts, at.rows, at.size, at.channels,
        False, False, CHANNELS, SUMS.rows, num_warps=SUMS.warps,
    )  # fmt: skip
    return _add_up(parts, at)


def clipped_sums(
    y: Tensor, stats: Tensor, weight: Tensor, bias: Tensor, out: Tensor | None, gradient: Tensor
) -> tuple[Tensor, Tensor | None]:
    """The same of a gradient where ReLU lets it through.

    With the result ``out`` of a forward pass with a shortcut, that gradient is written down, for it
    is the shortcut's; without, what ReLU lets through is seen from ``y``.
    """
    at = Pieces.of(y, SUMS)
    parts, through = at.empty(y), None if out is None else torch.empty_like(y)
    kernels.sums_kernel[at.grid](
        gradient, y, out, through, stats, weight, bias, parts, at.rows, at.size, at.channels,
        True, out is not None, CHANNELS, SUMS.rows, num_warps=SUMS.warps,
    )  # fmt: skip
    return _add_up(parts, at), through


def _add_up(parts: Tensor, at: Pieces) -> Tensor:
    total = torch.empty(2, at.channels, device=parts.device)
    kernels.add_up_kernel[(2 * at.channels // FEW,)](
        parts, total, at.pieces, at.channels, FEW, PIECES_AT_ONCE
    )
    return total


def pull(
    y: Tensor,
    stats: Tensor,
    weight: Tensor,
    bias: Tensor,
    gradient: Tensor,
    total: Tensor,
    clip: bool,
) -> Tensor:
    """Gradient with respect to ``y``, once the sums are known."""
    out = torch.empty_like(y)
    kernels.pull_kernel[_tiles(y)](
        gradient, y, out, stats, total, weight, bias, *_matrix(y),
        clip, CHANNELS, TILES.rows, num_warps=TILES.warps,
    )  # fmt: skip
    return out


def push(
    y: Tensor,
    stats: Tensor,
    weight: Tensor,
    bias: Tensor,
    out: Tensor | None,
    relu: bool,
    changes: tuple[Tensor, Tensor, Tensor, Tensor | None],
    total: Tensor,
) -> Tensor:
    """Change of the output along changes of ``y``, weight, bias and shortcut."""
    found = torch.empty_like(y)
    of_y, of_weight, of_bias, of_shortcut = changes
    kernels.push_kernel[_tiles(y)](
        of_y, y, out, of_shortcut, found, stats, total, weight, bias, of_weight, of_bias,
        *_matrix(y), of_shortcut is not None, relu, out is not None,
        CHANNELS, TILES.rows, num_warps=TILES.warps,
    )  # fmt: skip
    return found
