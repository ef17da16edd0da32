"""Which rows each step sees: data on one device, the order of rows, and an epoch laid out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from giw.nets.images import Augmentation, as_input, warp
from giw.nets.training.protocol import Batch, Params


@dataclass(frozen=True)
class Tensors:
    """Training, validation and (for evaluation only) test data on one device."""

    x_train: Tensor  # (n, ...)  bytes or floats
    y_train: Tensor  # (n,)      class indices
    x_val: Tensor  # (m, ...)
    y_val: Tensor  # (m,)
    x_test: Tensor | None = None
    y_test: Tensor | None = None
    weight: Tensor | None = None  # (n,)  of the training rows; batches draw them in proportion

    @cached_property
    def checksum(self) -> int:
        """Of all that is learned from; methods are compared on the same data, so it is kept."""
        total = 0
        learnt = (self.x_train, self.y_train, self.x_val, self.y_val)
        for tensor in learnt if self.weight is None else (*learnt, self.weight):
            total = zlib.crc32(str(tuple(tensor.shape)).encode(), total)
            total = zlib.crc32(tensor.contiguous().cpu().numpy().data, total)
        return total

    @classmethod
    def from_problem(cls, problem: Any, device: str | torch.device = "cpu") -> Tensors:
        """Copy samples train, val and test (x, y) once; bytes stay bytes, all else is float32."""
        parts: dict[str, Any] = {}
        for name in ("train", "val", "test"):
            sample = getattr(problem, name)
            x = torch.as_tensor(sample.x)
            dtype = torch.uint8 if x.dtype == torch.uint8 else torch.float32
            parts[f"x_{name}"] = x.to(device=device, dtype=dtype)
            parts[f"y_{name}"] = torch.as_tensor(sample.y, dtype=torch.long, device=device)
        return cls(**parts)

    def without_test(self) -> Tensors:
        """What a method may see."""
        return replace(self, x_test=None, y_test=None)


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


class Plan(NamedTuple):
    """What an epoch's steps read: the rows of one trial, or of all in the joined data."""

    train: Tensor  # (steps, n), or (steps, trials, n)
    val: Tensor  # (steps, m), or (steps, trials, m)
    progress: Tensor  # (steps,)
    train_maps: Tensor | None  # as ``train``, with (2, 3) more: how images are moved about
    val_maps: Tensor | None  # as ``val``


@dataclass
class BatchStream:
    """The rows of one trial, epoch after epoch, from one seed.

    Each epoch walks once through the training rows, or has as many steps as validation rows have
    batches. Validation rows come all in every step if they fit a batch; otherwise they are walked
    through too, and a walk goes on in the next epoch.
    """

    rows: Tensor  # (n,)  training rows to draw from
    n_val: int
    batch_size: int
    random_state: int
    purpose: str  # streams of different purposes are independent
    augmentation: Augmentation | None = None  # a random map of the plane for each image
    side: int = 0  # of images, in pixels
    weight: Tensor | None = None  # (n,)  of the rows, which come in proportion to it
    over_val: bool = False  # whether an epoch is a pass over the validation rows

    def __post_init__(self) -> None:
        self.generator = seeded_generator(self.random_state, self.purpose)
        self.map_generator = seeded_generator(self.random_state, f"{self.purpose} maps")
        self.pending = torch.empty(0, min(self.batch_size, self.n_val), dtype=torch.long)

    def next_epoch(self, done: tuple[float, float] = (0.0, 1.0)) -> Plan:
        """Draw the next epoch; ``done`` is the share of training before and after it."""
        n, size = len(self.rows), self.batch_size
        train = self.rows[epoch_batches(n, size, self.generator, self.weight)]
        train = train[: -(-self.n_val // size)] if self.over_val else train
        val = self._validation(len(train))
        progress = torch.linspace(*done, len(train) + 1)[:-1]
        return Plan(train, val, progress, self._maps(train), self._maps(val))

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

    def state(self) -> Params:
        """All that decides the epochs to come."""
        return {
            "generator": self.generator.get_state(),
            "map_generator": self.map_generator.get_state(),
            "pending": self.pending.clone(),
        }

    def load_state(self, state: Params) -> None:
        """Go on where another stream stopped."""
        self.generator.set_state(state["generator"])
        self.map_generator.set_state(state["map_generator"])
        self.pending = state["pending"]


class JoinedData(NamedTuple):
    """The data of all trials, one after the other, and where each trial starts."""

    x_train: Tensor  # (Σ n, ...)
    y_train: Tensor  # (Σ n,)
    x_val: Tensor  # (Σ m, ...)
    y_val: Tensor  # (Σ m,)
    train_start: Tensor  # (trials,) on the host
    val_start: Tensor  # (trials,) on the host

    @classmethod
    def of(cls, datas: Sequence[Tensors]) -> JoinedData:
        """Bytes stay bytes; training data that trials share, or one has alone, are not copied."""
        parts = {(id(d.x_train), id(d.y_train)): (d.x_train, d.y_train) for d in datas}
        sizes = [len(y) for _, y in parts.values()]
        begin = dict(zip(parts, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        x, y = (
            part[0] if len(part) == 1 else torch.cat(part)
            for part in zip(*parts.values(), strict=True)
        )
        train_start = torch.tensor([begin[id(d.x_train), id(d.y_train)] for d in datas])
        val_start = torch.tensor([0, *(len(d.y_val) for d in datas[:-1])]).cumsum(0)
        x_val, y_val = torch.cat([d.x_val for d in datas]), torch.cat([d.y_val for d in datas])
        return cls(x, y, x_val, y_val, train_start, val_start)

    def plan(self, trials: Sequence[Plan]) -> Plan:
        """The plans of all trials as one, on the host."""
        train, val, progress, *maps = zip(*trials, strict=True)
        return Plan(
            torch.stack(train, dim=1) + self.train_start[:, None],
            torch.stack(val, dim=1) + self.val_start[:, None],
            progress[0],
            *(None if part[0] is None else torch.stack(part, dim=1) for part in maps),
        )

    @torch.no_grad()
    def batch(
        self, plan: Plan, at: Tensor, inside: Tensor, alpha: Tensor, *, stacked: bool
    ) -> Batch:
        """What the step ``at``, (1,), of a plan sees; with a dimension of trials if ``stacked``."""

        def now(part: Tensor) -> Tensor:
            return part.index_select(0, at)[0]

        def take(source: Tensor, rows: Tensor, maps: Tensor | None = None) -> Tensor:
            found = source.index_select(0, rows.flatten())
            if maps is not None:
                found = warp(as_input(found), now(maps).flatten(0, 1))
            return found.unflatten(0, rows.shape) if stacked else found

        train, val = now(plan.train), now(plan.val)
        return Batch(
            take(self.x_train, train, plan.train_maps),
            take(self.y_train, train),
            take(self.x_val, val, plan.val_maps),
            take(self.y_val, val),
            take(inside, val),
            alpha if stacked else alpha[0],
            now(plan.progress),
        )


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
