r"""How far may p-values of inside points be off, when the distribution shifts within a cell?

A cell of one kind of row calibrates any part of itself. A cell of two kinds, dense ones and sparse
threes, does not: when the ones stay away, the threes look strange among them. Which part of a cell
the test distribution visits is not known, but training shows how much it could matter: rank the two
halves of each cell among all of it, and see how far their p-values are from uniform. Where they
are very far, and each has rows enough to calibrate, they become two cells.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.support.calibration import Fold, Sides, place
from giw.support.cells import cluster
from giw.support.rows import only

FEWEST = 20  # rows of a cell with two halves to compare
LEAST_TILT, MOST_TILT = 0.1, 1.0  # of log c
UNEVEN = 0.5  # tilt from which halves are cells of their own
LEAST_HALF = 1 / 3  # of a cell's calibration rows
ORDINARY = 0.2  # p-values above this are hardly ever from outside


def tilt(p_value: NDArray[np.float64]) -> float:
    r"""Logarithm of c in Beta(1, c), fitted to p-values: above zero if they are too small.

    .. math:: \hat c = n \Big/ \sum_i -\log(1 - p_i)
    """
    return -float(np.log(np.mean(-np.log1p(-p_value))))


def tilt_of_cells(
    z: Tensor,  # (r, d) calibration rows
    score: Tensor,  # (r,)
    cell: Tensor,  # (r,)
    *,
    cells: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:  # (cells,)
    """Root mean square tilt of the two halves of each cell, ranked among all of it."""
    found = np.zeros(cells)
    for value in range(cells):
        rows = (cell == value).nonzero()[:, 0]
        if len(rows) < FEWEST:
            found[value] = MOST_TILT if len(rows) else 0.0
            continue
        order = score[rows].argsort(stable=True).cpu().numpy()
        p_value = np.empty(len(rows))
        p_value[order[::-1]] = (np.arange(len(rows)) + 0.5) / len(rows)
        half = cluster(z[rows], 2, generator).cpu().numpy()
        tilts = np.array([tilt(p_value[half == h]) for h in half])
        found[value] = np.sqrt(np.mean(tilts**2))
    return found


def tilt_spread(
    p_value: NDArray[np.float64],  # (m,)
    cell: NDArray[np.int64],  # (m,)
    tilts: NDArray[np.float64],  # (c,)
) -> float:
    """Tilt to expect of a validation sample: that of its cells, weighted by ordinary points."""
    ordinary = cell[p_value > ORDINARY]
    mine = tilts[ordinary] if len(ordinary) else tilts
    return float(np.clip(np.sqrt(np.mean(mine**2)), LEAST_TILT, MOST_TILT))


def split_uneven_cells(
    fold: Fold,
    sides: Sides,
    *,
    least: int,
    generator: np.random.Generator,
) -> Fold:
    """Make two cells of every cell with halves that cannot calibrate each other.

    Only where both halves keep ``least`` calibration rows and a third of all: a small half gathers
    what is strange in training, and strangers would find themselves in good company there. Cells
    are told by the nearest reference row, so it is reference rows that are clustered, and
    calibration rows follow their neighbours.
    """
    cell, held = fold.merged[fold.cell], fold.calibration_cell.clone()
    cells = int(cell.max()) + 1
    tilts = tilt_of_cells(
        sides.held_out, fold.calibration_score, held, cells=cells, generator=generator
    )
    for value in np.flatnonzero(tilts > UNEVEN):
        asked = held == int(value)
        if int(asked.sum()) < 2 * least:
            continue
        rows = cell == int(value)
        half = cluster(only(sides.reference, rows), 2, generator)
        trial = cell.clone()
        trial[rows] = torch.where(half == 0, int(value), cells)
        there = place(sides.held_out[asked], None, fold.scorer, fold.nearest, trial)[1]
        smaller = min(int((there == int(value)).sum()), int((there == cells).sum()))
        if smaller < max(least, LEAST_HALF * len(there)):
            continue
        cell, held[asked], cells = trial, there, cells + 1
    return replace(
        fold, cell=cell, merged=torch.arange(cells, device=cell.device), calibration_cell=held
    )
