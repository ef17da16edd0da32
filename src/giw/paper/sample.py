"""A clean labelled sample, from which the shifts are made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Sample:
    """Points, their task labels, and the subclass that a shift acts on.

    Parameters
    ----------
    x : array of shape (n, ...)
        Points: (n, d) for tables, (n, channels, height, width) for images; floats, or ``uint8``
        pixels, which stay ``uint8`` in memory because they are a quarter of the size.
    y : array of integers of shape (n,)
        Task label, an index into ``classes``.
    group : array of integers of shape (n,)
        Subclass on which a shift acts: the digit behind odd and even, the fine class behind a
        superclass, the square of the toy example.
    classes : tuple of str
        Name of each class; its length is the number of classes, seen in this sample or not.
        Left out, the classes are ``0 .. max(y)``.
    """

    x: NDArray[Any]  # (n, ...)
    y: NDArray[np.int64]  # (n,)
    group: NDArray[np.int64]  # (n,)
    classes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        x = np.asarray(self.x)
        if x.ndim < 2 or x.dtype.kind not in "biuf":
            raise ValueError(
                f"x must hold numbers in shape (n, ...), got {x.dtype} of shape {x.shape}; "
                "one feature goes in as x[:, None]"
            )
        y, group = _integers(self.y, len(x), "y"), _integers(self.group, len(x), "group")
        classes = tuple(str(name) for name in self.classes)
        classes = classes or tuple(str(label) for label in range(int(y.max(initial=0)) + 1))
        if len(y) and y.max() >= len(classes):
            raise ValueError(
                f"y must index the {len(classes)} classes, got labels {y.min()} to {y.max()}; "
                "map them first, for example np.unique(y, return_inverse=True)"
            )
        for name, value in (("x", x), ("y", y), ("group", group), ("classes", classes)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_classes(self) -> int:
        """Number of classes of the task, seen in this sample or not."""
        return len(self.classes)

    def take(self, indices: ArrayLike) -> Sample:
        """The rows named by indices or by a boolean mask, in that order."""
        rows = np.asarray(indices)
        if rows.size == 0 and rows.dtype != np.bool_:
            rows = rows.astype(np.int64)  # an empty list is an array of floats
        return replace(self, x=self.x[rows], y=self.y[rows], group=self.group[rows])

    def without_groups(self) -> Sample:
        """The same sample with every group zero, for a method, which must not see the shift."""
        return replace(self, group=np.zeros(len(self), dtype=np.int64))


def _integers(value: ArrayLike, n: int, name: str) -> NDArray[np.int64]:
    array = np.asarray(value)
    if array.shape != (n,):
        raise ValueError(f"need one {name} per point: shape ({n},), got {array.shape}")
    if array.dtype.kind not in "biu" and len(array):
        raise ValueError(f"{name} must hold integers, got {array.dtype}; encode names first")
    if len(array) and array.min() < 0:
        raise ValueError(f"{name} must not be negative, got {array.min()}; count from zero")
    return array.astype(np.int64)
