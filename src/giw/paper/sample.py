"""Labelled samples: what shifts are made from, and what a method gets to see of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Sample:
    """Points, their task labels, and the subclass that a shift acts on.

    The subclass is the digit behind odd and even, the fine class behind a superclass, the square of
    the toy example. Pixels stay ``uint8`` in memory because they are a quarter of the size.
    """

    x: NDArray[Any]  # (n, d), or (n, channels, height, width) for images
    y: NDArray[np.int64]  # (n,), indices into classes
    group: NDArray[np.int64]  # (n,)
    classes: tuple[str, ...] = ()  # of the task, seen in this sample or not

    def __post_init__(self) -> None:
        for name in ("y", "group"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_classes(self) -> int:
        """Number of classes of the task, seen in this sample or not."""
        return len(self.classes)

    def take(self, rows: ArrayLike) -> Sample:
        """The rows named by indices or by a boolean mask, in that order."""
        rows = np.asarray(rows)
        return replace(self, x=self.x[rows], y=self.y[rows], group=self.group[rows])


@dataclass(frozen=True, eq=False)
class ShiftProblem:
    """Training, validation and test samples of one trial: all that a method may see.

    Groups are set to zero, because comparing them tells inside from outside; that is kept in
    :class:`Truth`.
    """

    train: Sample
    val: Sample
    test: Sample

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            sample: Sample = getattr(self, name)
            object.__setattr__(self, name, replace(sample, group=np.zeros(len(sample), int)))

    @property
    def n_classes(self) -> int:
        """Number of classes of the task."""
        return self.train.n_classes


@dataclass(frozen=True, eq=False)
class Truth:
    """What only an evaluation may know: which validation points lie in a group of training."""

    inside: NDArray[np.bool_]  # (m,)

    @property
    def alpha(self) -> float:
        """Mean membership of the validation sample at hand, the α of the objective."""
        return float(np.mean(self.inside))
