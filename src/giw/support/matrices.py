"""Numbers in rows: numpy on a CPU, tensors where they already lie on another device."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Matrix = Any  # a numpy array of shape (n, d), or a tensor that does not lie on the CPU

MANY_VALUES = 16  # a column with more different values measures something; fewer may be categories
LOOKED_AT = 2_000  # rows in which they are counted: a column of numbers shows many at once


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_text(value: Any) -> bool:
    """Whether this is an array of objects or of text, and no matrix of numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "OUS"


def on_host(value: Any) -> NDArray[Any]:
    """A numpy array of what may be a tensor, a series or a list."""
    return np.asarray(value.detach().cpu().numpy() if is_tensor(value) else value)


def as_matrix(value: Any, name: str) -> Matrix:
    """Finite real numbers of shape (n, d) in floating point; one dimension is n rows of one."""
    if sparse.issparse(value):
        raise ValueError(f"{name} is sparse; pass {name}.toarray(), or reduce it with TruncatedSVD")
    if is_tensor(value) and value.device.type != "cpu":
        z = value.detach()
        z = z if z.is_floating_point() and z.element_size() >= 4 else z.float()
    else:
        z = _as_floats(on_host(value), name)
    z = z[:, None] if z.ndim == 1 else z
    if z.ndim != 2 or 0 in z.shape:
        hint = f"; flatten each row first: {name}.reshape(len({name}), -1)" * (z.ndim > 2)
        raise ValueError(f"{name} must have shape (n, d) and some rows, got {tuple(z.shape)}{hint}")
    if not np.isfinite(float(z.sum())):  # one pass and no mask; an overflow is looked into
        finite = np.isfinite(on_host(z))
        if not finite.all():
            raise ValueError(
                f"{name} holds {int((~finite).sum())} NaN or infinite values "
                f"(the first at {tuple(int(i) for i in np.argwhere(~finite)[0])}); drop or impute "
                "those rows first"
            )
    return z


def _as_floats(z: NDArray[Any], name: str) -> NDArray[Any]:
    if z.dtype == object:
        try:
            if any(isinstance(v, str | bytes) for v in z.flat):
                raise TypeError
            z = z.astype(np.float64)
        except (TypeError, ValueError):
            z = z.astype(str)
    if z.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold real numbers, got dtype {z.dtype}; encode text and categories "
            "first, or pass a data frame"
        )
    if z.dtype in (np.float32, np.float64):
        return np.ascontiguousarray(z)
    return z.astype(np.float32 if z.dtype == np.float16 else np.float64)


def unit_norm(z: Matrix) -> Matrix:
    """Every row divided by its Euclidean length; a row of zeros stays as it is."""
    length = ((z * z).sum(1) ** 0.5)[:, None]
    return z / (length + (length == 0))


def column_norms(z: Matrix) -> NDArray[np.float64]:
    """Euclidean length of each column, (d,), on the host."""
    return np.sqrt(on_host((z * z).sum(0)).astype(np.float64))


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
