"""Arrays, data frames and tables as one pair of matrices, with a name for every column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_pair
from giw.estimators.rows import extreme_sizes
from giw.tables import Table, TableEncoder, table_from_frame

TRIMMED = 0.005  # share of the rows at either end that does not decide what one unit is


@dataclass(frozen=True, eq=False)
class Features:
    """Training and validation points in the units of the user and in units of training spread.

    Attributes
    ----------
    raw_train, raw_val : arrays of shape (n, d) and (m, d)
    z_train, z_val : arrays of shape (n, d) and (m, d)
        Every feature centred and divided by its standard deviation over training rows.
    names : list of str
        One per feature, such as ``age`` or ``town=Rome``.
    columns : list of str
        The column of the table that each feature was made from.
    notes : tuple of str
    """

    raw_train: NDArray[np.float64]
    raw_val: NDArray[np.float64]
    z_train: NDArray[np.float64]
    z_val: NDArray[np.float64]
    names: list[str]
    columns: list[str]
    notes: tuple[str, ...] = ()


def as_features(X: Any, X_val: Any, feature_names: Sequence[str] | None = None) -> Features:
    """Numbers from whatever came; categories and missing values of tables are encoded."""
    tables = [_as_table(value, name) for value, name in ((X, "X"), (X_val, "X_val"))]
    train, val = tables
    notes: tuple[str, ...] = ()
    if train is not None and val is not None:
        encoder = TableEncoder.fit(train, val)
        x, x_val = encoder.encode(train), encoder.encode(val, strict=True)
        names, columns = encoder.feature_names, encoder.feature_columns
        notes = (*train.notes, *val.notes, *encoder.notes)
    elif train is not None or val is not None:
        raise ValueError(
            "X and X_val must both be tables or both be arrays, got "
            f"{type(X).__name__} and {type(X_val).__name__}"
        )
    else:
        x, x_val = (
            t.double().cpu().numpy() for t in as_pair(_flat(X), _flat(X_val), ("X", "X_val"))
        )
        names = [f"x{j}" for j in range(x.shape[1])]
        if feature_names is not None:
            names = [str(name) for name in feature_names]
        if len(names) != x.shape[1]:
            raise ValueError(f"need one feature name per column, {x.shape[1]}, got {len(names)}")
        columns = names
    z, z_val = scaled(x, x_val)
    return Features(x, x_val, z, z_val, names, columns, notes)


def scaled(
    x: NDArray[np.float64], x_val: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both in units of the training rows' standard deviation, the extremes trimmed.

    One value of 999999 for "unknown" must not make all others look the same. A feature that is
    constant in training keeps its unit: a validation row that differs there is rightly far away.
    """
    largest = extreme_sizes(x)
    x, x_val = x / largest, x_val / largest
    low, high = np.quantile(x, [TRIMMED, 1 - TRIMMED], axis=0)
    trimmed = np.clip(x, low, high)
    spread = trimmed.std(axis=0)
    spread = np.where(spread > 0, spread, x.std(axis=0))  # almost constant: a rare category
    unit = np.where(spread > 1e-12 * np.abs(x).max(axis=0), spread, 1.0)
    center = trimmed.mean(axis=0)
    return (x - center) / unit, (x_val - center) / unit


def _as_table(value: Any, name: str) -> Table | None:
    if isinstance(value, Table):
        return value
    if hasattr(value, "columns") and hasattr(value, "iloc"):
        return table_from_frame(value, name)
    return None


def _flat(value: Any) -> Any:
    """Images as rows of pixels."""
    if getattr(value, "ndim", 2) > 2:
        return value.reshape(len(value), -1)
    return value
