"""Folds of points, each left out in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def stratified_folds(
    label: NDArray[Any], folds: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """A fold number for each point, so that every class spreads over the folds, (m,)."""
    order = generator.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    fold = np.empty(len(label), dtype=np.int64)
    fold[order] = np.arange(len(label)) % folds
    return fold


def folds_of(
    label: NDArray[Any], folds: int, generator: np.random.Generator, groups: Any = None
) -> NDArray[np.int64]:
    """Folds that every class spreads over, or that keep the rows of a group together, (m,).

    Groups go, the largest first, to the fold with the fewest rows.
    """
    if groups is None:
        return stratified_folds(label, folds, generator)
    code = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    size = np.bincount(code)
    order = generator.permutation(len(size))
    home, load = np.zeros(len(size), dtype=np.int64), np.zeros(folds)
    for group in order[np.argsort(-size[order], kind="stable")]:
        home[group] = int(np.argmin(load))
        load[home[group]] += size[group]
    return home[code]
