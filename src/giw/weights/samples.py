"""Two samples in common units, in memory or in pieces, and distances between their points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.preprocessing import StandardScaler

from giw.checks import as_members, as_row_pair, as_rows
from giw.tables.chunks import BLOCK, Chunks, as_chunks

Array = NDArray[np.float64]
Rows = Any  # (n, d); an array, or Chunks where the estimator takes them


def pair_squares(x: Array, y: Array) -> Array:
    """Squared distances of (n, d) and (m, d), unchecked, (n, m)."""
    if x.shape[1] == 1:
        return np.square(x - y.T)
    # ‖x‖² + ‖y‖² − 2xᵀy loses digits far from the origin, so the origin moves to the points
    center = y.mean(0)
    x, y = x - center, y - center
    squares = x @ y.T
    squares *= -2
    squares += np.square(x).sum(1)[:, None]
    squares += np.square(y).sum(1)
    return np.maximum(squares, 0, out=squares)


def median_distance(x: Any) -> float:  # of rows (n, d)
    """Median Euclidean distance between two different rows.

    Beyond 2,000 rows a systematic sample of them stands for all: every k-th row in the order of
    the row sums, which does not depend on the order in which the rows came. Where more than half
    of the pairs coincide the median is zero and says nothing about scale; the root mean square
    distance takes its place: zero only when all rows coincide.
    """
    points = as_rows(x, "x").astype(np.float64)
    distance = pdist(points[evenly_spread(points.sum(-1), 2_000)])  # known to 0.1 %
    median = float(np.median(distance)) if len(distance) else 0.0
    return median or math.sqrt(float(np.square(distance).sum()) / max(len(distance), 1))


def evenly_spread(sums: NDArray[Any], most: int) -> NDArray[np.intp]:
    """Indices of at most ``most`` rows, evenly spread along these sums, one per row.

    They do not depend on the order in which the rows came.
    """
    n = len(sums)
    if n <= most:
        return np.arange(n)
    steps = np.arange(most) * n // most + n // (2 * most)
    return sums.argsort(kind="stable")[np.minimum(steps, n - 1)]


def blocks(x: Rows) -> Iterator[NDArray[Any]]:
    """Consecutive rows, few enough that their features fit in memory, in double precision."""
    pieces = x if isinstance(x, Chunks) else (x[k : k + BLOCK] for k in range(0, len(x), BLOCK))
    return (part.astype(np.float64, copy=False) for part in pieces)


def common_units(train: Rows, val: Array, share: Array, *, standardize: bool) -> StandardScaler:
    """Units in which every feature has variance one when both samples count the same.

    A feature that is constant over both samples says nothing; its unit is left at one.
    """
    units = StandardScaler(with_std=standardize)
    for part in blocks(train):
        units.partial_fit(part, sample_weight=np.ones(len(part)))
    if val.shape[1] != units.n_features_in_:
        raise ValueError(
            f"x_train has {units.n_features_in_} features and x_val has {val.shape[1]}; "
            "both need the same columns in the same order"
        )
    return units.partial_fit(val, sample_weight=len(train) * share)


@dataclass(frozen=True)
class Samples:
    """Two samples in common units, and what is needed to choose parameters."""

    train: Rows  # (n, d); a matrix or chunks
    val: Array  # (m, d), of membership above zero
    share: Array  # (m,), membership divided by its sum
    units: StandardScaler
    dtype: Any = np.float64  # of what came in

    @classmethod
    def of(cls, x_train: Any, x_val: Any, val_weight: Any | None, standardize: bool) -> Samples:
        """From what a user passes to ``fit``."""
        train: Rows
        chunks, pieces = as_chunks(x_train, "x_train"), as_chunks(x_val, "x_val")
        val: Any = x_val if pieces is None else np.concatenate(list(pieces))
        if chunks is None:
            train, val = as_row_pair(x_train, val)
        else:
            train, val = chunks, as_rows(val, "x_val")
        member = as_members(val_weight, (len(val),))
        counts = member > 0
        val, share = val[counts].astype(np.float64), member[counts] / member.sum()
        units = common_units(train, val, share, standardize=standardize)

        def change(part: NDArray[Any]) -> Array:
            changed: Array = units.transform(part.astype(np.float64))
            return changed

        if chunks is not None:
            changed = Chunks(lambda: map(change, chunks), "x_train", len(chunks))
            return cls(changed, change(val), share, units)
        return cls(change(train), change(val), share, units, train.dtype)

    def some_val(self, most: int) -> Array:
        """At most so many validation points, evenly spread."""
        return self.val[evenly_spread(self.val.sum(-1), most)]

    def some_of_both(self, most: int) -> Array:
        """At most so many points of each sample, evenly spread."""
        some = self.few(most)
        return np.concatenate([some.train, some.val])

    def few(self, most: int) -> Samples:
        """At most so many rows of each, evenly spread, with the shares of those."""
        rows = evenly_spread(self._train_sums, most)
        train = self.train.rows(rows) if isinstance(self.train, Chunks) else self.train[rows]
        share = self.share[evenly_spread(self.val.sum(-1), most)]
        return Samples(train, self.some_val(most), share / share.sum(), self.units)

    @property
    def can_hold_out(self) -> bool:
        """Whether a validation point can be left out and others remain: at least three."""
        return len(self.share) >= 3 and float(self.share.max()) < 0.9

    @cached_property
    def _train_sums(self) -> Array:
        return np.concatenate([part.sum(-1) for part in blocks(self.train)])
