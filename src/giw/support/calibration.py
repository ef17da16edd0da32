"""From scores to p-values: the rank of a point among held-out training rows of its own cell."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from giw.support.cells import merge_small_cells
from giw.support.rows import Rows, means_by
from giw.support.scorers import KNN, SameLabel, Scorer


@dataclass(frozen=True)
class Fold:
    """Reference rows, a scorer that knows them, and the scores of rows that it does not know.

    Calibration rows and validation points meet the same reference: distances to neighbours shrink
    with the number of rows, so scores against different references must not be compared.
    """

    scorer: Scorer
    nearest: KNN  # finds the reference row whose cell a point joins
    cell: Tensor  # (n,) cell of each reference row
    merged: Tensor  # (c,) what became of each cell when small ones were merged
    calibration_score: Tensor  # (r,)
    calibration_cell: Tensor  # (r,)

    def place(self, z: Tensor, label: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Score and cell of each point, (m,) and (m,)."""
        score, cell = place(z, label, self.scorer, self.nearest, self.cell)
        return score, self.merged[cell]


def place(
    z: Tensor, label: Tensor | None, scorer: Scorer, nearest: KNN, cell: Tensor
) -> tuple[Tensor, Tensor]:
    """Score of each point, and the cell of its nearest reference row; (m,) and (m,)."""
    if isinstance(scorer, SameLabel) and label is not None:  # its own label is a point's cell
        return scorer.score(z, label), label
    if isinstance(scorer, KNN):  # one search serves both
        score, index = scorer.score_and_nearest(z)
        return score, cell[index]
    if int(cell.max()) == 0:  # one cell: no need to ask where a point lies
        return scorer.score(z, label), torch.zeros(len(z), dtype=torch.long, device=z.device)
    return scorer.score(z, label), cell[nearest.score_and_nearest(z)[1]]


@dataclass(frozen=True)
class Sides:
    """Reference rows and the rows that calibrate against them, with labels where there are any."""

    reference: Rows  # (n, d)
    label: Tensor | None  # (n,)
    held_out: Tensor  # (r, d)
    held_out_label: Tensor | None  # (r,)
    within: bool = False  # whether the calibration rows are reference rows too, left out in turn


def calibrate(sides: Sides, cell: Tensor, scorer: Scorer) -> Fold:
    """Fit the scorer on reference rows, in these cells, and score the rows that calibrate."""
    z = sides.reference
    fitted = scorer.fit(z, sides.label)  # type: ignore[arg-type]  # in chunks for KNN only
    nearest = KNN(k=1, relative=0.0).fit(z)
    score, where = place(sides.held_out, sides.held_out_label, fitted, nearest, cell)
    apart = torch.arange(max(int(cell.max()), int(where.max())) + 1, device=z.device)
    return Fold(fitted, nearest, cell, apart, score, where)


def merge_cells(folds: list[Fold], z: Rows, cell: Tensor, *, least: int) -> list[Fold]:
    """Merge cells that hold fewer than ``least`` calibration rows, in every fold alike."""
    held_out = torch.cat([fold.calibration_cell for fold in folds])
    kinds = max(int(cell.max()), int(held_out.max())) + 1
    count = torch.bincount(held_out, minlength=kinds).cpu().numpy()
    # a cell that has calibration rows only lies anywhere
    center = means_by(z, cell, kinds)
    target = merge_small_cells(count, center.cpu().numpy(), least=least)
    names = np.unique(target, return_inverse=True)[1].reshape(-1)  # 0, 1, ... without gaps
    into = torch.as_tensor(names, device=z.device)
    return [
        replace(fold, merged=into, calibration_cell=into[fold.calibration_cell]) for fold in folds
    ]


def conformal_rank(
    folds: list[Fold], score: list[Tensor], cell: list[Tensor]
) -> tuple[Tensor, Tensor]:
    r"""Rank of each point among the calibration rows of its cell, and their number.

    .. math:: p = \frac{1 + \#\{i : s_i \ge s\}}{1 + \#\{i\}} = \frac{\mathrm{rank}}{1 + N}

    Ties count against the point's strangeness, so that :math:`P(p \le u) \le u` for a point that
    is exchangeable with the calibration rows. Folds add up: a point is compared with every fold's
    rows by the score that the same fold gives it.

    Returns
    -------
    rank, count : tensors of shape (m,), rank from 1 to count + 1
    """
    rank = torch.ones(len(score[0]), dtype=torch.long, device=score[0].device)
    count = torch.zeros_like(rank)
    for fold, s, c in zip(folds, score, cell, strict=True):
        for value in c.unique():
            mine = c == value
            held_out = fold.calibration_score[fold.calibration_cell == value].sort().values
            below = torch.searchsorted(held_out, s[mine])  # rows strictly less strange
            rank[mine] += len(held_out) - below
            count[mine] += len(held_out)
    return rank, count


def folds_of(
    n: int, *, count: int, share: float, most: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """Calibration rows of each fold: one hold-out, or ``count`` folds that take turns."""
    order = generator.permutation(n)
    if count > 1:
        return [np.sort(part) for part in np.array_split(order, count)]
    held_out = int(np.clip(round(share * n), 1, min(most, n - 1)))
    return [np.sort(order[:held_out])]
