"""How training rows are kept from scoring themselves: which of them calibrate against which."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from giw.support.calibration import Sides, folds_of
from giw.support.rows import Rows, only, take
from giw.support.scorers import Scorer
from giw.support.training_rows import TrainingRows

FOLDS = 5  # that take turns in cross-fitting
ENOUGH_TO_HOLD_OUT = 800  # training rows of which a quarter calibrates well enough


def way_to_hold_out(asked: str, scorer: Scorer, n: int, *, thresholded: bool) -> str:
    """One of "leave_one_out", "hold_out" and "cross_fit"; "auto" takes what suits the scorer."""
    can = getattr(scorer, "leaves_one_out", False)
    if thresholded:  # the published rule compares with its own training rows
        return "leave_one_out"
    if asked == "leave_one_out" and not can:
        raise ValueError(
            f"{type(scorer).__name__} cannot leave a row out of its own score; "
            "use calibration='hold_out' or 'cross_fit'"
        )
    if asked != "auto":
        return asked
    return "leave_one_out" if can else "hold_out" if n >= ENOUGH_TO_HOLD_OUT else "cross_fit"


def calibration_rows(rows: TrainingRows, how: str, share: float) -> int:
    """About how many rows will calibrate, before any limit."""
    if rows.held_out is not None:
        return len(rows.held_out)
    return int(share * len(rows.z)) if how == "hold_out" else len(rows.z)


def sides_of(
    rows: TrainingRows,
    cell: Tensor,  # (n,) of each training row
    how: str,
    *,
    share: float,
    most: int,
    level: float,
    generator: np.random.Generator,
) -> tuple[list[Sides], list[Tensor]]:
    """Reference rows and the rows that calibrate against them, and cells of the reference rows.

    There is one pair of sides, or with "cross_fit" one for each fold.

    Parameters
    ----------
    share : float
        Of the training rows that "hold_out" takes away.
    most : int
        Rows that calibrate at most.
    level : float
        The smallest p-value that the calibration rows must be able to give.
    """
    z, label = rows.z, rows.label
    if rows.held_out is not None or how == "leave_one_out":
        within = rows.held_out is None
        pool: Rows = z if rows.held_out is None else rows.held_out
        pool_label = label if within else rows.held_out_label
        some = _at_most(most, len(pool), generator).to(z.device)
        _check_enough(len(some) - within, level)
        theirs = None if pool_label is None else pool_label[some]
        return [Sides(z, label, take(pool, some), theirs, within=within)], [cell]
    count = 1 if how == "hold_out" else min(FOLDS, len(z))
    folds = folds_of(len(z), count=count, share=share, most=most, generator=generator)
    _check_enough(sum(len(out) for out in folds) if len(z) > 1 else 0, level)
    sides, cells = [], []
    for out in folds:
        keep = torch.ones(len(z), dtype=torch.bool, device=z.device)
        keep[torch.as_tensor(out, device=z.device)] = False
        mine = None if label is None else label[keep]
        theirs = None if label is None else label[~keep]
        sides.append(Sides(only(z, keep), mine, take(z, (~keep).nonzero()[:, 0]), theirs))
        cells.append(cell[keep])
    return sides, cells


def _at_most(most: int, n: int, generator: np.random.Generator) -> Tensor:
    return torch.as_tensor(np.sort(generator.permutation(n)[:most]))


def _check_enough(rows: int, level: float) -> None:
    need = math.ceil(1 / level) - 1
    if rows < need:
        raise ValueError(
            f"{rows} calibration rows cannot give a p-value of {level:g} or less; "
            f"need at least {need}, or a larger level"
        )
