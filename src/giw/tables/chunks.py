"""Rows that do not fit in memory: pieces that can be walked through as often as needed."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_rows

Array = NDArray[Any]

BLOCK = 32_768  # rows held in memory at a time


@dataclass(eq=False)
class Chunks:
    """A matrix in pieces.

    Every walk hands the rows out in blocks of the same size, however large the pieces were: sums
    over blocks are then the same to the last bit, whether rows came in pieces or as one matrix.
    """

    pieces: Callable[[], Iterable[Any]]  # of arrays (rows, d), called for each walk
    name: str  # what messages call it
    _total: int | None = None  # rows that the first walk counted

    def __iter__(self) -> Iterator[Array]:
        """Blocks of at most ``BLOCK`` rows, (rows, d)."""
        waiting: list[Array] = []
        rows = 0
        for part in self._parts():
            waiting.append(part)
            rows += len(part)
            while rows >= BLOCK:
                joined = np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
                yield joined[:BLOCK]
                waiting, rows = [joined[BLOCK:]], rows - BLOCK
        if rows:
            yield np.concatenate(waiting)

    def __len__(self) -> int:
        """Number of rows; the first time this is asked may take a walk."""
        if self._total is None:
            collections.deque(self._parts(), maxlen=0)
        return self._total or 0

    def rows(self, index: NDArray[np.intp]) -> Array:
        """The rows with these numbers, in this order, from one walk."""
        order = index.argsort()
        wanted = index[order]
        found: Any = None
        start = 0
        for block in self:
            # written in place: small results kept between large blocks would tear holes into memory
            found = np.empty((len(wanted), block.shape[1]), block.dtype) if found is None else found
            low, high = np.searchsorted(wanted, [start, start + len(block)])
            found[order[low:high]] = block[wanted[low:high] - start]
            start += len(block)
        return found

    def _parts(self) -> Iterator[Array]:
        total, width = 0, None
        for number, piece in enumerate(self.pieces()):
            if not len(piece):
                continue
            part = as_rows(piece, f"{self.name}, piece {number},")
            width = part.shape[1] if width is None else width
            if part.shape[1] != width:
                raise ValueError(
                    f"{self.name}: piece {number} has {part.shape[1]} features and the first one "
                    f"{width}; all need the same columns in the same order"
                )
            total += len(part)
            yield part
        if total == 0:
            raise ValueError(f"{self.name} is empty: none of its pieces holds a row")
        if total != (self._total or total):
            raise ValueError(
                f"{self.name} has {total} rows where {self._total} were expected; it is walked "
                "through several times and must give the same rows every time"
            )
        self._total = total


def as_chunks(value: Any, name: str) -> Chunks | None:
    """Pieces to walk through, or None where ``value`` is an array, a table or a list of numbers.

    Pieces are a list or tuple of matrices, any other iterable that can be iterated over again and
    again, or a function without arguments that returns a fresh iterator.
    """
    if isinstance(value, Chunks):
        return value
    if isinstance(value, list | tuple):
        return Chunks(lambda: value, name) if value and np.ndim(value[0]) == 2 else None
    if isinstance(value, str | bytes | dict) or hasattr(value, "shape") or np.isscalar(value):
        return None
    if callable(value) and not hasattr(value, "__iter__"):
        return Chunks(value, name)
    if not hasattr(value, "__iter__") or hasattr(value, "__array__"):
        return None
    if iter(value) is value:
        raise ValueError(
            f"{name} is an iterator, which can be walked through only once; pass a function that "
            "returns a new one, a list of arrays, or an object with __iter__"
        )
    return Chunks(lambda: value, name)
