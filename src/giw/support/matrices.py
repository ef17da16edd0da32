"""Numbers in rows: numpy on a CPU, tensors where they already lie on another device."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_rows, is_tensor

Matrix = Any  # a numpy array of shape (n, d), or a tensor that does not lie on the CPU

MANY_VALUES = 16  # a column with more different values measures something; fewer may be categories
LOOKED_AT = 2_000  # rows in which they are counted: a column of numbers shows many at once


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


def row_key(z: Matrix) -> NDArray[np.float64]:
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
