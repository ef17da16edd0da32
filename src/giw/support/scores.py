"""How strange a row is: its distance to the nearest training rows, where it lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giw.support.combine import conformal_p
from giw.support.matrices import Matrix
from giw.support.neighbours import Reference, nearest

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
        if self.k < 1 or self.around < 1:
            raise ValueError(f"need at least 1 neighbour, got k={self.k}, around={self.around}")
        if not 0 <= self.relative <= 1:
            raise ValueError(f"relative must lie between 0 and 1, got {self.relative}")


class Scored:
    """One representation: held-out training rows with their scores, ready to rank others.

    ``cell`` is that of each reference row; a point lies in the cell of its nearest one. ``within``
    says that the held-out rows are reference rows too, so that none scores itself; ``skip_copies``
    leaves out one exact copy of any point.
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
        distance, self.held_cell = self._distance(self.held_out, skip_copy=within or skip_copies)
        self.floor = FLOOR * float(distance.mean()) + np.finfo(float).tiny
        self.log_distance = np.log(np.maximum(distance, self.floor))  # (r,)
        raw = self.log_distance - self._usual(self.held_out, held_out=True)
        self.raw = raw
        self.score = self._standard(raw, self.held_cell)  # (r,)

    def p_value(self, z: Matrix) -> NDArray[np.float64]:
        """Conformal p-value of new rows, (m,)."""
        rows = self.reference.prepare(z)
        distance, cell = self._distance(rows, skip_copy=self.skip_copies)
        raw = np.log(np.maximum(distance, self.floor)) - self._usual(rows, held_out=False)
        return conformal_p(self._standard(raw, cell), self.score)

    def _distance(
        self, rows: Matrix, *, skip_copy: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Mean distance to the k nearest reference rows, and the cell of the nearest."""
        distance, index = self.reference.neighbours(rows, self.knn.k, skip_copy=skip_copy)
        return distance.mean(axis=1), self.cell[index[:, 0]]

    def _usual(self, rows: Matrix, *, held_out: bool) -> NDArray[np.float64]:
        r"""Logarithm of what distance is usual near each row, times the exponent, (m,)."""
        others = len(self.held_out) - held_out
        if self.knn.relative == 0 or others < 1:
            return np.zeros(len(rows))
        index = nearest(rows, self.held_out, self.knn.around + held_out)[1]
        if held_out:  # a row does not say what is usual around itself
            index = _without(index, np.arange(len(rows)))
        near = np.exp(self.log_distance)[index].mean(axis=1)
        return np.asarray(self.knn.relative * np.log(near))

    def _standard(self, raw: NDArray[np.float64], cell: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores less the mean of their cell, in units of its spread, (m,).

        Held-out rows are not left out of their own cell's mean: equal scores have to stay equal.
        """
        mean, spread, prior = self.raw.mean(), self.raw.std() + TINY, self.knn.prior_rows
        out = np.empty(len(raw))
        for value in np.unique(cell):
            theirs, mine = self.raw[self.held_cell == value], cell == value
            count = prior + len(theirs)
            center = (prior * mean + theirs.sum()) / count
            square = prior * spread**2 + ((theirs - center) ** 2).sum()
            out[mine] = (raw[mine] - center) / np.sqrt(square / count)
        return out


TINY = 1e-12  # of a spread: where all scores are equal none is strange


def _without(index: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each row's neighbours less its own number, or less the last where that is not there."""
    keep = index != own[:, None]
    keep[keep.all(axis=1), -1] = False
    return index[keep].reshape(len(index), -1)
