"""Steps of descent, for one trial or for many side by side, on CPU or in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from giw.nets.images import as_input
from giw.nets.kernels.graph import Captured
from giw.nets.training.batches import JoinedData, Plan, Tensors
from giw.nets.training.net import FunctionalNet, evaluating, sample_losses
from giw.nets.training.protocol import Batch, Logs, Params, State, StepLoss, TrainingConfig

LossFunction = Callable[[FunctionalNet, Params, Any, Batch], StepLoss]
OVER_TRIALS = Batch(0, 0, 0, 0, 0, 0, None)  # type: ignore[arg-type]  # progress is common to all


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
        self._graph: Captured | None = None

    def run_epoch(self, plan: Plan) -> None:
        """Take the steps of an epoch; on CUDA this returns before they are finished."""
        step = partial(self._step, self._placed(plan))
        if self.captured and self._graph is None:
            before = self.snapshot()  # the trial runs of a recording leave no trace
            # an epoch may have fewer steps than there are trial runs: each takes the first one
            self._graph = Captured(step, self.device, rewind=self._at.zero_)
            self.restore(before)
        self._at.zero_()
        for value in self._sums.values():
            value.zero_()
        self._steps = len(plan.progress)
        for _ in range(self._steps):
            self._graph.replay() if self._graph else step()

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
