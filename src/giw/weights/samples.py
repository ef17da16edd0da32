"""Training and validation points in common units, in memory or a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_members, as_row_pair
from giw.tables.chunks import BLOCK, Chunks, as_chunks, one_or_more
from giw.weights.kernels import evenly_spread

Array = NDArray[np.float64]
Rows = Any  # (n, d); an array, or Chunks where the estimator takes them
SELECTION_ROWS = 3_000  # rows of each sample that choose bandwidth and penalty


@dataclass(frozen=True)
class Units:
    """Where each feature has its zero and how large its unit is."""

    shift: Array  # (d,)
    scale: Array  # (d,)

    def __call__(self, x: NDArray[Any]) -> Array:
        """Features in these units, in double precision."""
        return (x.astype(np.float64) - self.shift) / self.scale


@dataclass(frozen=True)
class Moments:
    """Mean and variance of every feature, and its largest size."""

    mean: Array  # (d,)
    variance: Array  # (d,)
    size: Array  # (d,)

    @classmethod
    def of(cls, rows: Iterable[NDArray[Any]], share: Array) -> Moments:
        r"""From blocks of rows and the share of each row, in double precision.

        Block by block the means and squares are merged [1]_: no square of a large number is taken,
        and :math:`\sum x^2 - (\sum x)^2` is never formed.

        References
        ----------
        .. [1] Chan, Golub and LeVeque, The American Statistician 37:242-247, 1983.
        """
        start, total, mean, squares, size = 0, 0.0, np.zeros(1), np.zeros(1), np.zeros(1)
        for block in rows:
            x = block.astype(np.float64)  # (k, d)
            count = share[start : start + len(x), None]  # (k, 1)
            here = float(count.sum())
            middle = (count * x).sum(0) / here
            gap, part = middle - (mean if start else middle), here / (total + here)
            squares = squares + (count * np.square(x - middle)).sum(0)
            squares = squares + np.square(gap) * total * part
            mean = mean + gap * part if start else middle
            size = np.maximum(size, np.abs(x).max(0))
            start, total = start + len(x), total + here
        return cls(mean, squares / total, size)


def common_units(train: Moments, val: Moments, *, standardize: bool) -> Units:
    """Units in which every feature has variance one when both samples count the same.

    A feature that is constant over both samples says nothing; its unit is left at one.
    """
    middle = 0.5 * (train.mean + val.mean)
    if not standardize:
        return Units(middle, np.ones_like(middle))
    around = sum(m.variance + np.square(m.mean - middle) for m in (train, val))
    spread = np.sqrt(0.5 * around)
    # the deviations of a constant column are rounding errors of its size
    varies = spread > 1e-12 * np.maximum(train.size, val.size)
    return Units(middle, np.where(varies, spread, 1.0))


def blocks(x: NDArray[Any] | Chunks) -> Iterator[NDArray[Any]]:
    """Consecutive rows, few enough that their features fit in memory."""
    if isinstance(x, Chunks):
        return iter(x)
    return (x[start : start + BLOCK] for start in range(0, len(x), BLOCK))


@dataclass(frozen=True)
class Samples:
    """Two samples in common units, and what is needed to choose parameters.

    Parameters
    ----------
    train : matrix or chunks of shape (n, d)
    val : matrix or chunks of shape (m, d)
        Of membership above zero.
    share : array of shape (m,)
        Membership divided by its sum.
    """

    train: Rows
    val: Rows
    share: Array
    units: Units
    dtype: Any = np.float64  # of what came in

    @classmethod
    def of(cls, x_train: Any, x_val: Any, val_weight: Any | None, standardize: bool) -> Samples:
        """From what a user passes to ``fit``."""
        train: NDArray[Any] | Chunks
        val: NDArray[Any] | Chunks
        if as_chunks(x_train, "x_train") is None and as_chunks(x_val, "x_val") is None:
            train, val = as_row_pair(x_train, x_val)
        else:
            train, val = one_or_more(x_train, "x_train"), one_or_more(x_val, "x_val")
        member = as_members(val_weight, (len(val),)).astype(np.float64)
        val = val.where(member > 0) if isinstance(val, Chunks) else val[member > 0]
        share = member[member > 0] / member.sum()
        of_train = Moments.of(blocks(train), np.full(len(train), 1 / len(train)))
        of_val = Moments.of(blocks(val), share)
        if len(of_train.mean) != len(of_val.mean):
            raise ValueError(
                f"x_train has {len(of_train.mean)} features and x_val has {len(of_val.mean)}; "
                "both need the same columns in the same order"
            )
        units = common_units(of_train, of_val, standardize=standardize)
        a, b = (x.through(units) if isinstance(x, Chunks) else units(x) for x in (train, val))
        dtype = np.float64 if isinstance(train, Chunks) else train.dtype
        return cls(a, b, share, units, dtype)

    def some_train(self, most: int) -> Array:
        """At most so many training points, evenly spread."""
        return _rows(self.train, evenly_spread(self._sums[0], most))

    def some_val(self, most: int) -> Array:
        """At most so many validation points, evenly spread."""
        return _rows(self.val, evenly_spread(self._sums[1], most))

    def few(self, most: int = SELECTION_ROWS) -> Samples:
        """At most so many rows of each: enough to choose a bandwidth and a penalty."""
        share = self.share[evenly_spread(self._sums[1], most)]
        return Samples(self.some_train(most), self.some_val(most), share / share.sum(), self.units)

    @property
    def can_hold_out(self) -> bool:
        """Whether a validation point can be left out and others remain: at least three."""
        return len(self.share) >= 3 and float(self.share.max()) < 0.9

    def val_blocks(self) -> Iterator[tuple[Array, Array]]:
        """Validation points and their shares, a block at a time."""
        return zip(blocks(self.val), blocks(self.share), strict=True)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        train, val = (
            np.concatenate([b.sum(-1) for b in blocks(x)]) for x in (self.train, self.val)
        )
        return train, val


def _rows(x: Rows, index: NDArray[np.intp]) -> Array:
    picked: Array = x.rows(index) if isinstance(x, Chunks) else x[index]
    return picked
