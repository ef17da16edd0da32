"""Folds of points, each left out in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def stratified_folds(
    label: NDArray[Any], folds: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """A fold number for each point, so that every class spreads over the folds, (m,)."""
    order = generator.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    fold = np.empty(len(label), dtype=np.int64)
    fold[order] = np.arange(len(label)) % folds
    return fold


def cuts_and_rests(fold: NDArray[np.int64], device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """For each fold which points are left out, (m,) of bool, and the rows of the rest.

    Nets side by side need as many points each, so all rests are as long as the shortest: of folds
    that differ by one, one point is not missed.
    """
    size = len(fold) - int(np.bincount(fold).max())
    outs = [torch.as_tensor(fold == k, device=device) for k in range(int(fold.max()) + 1)]
    return [(out, (~out).nonzero()[:size, 0]) for out in outs]
