"""The support split of two tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from giw.support import SupportSplit, SupportSplitter
from giw.tables import encoded

Vector = NDArray[np.float64]
FEWEST_TRAINING_ROWS = 10  # fewer cannot tell inside from outside


def split_rows(
    splitter: SupportSplitter | None,
    z: Vector,
    y: NDArray[Any] | None,
    z_val: Vector,
    y_val: NDArray[Any] | None,
    rows: NDArray[np.int64],
    seed: int,
) -> SupportSplit:
    """Validation rows inside and outside, by some of the training rows."""
    n = len(z)
    if splitter is None:
        splitter = SupportSplitter(level=max(0.05, 1.5 / n), most_held_out=1_000, random_state=seed)
    z, z_val = z.astype(np.float32), z_val.astype(np.float32)
    splitter = clone(splitter).fit(z[rows], None if y is None else y[rows])
    return splitter.split(z_val, y_val)


def features_and_split(
    X: Any, X_val: Any, generator: np.random.Generator, *, most: int = 10_000
) -> tuple[Vector, Vector, NDArray[np.bool_]]:
    """Features of training and validation rows, and which of the latter are inside."""
    z, z_val = encoded(X, X_val)
    some = generator.permutation(len(z))[:most]
    split = split_rows(None, z, None, z_val, None, some, int(generator.integers(2**31)))
    return z, z_val, np.asarray(split.inside, dtype=bool)
