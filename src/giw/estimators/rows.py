"""Rows of any table that scikit-learn takes: stacked, picked, and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from giw.tables import Table, TableEncoder, table_from_frame

HUGE = 1e100  # squares of larger numbers may be infinite, of smaller ones than 1 / HUGE zero


def is_frame(X: Any) -> bool:
    """Whether X is a pandas data frame."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def row_count(X: Any) -> int:
    """Rows of anything that can be made a table."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(np.asarray(X))


def rows_of(X: Any, rows: NDArray[Any]) -> Any:
    """Some rows, in the type that they came in."""
    return X.iloc[np.flatnonzero(rows) if rows.dtype == bool else rows] if is_frame(X) else X[rows]


def stacked(first: Any, second: Any) -> Any:
    """Rows of both, in the type that they came in."""
    if is_frame(first) and is_frame(second):
        import pandas as pd

        return pd.concat(_same_categories(first, second), ignore_index=True)
    return np.concatenate([np.asarray(first), np.asarray(second)])


def _same_categories(first: Any, second: Any) -> tuple[Any, Any]:
    """Two frames whose categories can be stacked: those of both, the first frame's first.

    pandas makes plain text of categories that differ, and boosted trees refuse text.
    """
    import pandas as pd

    for j, name in enumerate(first.columns):
        kinds = [side.dtypes.iloc[j] for side in (first, second)]
        if kinds[0] == kinds[1] or not isinstance(kinds[0], pd.CategoricalDtype):
            continue
        added = pd.Index(second.iloc[:, j].dropna().unique()).difference(kinds[0].categories)
        both = pd.CategoricalDtype([*kinds[0].categories, *added])
        first, second = (side.astype({name: both}) for side in (first, second))
    return first, second


def refuse_dates(X: Any, name: str, estimator: Any) -> None:
    """Dates are no numbers to an estimator that does not make some of them itself."""
    if not is_frame(X) or isinstance(estimator, Pipeline) or hasattr(estimator, "estimator"):
        return
    for column, kind in X.dtypes.items():
        if getattr(kind, "kind", None) in ("m", "M"):
            raise ValueError(
                f"{name}: column {column!r} holds dates or times ({kind}), which "
                f"{type(estimator).__name__} cannot take; make numbers of them, for example "
                f"{name}[{column!r}].astype('int64')"
            )


def as_rows(X: Any, name: str) -> Any:
    """Something to take rows of: a data frame as it is, anything else as an array."""
    if sparse.issparse(X):
        raise ValueError(
            f"{name} is sparse, and distances to sparse rows are not supported; pass "
            f"{name}.toarray(), or reduce it first, for example with TruncatedSVD"
        )
    return X if is_frame(X) else np.asarray(X)


def extreme_sizes(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest number of each column where squares of it would not fit, else one, (d,)."""
    largest = np.abs(z).max(axis=0)
    return np.where((largest > HUGE) | ((largest > 0) & (largest < 1 / HUGE)), largest, 1.0)


def features_for_split(X: Any, X_val: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both tables as numbers in comparable units, (n, d) and (m, d).

    Numbers are centred and scaled by the training rows, missing ones are their median with an
    indicator beside, categories are one feature each; a category that training never saw has a
    feature of its own.
    """
    train, val = _table(X, "X"), _table(X_val, "X_val")
    encoder = TableEncoder.fit(train, val)
    z, z_val = encoder.encode(train), encoder.encode(val)
    largest = extreme_sizes(z)
    z, z_val = z / largest, z_val / largest
    center, spread = z.mean(axis=0), z.std(axis=0)
    spread = np.where(spread > 1e-12 * np.abs(center), spread, 1.0)
    return (z - center) / spread, (z_val - center) / spread


def _table(X: Any, name: str) -> Table:
    if is_frame(X):
        return table_from_frame(X, name)
    return Table({f"column {j}": _column(X[:, j]) for j in range(X.shape[1])}, name)


def _column(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers where all values are numbers, text otherwise."""
    try:
        if values.dtype.kind in "biuf" or not any(isinstance(v, str) for v in values):
            return values.astype(np.float64)
    except (TypeError, ValueError):
        pass
    text = np.empty(len(values), dtype=object)
    text[:] = [None if v is None or v != v else str(v) for v in values]
    return text
