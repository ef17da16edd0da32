"""Which rows each step sees."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


def epoch_batches(n: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """One pass over n rows in random order, as row numbers of shape (steps, batch).

    All batches have the same size, so that a step can be captured once: the last one is filled
    up from the start of the same order. Fewer rows than a batch make one batch of all rows.
    """
    size = min(batch_size, n)
    steps = -(-n // size)
    order = torch.randperm(n, generator=generator)
    return torch.cat([order, order])[: steps * size].view(steps, size)


def validation_batches(m: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Row numbers of validation points, for ever; all of them each time if they fit a batch."""
    if m <= batch_size:
        everything = torch.arange(m)
        while True:
            yield everything
    while True:
        yield from epoch_batches(m, batch_size, generator)


def hold_out(n: int, share: float, most: int, generator: torch.Generator) -> Tensor:
    """Mark the rows that pretraining may see: all but a random share, at most ``most``."""
    kept_back = min(int(n * share), most, n - 1)
    seen = torch.ones(n, dtype=torch.bool)
    seen[torch.randperm(n, generator=generator)[:kept_back]] = False
    return seen  # (n,)
