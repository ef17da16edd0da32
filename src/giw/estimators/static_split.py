"""The support split of tables that is made once, before a model is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from giw.estimators.cross_fit import MANY
from giw.support import SupportSplit, SupportSplitter

FEWEST_TRAINING_ROWS = 10
MOST_SPLIT_ROWS = 10_000  # a sample of more rows shows where the training data are as well
FEWEST_OF_A_CLASS = 20  # rows of it in that sample, if there are so many


def split_once(
    splitter: SupportSplitter | None,
    z: NDArray[np.floating[Any]],  # (n, d)
    y: NDArray[Any] | None,  # (n,)
    z_val: NDArray[np.floating[Any]],  # (m, d)
    y_val: NDArray[Any] | None,  # (m,)
    generator: np.random.Generator,
) -> SupportSplit:
    """Split validation points by features in comparable units.

    Parameters
    ----------
    splitter : SupportSplitter or None
        It is copied; None takes the defaults for a table of so many rows.
    z, z_val : arrays of shape (n, d) and (m, d)
    y, y_val : arrays of shape (n,) and (m,), or None
        Classes; targets of a regression say nothing about cells, so that those are left out.
    generator : numpy.random.Generator
    """
    n = len(z)
    if n < FEWEST_TRAINING_ROWS:
        raise ValueError(
            f"need at least {FEWEST_TRAINING_ROWS} training rows to tell inside from outside, "
            f"got {n}; fit the estimator to all data instead"
        )
    z, z_val = z.astype(np.float32), z_val.astype(np.float32)  # distances need no more digits
    seed = int(generator.integers(2**31))  # drawn in any case: folds are the same with a splitter
    splitter = default_splitter(n, seed) if splitter is None else clone(splitter)
    if y is None:
        return splitter.fit(z[some_rows(np.zeros(n), generator)]).split(z_val)
    rows = some_rows(y, generator)
    return splitter.fit(z[rows], y[rows]).split(z_val, y_val)


def default_splitter(n: int, seed: int) -> SupportSplitter:
    """How a table of ``n`` training rows is split where nobody says how."""
    return SupportSplitter(
        level=max(0.05, 1.5 / n),  # a p-value among n rows is at least 1 / n
        most_calibration=3_000 if n < MANY else 1_000,
        hide_parts=n < MANY,
        random_state=seed,
    )


def some_rows(label: NDArray[Any], generator: np.random.Generator) -> NDArray[np.int64]:
    """Rows that stand for the training support: all, or a sample with some of every class."""
    if len(label) <= MOST_SPLIT_ROWS:
        return np.arange(len(label))
    order = generator.permutation(len(label))
    codes = np.unique(label[order], return_inverse=True)[1].reshape(-1)
    by_class = np.argsort(codes, kind="stable")
    count = np.bincount(codes)
    place = np.arange(len(label)) - np.repeat(np.cumsum(count) - count, count)  # within its class
    few = by_class[place < FEWEST_OF_A_CLASS]
    return np.unique(np.concatenate([order[:MOST_SPLIT_ROWS], order[few]]))
