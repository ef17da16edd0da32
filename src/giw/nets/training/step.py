"""Which rows each step sees, and steps of descent, for one trial or for many side by side."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import vmap

from giw.nets.images import Augmentation, warp
from giw.nets.kernels.devices import FunctionalNet, evaluating, seeded_generator
from giw.nets.kernels.graph import captured
from giw.nets.models import as_input
from giw.nets.training.protocol import (
    Batch,
    Logs,
    Net,
    Params,
    State,
    StepLoss,
    TrainingConfig,
    sample_losses,
)
from giw.support import SupportSplit

History = list[list[dict[str, float]]]  # of each epoch, of each trial
Splits = Sequence[SupportSplit | None]
LossFunction = Callable[[Net, Params, Any, Batch], StepLoss]
OVER_TRIALS = Batch(0, 0, 0, 0, 0, 0, None)  # type: ignore[arg-type]  # progress is common to all


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
            found = as_input(source.index_select(0, rows.flatten()))
            if maps is not None:
                found = warp(found, now(maps).flatten(0, 1))
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


def alike(modules: Sequence[nn.Module], datas: Sequence[Tensors], batch_size: int) -> bool:
    """Whether trials agree in all shapes, as those must that take every step together."""

    def shapes(module: nn.Module, data: Tensors) -> tuple[object, ...]:
        n = len(data.y_train)
        sizes = -(-n // batch_size), min(n, batch_size), len(data.y_val)
        tests = None if data.y_test is None else len(data.y_test)
        parameters = tuple((name, p.shape) for name, p in module.named_parameters())
        return data.x_train.device, data.x_train.shape[1:], *sizes, tests, parameters

    buffers = any(True for _ in modules[0].buffers())
    return not buffers and len({shapes(*trial) for trial in zip(modules, datas, strict=True)}) == 1


def hold_out(n: int, share: float, most: int, generator: torch.Generator) -> Tensor:
    """Mark the rows that pretraining may see: all but a random share, at most ``most``."""
    kept_back = min(int(n * share), most, n - 1)
    seen = torch.ones(n, dtype=torch.bool)
    seen[torch.randperm(n, generator=generator)[:kept_back]] = False
    return seen  # (n,)


# Steps --------------------------------------------------------------------------------------------


@dataclass
class Descent:
    """Adam on a loss, one or many trials at a time.

    A step reads its rows from the epoch's plan at a counter that lives on the device, so that
    on CUDA one captured step is replayed for a whole epoch without a word from the host.
    """

    loss: LossFunction  # ``Method.loss`` or one like it
    net: FunctionalNet
    params: Params  # leaves; with ``stacked`` each has a leading dimension of trials
    state: State  # what the method keeps, its tensors likewise
    optimizer: torch.optim.Optimizer  # of :func:`make_adam`
    data: JoinedData
    inside: Tensor  # (Σ m,)
    alpha: Tensor  # (trials,)
    stacked: bool  # whether losses are vectorised over a leading dimension of trials
    captured: bool  # whether to replay a CUDA graph; on other devices it makes no difference

    def __post_init__(self) -> None:
        self.device = self.data.x_train.device
        self.captured = self.captured and self.device.type == "cuda"
        self._learning = [p for p in (*self.params.values(), *self.state.tensors().values())
                          if p.requires_grad]  # fmt: skip
        self._at = torch.zeros(1, dtype=torch.long, device=self.device)
        self._sums: Logs = {}
        self._plan: Plan | None = None
        self._replay: Callable[[], None] | None = None

    def run_epoch(self, plan: Plan) -> None:
        """Take the steps of an epoch; on CUDA this returns before they are finished."""
        step = partial(self._step, self._placed(plan))
        if self.captured and self._replay is None:
            before = self.snapshot()  # the trial runs of a recording leave no trace
            # an epoch may have fewer steps than there are trial runs: each takes the first one
            self._replay = captured(step, self.device, rewind=self._at.zero_)
            self.restore(before)
        self._at.zero_()
        for value in self._sums.values():
            value.zero_()
        self._steps = len(plan.progress)
        for _ in range(self._steps):
            (self._replay or step)()

    def _placed(self, plan: Plan) -> Plan:
        """The same plan at the addresses from which steps read."""
        if self._plan is None:
            parts = [None if part is None else part.to(self.device) for part in plan]
            self._plan = Plan(*parts)  # type: ignore[arg-type]
        for target, part in zip(self._plan, plan, strict=True):
            if target is not None and part is not None:
                target.copy_(part)
        return self._plan

    def _step(self, plan: Plan) -> None:
        batch = self.data.batch(plan, self._at, self.inside, self.alpha, stacked=self.stacked)
        precision = self.net.precision
        with precision.forward(self.device):
            value, memory, logs = self._losses(batch)
        with precision.products():
            # trials share no parameter, so the gradient of the sum is each trial's own gradient;
            # a parameter that a loss does not touch (an unused head) stays where it is
            found = torch.autograd.grad(value.sum(), self._learning, allow_unused=True)
        count = sum(p.requires_grad for p in self.params.values())
        gradients = [*self.net.summed(list(found[:count])), *found[count:]]
        for p, gradient in zip(self._learning, gradients, strict=True):
            p.grad = _laid_out_as(p, gradient)
        self.optimizer.step()
        with torch.no_grad():
            for name, kept in self.state.tensors().items():
                if not kept.requires_grad:
                    kept.copy_(memory[name])
            for name, number in {"loss": value, **logs}.items():
                if name not in self._sums:
                    self._sums[name] = torch.zeros_like(number, dtype=torch.float32)
                self._sums[name] += number.detach()
            self._at += 1

    def _losses(self, batch: Batch) -> tuple[Tensor, Params, Logs]:
        def of_trial(params: Params, tensors: Params, batch: Batch) -> tuple[Tensor, Params, Logs]:
            state = self.state.with_tensors(tensors)
            value, state, logs = self.loss(self.net, params, state, batch)
            return value, state.tensors(), logs

        parts = self.params, self.state.tensors(), batch
        return vmap(of_trial, (0, 0, OVER_TRIALS))(*parts) if self.stacked else of_trial(*parts)

    def means(self) -> list[dict[str, float]]:
        """Mean of the loss and of all logged values over the last epoch, for each trial."""
        sums = torch.stack([value.reshape(-1) for value in self._sums.values()])  # (names, trials)
        columns = (sums.double() / self._steps).T.tolist()  # the one wait for the device
        return [dict(zip(self._sums, column, strict=True)) for column in columns]

    def set_rate(self, factor: float) -> float:
        """Scale the learning rates that the optimiser started with; return the net's."""
        for group in self.optimizer.param_groups:
            rate = factor * group["first_rate"]
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        return factor * float(self.optimizer.param_groups[0]["first_rate"])

    def snapshot(self) -> dict[str, Params]:
        """A copy of all that steps change."""
        return {
            "params": copied(self.params),
            "state": copied(self.state.tensors()),
            "adam": adam_state(self.optimizer),
            "buffers": self.net.buffers(),
        }

    @torch.no_grad()
    def restore(self, saved: dict[str, Params]) -> None:
        """Put such a copy back, in place: a captured graph points to what is there."""
        for group, mine in (("params", self.params), ("state", self.state.tensors())):
            for name, p in mine.items():
                p.copy_(saved[group][name])
        load_adam_state(self.optimizer, saved.get("adam", {}))
        self.net.set_buffers(saved.get("buffers", {}))


@dataclass
class Phase:
    """Pretraining or training: what moves, what it reads, and how far it has come."""

    name: str  # "pretrain" or "train"
    epochs: int
    descent: Descent
    streams: list[BatchStream]
    splits: Splits
    history: History = field(default_factory=list)

    def plan(self, epoch: int) -> Plan:
        """The rows of an epoch."""
        done = epoch / self.epochs, (epoch + 1) / self.epochs
        return self.descent.data.plan([stream.next_epoch(done) for stream in self.streams])


def copied(tensors: Params) -> Params:
    """The same values elsewhere, without a graph."""
    return {name: value.detach().clone() for name, value in tensors.items()}


def _laid_out_as(p: Tensor, gradient: Tensor | None) -> Tensor | None:
    """Fused Adam walks through memory: numbers of a gradient must lie as the parameter's do."""
    if gradient is None or gradient.stride() == p.stride():
        return gradient
    return torch.empty_like(p).copy_(gradient)


# Adam: it works element by element, so one serves stacked trials --------------------------------


def make_adam(
    params: Params,
    state: State,
    config: TrainingConfig,
    learning_rate: float = 0.0,
    weight_decay: float = 0.0,
) -> torch.optim.Adam:
    """Adam over the net's parameters and, with rates of its own, what a method learns beside it.

    On CUDA the learning rate is a tensor and the step count lives on the device, so that a step
    can be captured in a graph and the rate still be changed between replays.
    """
    cuda = next(iter(params.values())).device.type == "cuda"
    sets = [
        (params, config.learning_rate, config.weight_decay),
        (state.tensors(), learning_rate, weight_decay),
    ]
    groups = [
        {
            "params": learning,
            "lr": torch.tensor(rate, device=learning[0].device) if cuda else rate,
            "weight_decay": decay,
            "first_rate": rate,
        }
        for tensors, rate, decay in sets
        if (learning := [p for p in tensors.values() if p.requires_grad])
    ]
    return torch.optim.Adam(groups, fused=True, capturable=cuda)


def adam_state(optimizer: torch.optim.Optimizer) -> Params:
    """Adam's memory, copied: moments and step counts, by the number of the parameter."""
    return {
        f"{number}.{key}": value.detach().clone()
        for number, memory in optimizer.state_dict()["state"].items()
        for key, value in memory.items()
    }


def load_adam_state(optimizer: torch.optim.Optimizer, state: Params) -> None:
    """Put such a copy back; parameters without an entry start afresh.

    Memory that is there already is overwritten in place: a captured graph points to it.
    """
    moved = [p for group in optimizer.param_groups for p in group["params"]]
    for number, p in enumerate(moved):
        start = f"{number}."
        found = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
        if p in optimizer.state:
            for key, value in optimizer.state[p].items():
                value.copy_(found[key]) if key in found else value.zero_()
        elif found:
            optimizer.state[p] = {k: v.detach().clone().to(p.device) for k, v in found.items()}


# Test points --------------------------------------------------------------------------------------


@torch.no_grad()
def score_of(descent: Descent, datas: Sequence[Tensors], *, block: int = 2000) -> Tensor:
    """Share of test points that each trial's net gets right, and their mean loss, (2, trials).

    Left on the device. All trials have test data of one size, taken ``block`` points at a time.
    """
    net, many = descent.net, descent.stacked
    params = {name: p.detach() for name, p in descent.params.items()}
    # all have test data: who asks has looked
    parts = ([getattr(d, name) for d in datas] for name in ("x_test", "y_test"))
    x, y = (torch.stack(part) if many else part[0] for part in parts)

    def logits_of(params: Params, x: Tensor) -> Tensor:
        return net(params, as_input(x))

    call = vmap(logits_of) if many else logits_of
    found = torch.zeros(2, len(datas), device=descent.device)  # hits, sums of losses
    with evaluating(net.module), net.precision.forward(descent.device):
        for some, label in zip(x.split(block, int(many)), y.split(block, int(many)), strict=True):
            logits = call(params, some)  # (n, c) or (trials, n, c)
            found[0] += (logits.argmax(-1) == label).sum(-1)
            loss = sample_losses(logits.flatten(0, -2), label.flatten()).view(label.shape)
            found[1] += loss.sum(-1)
    return found / y.shape[-1]
