"""Which rows each step sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from giw.nets.augmentation import Augmentation


def epoch_batches(
    n: int, batch_size: int, generator: torch.Generator, weight: Tensor | None = None
) -> Tensor:
    """One pass over n rows in random order, as row numbers of shape (steps, batch).

    With weights, (n,), a row comes as often as its share of them says, up to rounding to the whole
    number below or above: a systematic sample, so that every step follows the weighted sample and
    no method has to know of them. All batches have the same size, so that a step can be captured
    once: the last one is filled up from the start of the same order. Fewer rows than a batch make
    one batch of all rows.
    """
    size = min(batch_size, n)
    steps = -(-n // size)
    order = torch.randperm(n, generator=generator)
    if weight is not None:
        place = torch.arange(n) + torch.rand((), generator=generator, dtype=torch.float64)
        share = weight.double().cumsum(0) * (n / weight.double().sum())
        order = torch.searchsorted(share, place).clamp(max=n - 1)[order]
    return torch.cat([order, order])[: steps * size].view(steps, size)


class EpochRows(NamedTuple):
    """The rows of every step of an epoch, and how their images are moved about."""

    train: Tensor  # (steps, n)
    val: Tensor  # (steps, m)
    train_maps: Tensor | None  # (steps, n, 2, 3)
    val_maps: Tensor | None  # (steps, m, 2, 3)


class BatchStream:
    """The rows of one trial, epoch after epoch, from one seed.

    Each epoch walks once through the training rows, or has as many steps as validation rows have
    batches. Validation rows come all in every step if they fit a batch; otherwise they are walked
    through too, and a walk goes on in the next epoch.

    Parameters
    ----------
    rows : Tensor of shape (n,)
        Training rows to draw from.
    n_val : int
    batch_size : int
    random_state : int
    purpose : str
        Streams of different purposes are independent.
    augmentation, side
        Draw a random map of the plane for each image, ``side`` pixels wide; None draws nothing.
    weight : Tensor of shape (n,), optional
        Of the rows, which come in proportion to it.
    over_val : bool, default=False
        Whether an epoch is a pass over the validation rows.
    """

    def __init__(
        self,
        rows: Tensor,
        n_val: int,
        batch_size: int,
        *,
        random_state: int,
        purpose: str,
        augmentation: Augmentation | None = None,
        side: int = 0,
        weight: Tensor | None = None,
        over_val: bool = False,
    ) -> None:
        self.weight, self.over_val = weight, over_val
        self.rows, self.n_val, self.batch_size = rows, n_val, batch_size
        self.augmentation, self.side = augmentation, side
        self.generator = seeded_generator(random_state, purpose)
        self.map_generator = seeded_generator(random_state, f"{purpose} maps")
        self.pending = torch.empty(0, min(batch_size, n_val), dtype=torch.long)

    @property
    def steps(self) -> int:
        """Steps in an epoch."""
        return -(-len(self.rows) // self.batch_size)

    def next_epoch(self) -> EpochRows:
        """Draw the next epoch."""
        n, size = len(self.rows), self.batch_size
        train = self.rows[epoch_batches(n, size, self.generator, self.weight)]
        train = train[: -(-self.n_val // size)] if self.over_val else train
        val = self._validation(len(train))
        return EpochRows(train, val, self._maps(train), self._maps(val))

    def _validation(self, steps: int) -> Tensor:
        if self.n_val <= self.batch_size:
            return torch.arange(self.n_val).expand(steps, -1)
        while len(self.pending) < steps:
            more = epoch_batches(self.n_val, self.batch_size, self.generator)
            self.pending = torch.cat([self.pending, more])
        now, self.pending = self.pending[:steps], self.pending[steps:]
        return now

    def _maps(self, rows: Tensor) -> Tensor | None:
        if self.augmentation is None:
            return None
        maps = self.augmentation.draw(rows.numel(), self.side, generator=self.map_generator)
        return maps.view(*rows.shape, 2, 3)

    def state(self) -> dict[str, Tensor]:
        """All that decides the epochs to come."""
        return {
            "generator": self.generator.get_state(),
            "map_generator": self.map_generator.get_state(),
            "pending": self.pending.clone(),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on where another stream stopped."""
        self.generator.set_state(state["generator"])
        self.map_generator.set_state(state["map_generator"])
        self.pending = state["pending"]


def hold_out(n: int, share: float, most: int, generator: torch.Generator) -> Tensor:
    """Mark the rows that pretraining may see: all but a random share, at most ``most``."""
    kept_back = min(int(n * share), most, n - 1)
    seen = torch.ones(n, dtype=torch.bool)
    seen[torch.randperm(n, generator=generator)[:kept_back]] = False
    return seen  # (n,)


def seeded_generator(random_state: int, purpose: str) -> torch.Generator:
    """Independent streams of randomness for each purpose, from one number."""
    words = np.random.SeedSequence([random_state, *purpose.encode()]).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(words[0]) << 31 | int(words[1]) >> 1)


@contextmanager
def seeded_stream(seed: int, device: torch.device) -> Iterator[None]:
    """The global stream of torch seeded for a while, for layers that draw from no other.

    Only the streams of the processor and of ``device`` are touched, and both are put back;
    ``torch.manual_seed`` would seed those of all GPUs, and leave them so.
    """
    cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if cuda else []):
        torch.default_generator.manual_seed(seed)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
