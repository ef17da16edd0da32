"""Exact nearest neighbours, and the rows they are searched among.

Rows are numpy arrays on a CPU, without torch, and tensors where they already lie on another device.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from giw.checks import as_rows, is_tensor

Matrix = Any  # a numpy array of shape (n, d), or a tensor that does not lie on the CPU
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MANY_VALUES = 16  # a column with more different values measures something; fewer may be categories
LOOKED_AT = 2_000  # rows in which they are counted: a column of numbers shows many at once
BLOCK_ELEMENTS = 2**24  # distances held at a time on another device: 64 MB in float32


def on_host(value: Any) -> NDArray[Any]:
    """A numpy array of what may be a tensor, a series or a list."""
    return np.asarray(value.detach().cpu().numpy() if is_tensor(value) else value)


def as_matrix(value: Any, name: str) -> Matrix:
    """Finite real numbers of shape (n, d); tensors stay on a device that is not the CPU."""
    if not is_tensor(value) or value.device.type == "cpu":
        return np.ascontiguousarray(as_rows(value, name))
    as_rows(value[:1], name)  # shapes are checked there
    z = value.detach() if value.dtype.itemsize >= 4 and value.is_floating_point() else value.float()
    if not bool((z - z).sum() == 0):
        as_rows(value, name)
    return z


def unit_norm(z: Matrix) -> Matrix:
    """Every row divided by its Euclidean length; a row of zeros stays as it is."""
    length = ((z * z).sum(1) ** 0.5)[:, None]
    return z / (length + (length == 0))


def row_key(z: Matrix) -> Floats:
    """One number per row: the same for equal rows, and different for others in practice, (n,).

    It depends on nothing but the row, so that sorting by it forgets the order rows came in.
    """
    direction = np.random.default_rng(0).normal(size=z.shape[1])  # any fixed one would do
    if isinstance(z, np.ndarray):
        blocks = (z[i : i + 10_000] for i in range(0, len(z), 10_000))
        return np.concatenate([(block * direction).sum(axis=1) for block in blocks])
    torch = sys.modules["torch"]
    along = torch.as_tensor(direction, device=z.device, dtype=z.dtype)
    return on_host((z * along).sum(dim=1)).astype(np.float64)


def rows_repeat_by_nature(z: Matrix) -> bool:
    """Whether no column takes many values, as in tables of categories, where equal rows are new."""
    some = on_host(z[np.unique(np.linspace(0, len(z) - 1, LOOKED_AT).astype(int))])
    return all(len(np.unique(column)) <= MANY_VALUES for column in some.T)


def nearest(
    z: Matrix,  # (m, d)
    reference: Matrix,  # (n, d)
    k: int,
) -> tuple[Floats, Ints]:  # (m, min(k, n)) twice
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


def _nearest_on_device(z: Any, reference: Any, k: int) -> tuple[Floats, Ints]:
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
    near: tuple[Floats, Ints],  # (m, k + 1) twice, from `nearest`
    radius: float,
) -> tuple[Floats, Ints]:  # (m, k) twice
    """The nearest rows without the first where that is an exact copy, else without the last."""
    distance, index = near
    if distance.shape[1] < 2:
        return near
    copied = distance[:, :1] <= radius
    return (
        np.where(copied, distance[:, 1:], distance[:, :-1]),
        np.where(copied, index[:, 1:], index[:, :-1]),
    )
