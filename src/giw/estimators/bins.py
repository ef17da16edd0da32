"""Columns with so few values that boosted trees bin them in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from giw.estimators.rows import is_frame

Vector = NDArray[np.float64]


def few_values(column: NDArray[Any], weight: Vector, most: int) -> NDArray[Any]:
    """A column in which every value has moved to one of at most ``most`` values of the column.

    Values are cut into ``most // 2`` cells of equal weight, and each cell into the halves below
    and above the middle between its least and its greatest value; a value moves to the end of its
    half. Trees put a threshold midway between neighbouring values. That is midway between two
    cells, or the middle of one: either way the value that came and the value that it became are on
    the same side, so that trees grown on the one treat the other alike.

    Parameters
    ----------
    column : array of shape (n,)
        Finite numbers, or missing ones, which stay.
    weight : array of shape (n,)
        Not negative.
    most : int
        At least two.
    """
    known = ~np.isnan(column)
    values, place = np.unique(column[known], return_inverse=True)  # (k,)
    if len(values) <= most:
        return column
    mass = np.bincount(place, weight[known], minlength=len(values))
    middle = (np.cumsum(mass) - mass / 2) / max(mass.sum(), 1e-300)
    cell = np.minimum((middle * (most // 2)).astype(np.int64), most // 2 - 1)  # (k,) ascending
    starts = np.flatnonzero(np.r_[True, np.diff(cell) > 0])
    sizes = np.diff(np.r_[starts, len(values)])
    least, greatest = (np.repeat(values[at], sizes) for at in (starts, starts + sizes - 1))
    moved = np.where(values <= (least + greatest) / 2, least, greatest)
    result = column.copy()
    result[known] = moved[place]
    return result


def binned_for(estimator: BaseEstimator, X: Any, weight: Vector) -> Any:
    """The table on which scikit-learn's boosted trees are fitted with weights; others get X.

    Where rows have weights, scikit-learn 1.8 and later look for every edge of every bin in a pass
    of its own, which takes several times as long as growing the trees. A column of at most
    ``max_bins`` values is binned at once.
    """
    if not isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return X
    categories = getattr(estimator, "categorical_features", None)
    if categories is not None and not (isinstance(categories, str) and categories == "from_dtype"):
        return X  # which of the columns are numbers is then for the trees to say
    if is_frame(X):
        new = {
            j: few_values(X.iloc[:, j].to_numpy(), weight, estimator.max_bins)
            for j, kind in enumerate(X.dtypes)
            if isinstance(kind, np.dtype) and _can_be_binned(X.iloc[:, j].to_numpy())
        }
        result = X.copy()
        for j, column in new.items():
            result.isetitem(j, column)
        return result
    if X.ndim != 2 or not _can_be_binned(X):
        return X
    return np.stack(
        [few_values(column, weight, estimator.max_bins) for column in X.T], axis=1
    )  # fmt: skip


def _can_be_binned(values: NDArray[Any]) -> bool:
    """Numbers of which the middle of two can be taken."""
    return values.dtype.kind in "iuf" and not np.isinf(values).any()
