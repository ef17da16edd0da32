"""How strange a row is: its distance to the nearest training rows, where it lies."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giw.checks import check_count
from giw.support.combine import TINY
from giw.support.matrices import Matrix, on_host, unit_norm
from giw.support.neighbours import nearest, without_copy

COPY = 1e-5  # of the reference's spread; two passes of a net over one row agree to that
FLOOR = 1e-4  # of the mean distance: where rows repeat, the logarithm of no distance is asked


@dataclass(frozen=True)
class KNN:
    r"""Mean distance to the k nearest training rows, partly relative to what is usual there.

    .. math:: s(z) = \log d_k(z) - \rho \log \bar d_k(z)

    where :math:`d_k` is the mean distance to the k nearest training rows and :math:`\bar d_k(z)`
    its mean over the held-out training rows nearest to z.

    Parameters
    ----------
    k : int, default=5
        More neighbours smooth the score and blur small islands of the support.
    relative : float, default=0.5
        The exponent :math:`\rho`. At 0 sparse parts of the support look strange, at 1 strange
        points look ordinary wherever training is sparse too.
    around : int, default=20
        Held-out rows that say what distance is usual; more of them look farther.
    prior_rows : float, default=20
        Scores are centred and scaled within each cell. As many rows at the overall mean and spread
        are added to each, so that small cells follow the others.
    """

    k: int = 5
    relative: float = 0.5
    around: int = 20
    prior_rows: float = 20.0

    def __post_init__(self) -> None:
        """Refuse what is no number of neighbours or no exponent."""
        for name in ("k", "around"):
            check_count(getattr(self, name), name, least=1)
        if not 0 <= self.relative <= 1:
            raise ValueError(f"relative must lie between 0 and 1, got {self.relative}")


class Scored:
    """One representation: held-out training rows with their scores, ready to rank others.

    ``cell`` is that of each reference row, counted from 0; a point lies in the cell of its nearest
    one. ``within`` says that the held-out rows are reference rows too, so that none scores itself;
    ``skip_copies`` leaves out one exact copy of any point.

    Columns that are constant over the reference add one and the same number to all of a point's
    squared distances. They are folded into one column, which leaves every distance as it was.

    Attributes
    ----------
    score : array of shape (r,)
        Of the held-out rows; a larger one is stranger.
    variance : float
        Of the logarithms of their distances, within cells.
    """

    def __init__(
        self,
        z: Matrix,
        held_out: Matrix,
        cell: NDArray[np.int64],
        *,
        knn: KNN,
        unit: bool,
        within: bool,
        skip_copies: bool,
    ) -> None:
        self.knn, self.cell, self.unit, self.skip_copies = knn, cell, unit, skip_copies
        z = unit_norm(z) if unit else z
        self.middle = z.mean(0)  # smaller numbers cancel less
        self.varies = z.max(0) != z.min(0) if isinstance(z, np.ndarray) else z.amax(0) != z.amin(0)
        self.reference = self._folded(z)  # (n, columns that vary + 1)
        square = on_host((self.reference * self.reference).sum(0)).astype(np.float64)
        self.copy_radius = COPY * float(np.sqrt(square.sum() / len(z)))
        self.held_out = self._folded(unit_norm(held_out) if unit else held_out)
        distance, in_cell = self._distance(self.held_out, skip_copy=within or skip_copies)
        self.floor = FLOOR * float(distance.mean()) + TINY
        self.distance = np.maximum(distance, self.floor)  # (r,)
        raw = self._relative(self.distance, self.held_out, held_out=True)
        # held-out rows are not left out of their own cell's mean: equal scores have to stay equal
        prior, cells = knn.prior_rows, int(cell.max()) + 1
        rows = prior + np.bincount(in_cell, minlength=cells)  # (cells,)
        self.center = (prior * raw.mean() + np.bincount(in_cell, raw, cells)) / rows
        apart = (raw - self.center[in_cell]) ** 2  # (r,)
        square = prior * (raw.var() + TINY) + np.bincount(in_cell, apart, cells)
        self.spread = np.sqrt(square / rows)
        self.score = (raw - self.center[in_cell]) / self.spread[in_cell]
        self.variance = float(apart.mean())

    def of(self, z: Matrix) -> NDArray[np.float64]:
        """Scores of new rows, (m,)."""
        rows = self._folded(unit_norm(z) if self.unit else z)
        distance, cell = self._distance(rows, skip_copy=self.skip_copies)
        raw = self._relative(np.maximum(distance, self.floor), rows, held_out=False)
        return np.asarray((raw - self.center[cell]) / self.spread[cell])

    def _folded(self, z: Matrix) -> Matrix:
        z = z - self.middle
        if bool(self.varies.all()):
            return z
        rest = z[:, ~self.varies]
        length = (rest * rest).sum(1)[:, None] ** 0.5
        if isinstance(z, np.ndarray):
            return np.hstack([z[:, self.varies], length.astype(z.dtype)])
        return sys.modules["torch"].cat([z[:, self.varies], length], dim=1)

    def _distance(
        self, rows: Matrix, *, skip_copy: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Mean distance to the k nearest reference rows, and the cell of the nearest."""
        near = nearest(rows, self.reference, self.knn.k + skip_copy)
        distance, index = without_copy(near, self.copy_radius) if skip_copy else near
        return distance.mean(axis=1), self.cell[index[:, 0]]

    def _relative(
        self, distance: NDArray[np.float64], rows: Matrix, *, held_out: bool
    ) -> NDArray[np.float64]:
        """Logarithm of the distance, less a part of what is usual around the row, (m,)."""
        if self.knn.relative == 0 or len(self.held_out) <= held_out:
            return np.log(distance)
        near = nearest(rows, self.held_out, self.knn.around + held_out)
        if held_out:  # a row does not say what is usual around itself
            near = without_copy(near, self.copy_radius)
        usual = self.distance[near[1]].mean(axis=1)
        return np.asarray(np.log(distance) - self.knn.relative * np.log(usual))
