"""Both tables through the one encoder, with a name for every column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.tables import Encoder, Table, as_table


@dataclass(frozen=True, eq=False)
class Features:
    """Training and validation points in the units of the user and in units of training spread.

    Attributes
    ----------
    raw_train, raw_val : arrays of shape (n, d) and (m, d)
    z_train, z_val : arrays of shape (n, d) and (m, d)
        From :meth:`giw.tables.Encoder.transform`.
    names : list of str
        One per feature, such as ``age`` or ``town=Rome``.
    columns : list of str
        The column of the table that each feature was made from.
    notes : tuple of str
    levels_train, levels_val : arrays of shape (n, c) and (m, c)
        From :meth:`giw.tables.Encoder.level_counts`.
    train, val : Table
        As they came.
    """

    raw_train: NDArray[np.float64]
    raw_val: NDArray[np.float64]
    z_train: NDArray[np.float64]
    z_val: NDArray[np.float64]
    names: list[str]
    columns: list[str]
    notes: tuple[str, ...]
    levels_train: NDArray[np.int64]
    levels_val: NDArray[np.int64]
    train: Table
    val: Table


def as_features(X: Any, X_val: Any, feature_names: Sequence[str] | None = None) -> Features:
    """Numbers from whatever came; categories and missing values of tables are encoded."""
    train, val = (
        as_table(value, name, column_names=feature_names)
        for value, name in ((X, "X"), (X_val, "X_val"))
    )
    encoder = Encoder().fit(train, val)
    return Features(
        encoder.numbers(train),
        encoder.numbers(val),
        encoder.transform(train),
        encoder.transform(val),
        encoder.feature_names_,
        encoder.feature_columns_,
        (*train.notes, *val.notes, *encoder.notes_),
        encoder.level_counts(train),
        encoder.level_counts(val),
        train,
        val,
    )
