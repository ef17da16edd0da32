"""Exact nearest neighbours in bounded memory, on a CPU without torch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from giw.support.matrices import Matrix, column_norms, unit_norm

BLOCK_ELEMENTS = 2**24  # distances held at a time on another device: 64 MB in float32
COPY = 1e-5  # of the reference's spread; two passes of a net over one row agree to that


def nearest(
    z: Matrix,  # (m, d)
    reference: Matrix,  # (n, d)
    k: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:  # (m, min(k, n)) twice
    """Distances to the k nearest rows of ``reference``, ascending, and which rows they are.

    On a CPU this is scikit-learn's brute force, which walks both matrices in blocks; rows on
    another device are searched there.
    """
    k = min(k, len(reference))
    if not isinstance(reference, np.ndarray):
        return _nearest_on_device(z, reference, k)
    found = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(reference)
    distance, index = found.kneighbors(np.asarray(z, dtype=reference.dtype))
    return distance.astype(np.float64), index


def _nearest_on_device(
    z: Any, reference: Any, k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    torch = sys.modules["torch"]
    z, square = z.to(reference), (reference * reference).sum(dim=1)  # (n,) computed once
    parts = []
    for block in z.split(max(1, BLOCK_ELEMENTS // len(reference))):
        near = torch.addmm(square, block, reference.T, alpha=-2).topk(k, dim=1, largest=False)
        # from differences: the expansion of squares loses the digits of small distances
        gap = torch.linalg.vector_norm(block[:, None] - reference[near.indices], dim=2)
        gap, order = gap.sort(dim=1, stable=True)
        parts.append((gap.double().cpu().numpy(), near.indices.gather(1, order).cpu().numpy()))
    distance, index = (np.concatenate(column) for column in zip(*parts, strict=True))
    return distance, index


class Reference:
    """Rows that points are compared with: one representation, as it is or of unit norm.

    Columns that are constant over the reference add one and the same number to all of a point's
    squared distances. They are folded into one column, which leaves every distance as it was.
    """

    def __init__(self, z: Matrix, *, unit: bool) -> None:
        self.unit = unit
        z = unit_norm(z) if unit else z
        self.center = z.mean(0)  # smaller numbers cancel less
        self.varies = z.max(0) != z.min(0) if isinstance(z, np.ndarray) else z.amax(0) != z.amin(0)
        self.rows = self._folded(z)  # (n, columns that vary + 1)
        square = column_norms(self.rows) ** 2
        self.copy_radius = COPY * float(np.sqrt(square.sum() / len(z)))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def prepare(self, z: Matrix) -> Matrix:
        """New rows in the coordinates of the reference."""
        return self._folded(unit_norm(z) if self.unit else z)

    def _folded(self, z: Matrix) -> Matrix:
        z = z - self.center
        if bool(self.varies.all()):
            return z
        rest = z[:, ~self.varies]
        length = (rest * rest).sum(1)[:, None] ** 0.5
        if isinstance(z, np.ndarray):
            return np.hstack([z[:, self.varies], length.astype(z.dtype)])
        return sys.modules["torch"].cat([z[:, self.varies], length], dim=1)

    def neighbours(
        self, rows: Matrix, k: int, *, skip_copy: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The k nearest reference rows of prepared rows, without one exact copy if so asked."""
        distance, index = nearest(rows, self.rows, k + skip_copy)
        if not skip_copy or distance.shape[1] < 2:
            return distance, index
        copied = distance[:, :1] <= self.copy_radius
        return (
            np.where(copied, distance[:, 1:], distance[:, :-1]),
            np.where(copied, index[:, 1:], index[:, :-1]),
        )
