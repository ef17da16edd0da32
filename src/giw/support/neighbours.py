"""Exact nearest neighbours in bounded memory, on a CPU without torch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from giw.support.matrices import Matrix

BLOCK_ELEMENTS = 2**24  # distances held at a time on another device: 64 MB in float32


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


def without_copy(
    near: tuple[NDArray[np.float64], NDArray[np.int64]],  # (m, k + 1) twice, from `nearest`
    radius: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:  # (m, k) twice
    """The nearest rows without the first where that is an exact copy, else without the last."""
    distance, index = near
    if distance.shape[1] < 2:
        return near
    copied = distance[:, :1] <= radius
    return (
        np.where(copied, distance[:, 1:], distance[:, :-1]),
        np.where(copied, index[:, 1:], index[:, :-1]),
    )
