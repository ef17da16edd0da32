"""How strange a row is: its distance to the nearest training rows, where it lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giw.support.matrices import Matrix
from giw.support.neighbours import Reference, nearest

FLOOR = 1e-4  # of the mean distance: where rows repeat, the logarithm of no distance is asked
TINY = np.finfo(float).eps ** 2  # where all scores are equal none is strange


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
        if self.k < 1 or self.around < 1:
            raise ValueError(f"need at least 1 neighbour, got k={self.k}, around={self.around}")
        if not 0 <= self.relative <= 1:
            raise ValueError(f"relative must lie between 0 and 1, got {self.relative}")


class Scored:
    """One representation: held-out training rows with their scores, ready to rank others.

    ``cell`` is that of each reference row; a point lies in the cell of its nearest one. ``within``
    says that the held-out rows are reference rows too, so that none scores itself; ``skip_copies``
    leaves out one exact copy of any point.

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
        self.knn, self.cell, self.skip_copies = knn, cell, skip_copies
        self.reference = Reference(z, unit=unit)
        self.held_out = self.reference.prepare(held_out)
        distance, in_cell = self._distance(self.held_out, skip_copy=within or skip_copies)
        self.floor = FLOOR * float(distance.mean()) + TINY
        self.distance = np.maximum(distance, self.floor)  # (r,)
        raw = self._relative(self.distance, self.held_out, apart=True)
        self.cells = self._cells(raw, in_cell)
        self.score = self._standard(raw, in_cell)
        spread = np.array([self.cells[c][1] for c in in_cell])
        self.variance = float(((self.score * spread) ** 2).mean())

    def of(self, z: Matrix) -> NDArray[np.float64]:
        """Scores of new rows, (m,)."""
        rows = self.reference.prepare(z)
        distance, cell = self._distance(rows, skip_copy=self.skip_copies)
        raw = self._relative(np.maximum(distance, self.floor), rows, apart=False)
        return self._standard(raw, cell)

    def _distance(
        self, rows: Matrix, *, skip_copy: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Mean distance to the k nearest reference rows, and the cell of the nearest."""
        distance, index = self.reference.neighbours(rows, self.knn.k, skip_copy=skip_copy)
        return distance.mean(axis=1), self.cell[index[:, 0]]

    def _relative(
        self, distance: NDArray[np.float64], rows: Matrix, *, apart: bool
    ) -> NDArray[np.float64]:
        """Logarithm of the distance, less a part of what is usual around the row, (m,)."""
        if self.knn.relative == 0 or len(self.held_out) <= apart:
            return np.log(distance)
        near = nearest(rows, self.held_out, self.knn.around + apart)[1]
        if apart:  # a held-out row does not say what is usual around itself
            near = _without(near, np.arange(len(near)))
        return np.asarray(
            np.log(distance) - self.knn.relative * np.log(self.distance[near].mean(axis=1))
        )

    def _cells(
        self, raw: NDArray[np.float64], cell: NDArray[np.int64]
    ) -> dict[int, tuple[float, float]]:
        """Mean and spread of the held-out rows in each cell; that of a cell without any.

        Held-out rows are not left out of their own cell's mean: equal scores have to stay equal.
        """
        mean, square, prior = raw.mean(), raw.var() + TINY, self.knn.prior_rows
        found = {}
        for value in np.unique(self.cell):
            theirs = raw[cell == value]
            count = prior + len(theirs)
            center = (prior * mean + theirs.sum()) / count
            squares = prior * square + ((theirs - center) ** 2).sum()
            found[int(value)] = (float(center), float(np.sqrt(squares / count)))
        return found

    def _standard(self, raw: NDArray[np.float64], cell: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores less the mean of their cell, in units of its spread, (m,)."""
        center, spread = np.array([self.cells[c] for c in cell]).reshape(-1, 2).T
        return np.asarray((raw - center) / spread)


def _without(index: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each row's neighbours less its own number, or less the last where that is not there."""
    keep = index != own[:, None]
    keep[keep.all(axis=1), -1] = False
    return index[keep].reshape(len(index), -1)
