"""Rows that occur more than once: copies say nothing new about where the support lies."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.support.rows import Rows, per_row, take

MANY_VALUES = 16  # a column with more of them measures something; fewer may be categories
FEW_ROWS = 20  # different ones, fewer than a p-value of 0.05 takes ...
OFTEN = 5  # ... are kept with their copies where each occurs so many times on average
MEASURED = 2_000  # rows that are asked how many values there are
HASH_SEED = 7
ROWS = 10_000  # hashed at a time


def first_occurrences(z: Rows) -> NDArray[np.int64] | None:
    """Indices of the rows left when copies are dropped, or None where nothing is to be dropped.

    An oversampled training set holds every row several times, so that a row held out of it still
    has its twin inside and looks more familiar than new data can. In tables of categories, though,
    rows repeat by nature and new data repeat them too; those are left alone. So are tables such as
    one column of a dozen and a half years, where next to nothing would be left.
    """
    kept = np.sort(np.unique(row_hash(z), return_index=True)[1])
    if len(kept) == len(z) or (len(kept) < FEW_ROWS and len(z) >= OFTEN * len(kept)):
        return None
    if not measures(take(z, torch.as_tensor(kept[:MEASURED], device=z.device))):
        return None
    return kept


def distinct_rows(z: Tensor) -> int:
    """How many different rows there are."""
    return len(np.unique(row_hash(z)))


def measures(z: Tensor) -> bool:
    """Does some column take many values?"""
    return any(len(column.unique()) > MANY_VALUES for column in z.T)


def row_hash(z: Rows) -> NDArray[np.float64]:
    """One number per row, the same for equal rows and, in practice, different for others."""
    weight = np.random.default_rng(HASH_SEED).normal(size=z.shape[1])
    direction = torch.as_tensor(weight, device=z.device)

    def number(block: Tensor) -> Tensor:
        return torch.cat([(p.double() * direction).sum(dim=1) for p in block.split(ROWS)])

    return per_row(z, number).cpu().numpy()
