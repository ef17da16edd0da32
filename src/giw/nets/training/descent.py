"""Epochs of descent, for one trial or for many side by side, on CPU or in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import vmap

from giw.nets.augmentation import warp
from giw.nets.kernels.graph import Captured
from giw.nets.training.batches import EpochRows
from giw.nets.training.net import FunctionalNet, as_input
from giw.nets.training.optimizer import adam_state, load_adam_state, scale_rates
from giw.nets.training.protocol import OWN, Batch, Logs, Net, Params
from giw.nets.training.tensors import Tensors

Loss = Callable[[Net, Params, Batch], tuple[Tensor, Logs]]
OVER_TRIALS = Batch(0, 0, 0, 0, 0, 0, None)  # type: ignore[arg-type]  # progress is common to all


class FlatData(NamedTuple):
    """The data of all trials, one after the other, and where each trial starts."""

    x_train: Tensor  # (Σ n, ...)
    y_train: Tensor  # (Σ n,)
    x_val: Tensor  # (Σ m, ...)
    y_val: Tensor  # (Σ m,)
    train_start: Tensor  # (trials,) on the host
    val_start: Tensor  # (trials,) on the host

    @classmethod
    def of(cls, datas: Sequence[Tensors]) -> FlatData:
        """Bytes stay bytes; what trials share, and what a single one has, is not copied."""

        def joined(inputs: str, labels: str) -> tuple[Tensor, Tensor, Tensor]:
            pairs = [(getattr(data, inputs), getattr(data, labels)) for data in datas]
            keys = [(id(x), id(y)) for x, y in pairs]
            kept = dict(zip(keys, pairs, strict=True))  # each once, in order
            sizes = [len(y) for _, y in kept.values()]
            begin = dict(zip(kept, torch.tensor([0, *sizes[:-1]]).cumsum(0).tolist(), strict=True))
            x, y = (list(parts) for parts in zip(*kept.values(), strict=True))
            starts = torch.tensor([begin[key] for key in keys])
            return (x[0], y[0], starts) if len(kept) == 1 else (torch.cat(x), torch.cat(y), starts)

        x_train, y_train, train_start = joined("x_train", "y_train")
        x_val, y_val, val_start = joined("x_val", "y_val")
        return cls(x_train, y_train, x_val, y_val, train_start, val_start)


class Plan(NamedTuple):
    """What an epoch's steps read, at addresses that stay the same from epoch to epoch."""

    train: Tensor  # (steps, trials, n)  rows of the joined data
    val: Tensor  # (steps, trials, m)
    progress: Tensor  # (steps,)
    train_maps: Tensor | None  # (steps, trials, n, 2, 3)
    val_maps: Tensor | None  # (steps, trials, m, 2, 3)


class Descent:
    """Adam on a loss, one or many trials at a time.

    A step reads its rows from the epoch's plan at a counter that lives on the device, so that
    on CUDA one captured step is replayed for a whole epoch without a word from the host.

    Parameters
    ----------
    loss : callable
        ``Method.loss`` or one like it.
    net : FunctionalNet
    params : Params
        Leaves; with ``stacked`` each has a leading dimension of trials.
    optimizer : torch.optim.Optimizer
    data : FlatData
    inside : Tensor of shape (Σ m,)
    alpha : Tensor of shape (trials,)
    stacked : bool
        Whether losses are vectorised over a leading dimension of trials.
    captured : bool
        Whether to replay a CUDA graph; on other devices it makes no difference.
    """

    def __init__(
        self,
        loss: Loss,
        net: FunctionalNet,
        params: Params,
        optimizer: torch.optim.Optimizer,
        data: FlatData,
        inside: Tensor,
        alpha: Tensor,
        *,
        stacked: bool,
        captured: bool = True,
    ) -> None:
        self.loss, self.net, self.params, self.optimizer = loss, net, params, optimizer
        self.data, self.inside, self.alpha = data, inside, alpha
        self.stacked, self.precision = stacked, net.precision
        self.device = data.x_train.device
        self.captured = captured and self.device.type == "cuda"
        self._trained = [p for p in params.values() if p.requires_grad]
        self._at = torch.zeros(1, dtype=torch.long, device=self.device)
        self._sums: Logs = {}
        self._plan: Plan | None = None
        self._graph: Captured | None = None

    def plan(self, rows: Sequence[EpochRows], done: tuple[float, float]) -> Plan:
        """Lay an epoch out on the host, which may be done while the device is busy with another.

        Parameters
        ----------
        rows : sequence of EpochRows
            Of each trial; all with the same number of steps.
        done : pair of float
            Share of training that is done before and after this epoch.
        """

        def stacked(parts: list[Tensor | None]) -> Tensor | None:
            found = [part for part in parts if part is not None]
            return torch.stack(found, dim=1) if found else None

        train = torch.stack([trial.train for trial in rows], dim=1)
        val = torch.stack([trial.val for trial in rows], dim=1)
        return Plan(
            train + self.data.train_start[:, None],
            val + self.data.val_start[:, None],
            torch.linspace(*done, len(train) + 1)[:-1],
            stacked([trial.train_maps for trial in rows]),
            stacked([trial.val_maps for trial in rows]),
        )

    def run_epoch(
        self,
        plan: Plan,
        *,
        first: int = 0,
        sums: Logs | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> int:
        """Take the steps of an epoch; on CUDA this returns before they are finished.

        Parameters
        ----------
        plan : Plan
        first : int, default=0
            Steps of this epoch that were taken before, with their ``sums``.
        stop : callable
            Asked before each step; where it says so, the rest of the epoch is left.

        Returns
        -------
        int
            Steps of this epoch that are done.
        """
        self._load(plan)
        if self.captured and self._graph is None:
            self._graph = self._capture()
        self._at.fill_(first)
        for value in self._sums.values():
            value.zero_()
        for name, value in (sums or {}).items():
            self._sums.setdefault(name, torch.zeros_like(value, device=self.device)).copy_(value)
        take = self._graph.replay if self._graph else self._step
        for step in range(first, len(plan.progress)):
            if stop():
                return step
            take()
        return len(plan.progress)

    def sums(self) -> Logs:
        """What was logged so far in an epoch that was left."""
        return {name: value.detach().clone() for name, value in self._sums.items()}

    def set_rate(self, factor: float) -> float:
        """Scale the learning rates that the optimiser started with; return the net's."""
        return scale_rates(self.optimizer, factor)

    def means(self) -> list[dict[str, float]]:
        """Mean of the loss and of all logged values over the last epoch, for each trial."""
        sums = torch.stack([value.reshape(-1) for value in self._sums.values()])  # (names, trials)
        steps = len(self._plan.progress) if self._plan else 1
        columns = (sums.double() / steps).T.tolist()  # the one wait for the device
        return [dict(zip(self._sums, column, strict=True)) for column in columns]

    def _step(self) -> None:
        batch = self._batch()
        with self.precision.forward(self.device):
            value, logs = self._losses(batch)
        with self.precision.products():
            # trials share no parameter, so the gradient of the sum is each trial's own gradient;
            # a parameter that a loss does not touch (an unused head) simply stays where it is
            gradients = torch.autograd.grad(value.sum(), self._trained, allow_unused=True)
        for p, gradient in zip(self._trained, gradients, strict=True):
            p.grad = _laid_out_as(p, gradient)
        self.optimizer.step()
        with torch.no_grad():
            for name, number in {"loss": value, **logs}.items():
                if name.startswith(OWN):  # the method's memory
                    self.params[name].copy_(number)
                    continue
                if name not in self._sums:
                    self._sums[name] = torch.zeros_like(number, dtype=torch.float32)
                self._sums[name] += number.detach()
            self._at += 1

    def _losses(self, batch: Batch) -> tuple[Tensor, Logs]:
        if not self.stacked:
            return self.loss(self.net, self.params, batch)
        loss = vmap(lambda p, b: self.loss(self.net, p, b), in_dims=(0, OVER_TRIALS))
        return loss(self.params, batch)

    @torch.no_grad()
    def _batch(self) -> Batch:
        plan, data = self._plan, self.data
        if plan is None:
            raise RuntimeError("a step needs a plan")
        trials = plan.train.shape[1] if self.stacked else None

        def at(part: Tensor) -> Tensor:  # this step's part of the plan
            return part.index_select(0, self._at)[0]

        def take(source: Tensor, rows: Tensor) -> Tensor:
            found = source.index_select(0, rows.flatten())
            return found if trials is None else found.unflatten(0, rows.shape)

        def images(source: Tensor, rows: Tensor, maps: Tensor | None) -> Tensor:
            if maps is None:
                return take(source, rows)
            moved = warp(as_input(source.index_select(0, rows.flatten())), at(maps).flatten(0, 1))
            return moved if trials is None else moved.unflatten(0, rows.shape)

        train, val = at(plan.train), at(plan.val)
        return Batch(
            images(data.x_train, train, plan.train_maps),
            take(data.y_train, train),
            images(data.x_val, val, plan.val_maps),
            take(data.y_val, val),
            take(self.inside, val),
            self.alpha if self.stacked else self.alpha[0],
            at(plan.progress),
        )

    def _load(self, plan: Plan) -> None:
        """Copy a plan to where steps read it."""
        if self._plan is None:
            parts = [None if part is None else part.to(self.device) for part in plan]
            self._plan = Plan(*parts)  # type: ignore[arg-type]
            return
        for target, part in zip(self._plan, plan, strict=True):
            if target is not None and part is not None:
                target.copy_(part)

    def _capture(self) -> Captured:
        """Record one step; the trial runs that this takes leave no trace."""
        params = {name: p.detach().clone() for name, p in self.params.items()}
        buffers, moments = self.net.buffers(), adam_state(self.optimizer, self.params)
        # an epoch may have fewer steps than there are trial runs: each takes the first one
        graph = Captured(self._step, self.device, rewind=self._at.zero_)
        with torch.no_grad():
            for name, p in self.params.items():
                p.copy_(params[name])
        self.net.set_buffers(buffers)
        load_adam_state(self.optimizer, self.params, moments)
        return graph


def _laid_out_as(p: Tensor, gradient: Tensor | None) -> Tensor | None:
    """Fused Adam walks through memory: numbers of a gradient must lie as the parameter's do."""
    if gradient is None or gradient.stride() == p.stride():
        return gradient
    return torch.empty_like(p).copy_(gradient)
