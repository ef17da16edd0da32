"""Rows of any table that scikit-learn takes: stacked, picked, and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline


def is_frame(X: Any) -> bool:
    """Whether X is a pandas data frame."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def as_frame(X: Any) -> Any:
    """Frames of polars and of others that have ``to_pandas`` as pandas; the rest as it came."""
    return X.to_pandas() if hasattr(X, "to_pandas") and not is_frame(X) else X


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


def row_hashes(X: Any) -> NDArray[np.uint64]:
    """A number for each row by which the row is known again, (n,)."""
    import pandas as pd

    frame = X if is_frame(X) else pd.DataFrame(np.asarray(X))
    frame = frame.astype(object).astype(str)
    return np.sort(pd.util.hash_pandas_object(frame, index=False).to_numpy())
