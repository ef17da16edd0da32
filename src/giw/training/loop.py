"""One loop for all methods: pretrain, split, train."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from giw.models.fused_norm import fuse_norms
from giw.objective.gathering import first_rank_says
from giw.support import SupportSplit
from giw.training.batches import BatchStream, hold_out, seeded_generator
from giw.training.checkpoint import (
    Checkpoint,
    Saved,
    run_identity,
    split_from_parts,
    split_parts,
)
from giw.training.config import TrainingConfig
from giw.training.descent import Descent, FlatData, Loss, Plan
from giw.training.evaluation import Evaluation
from giw.training.forward import sample_losses
from giw.training.net import FunctionalNet, as_input, named_layers, predict_in_blocks
from giw.training.optimizer import (
    adam_state,
    load_adam_state,
    make_adam,
    stack_adam_states,
    trial_adam_state,
)
from giw.training.precision import precision_for
from giw.training.products import by_products
from giw.training.protocol import (
    NO_OWN_PARAMS,
    Batch,
    Evidence,
    Logs,
    Method,
    Net,
    OwnParams,
    Params,
    prediction_params,
)
from giw.training.ranks import STEPS_TO_AGREE, any_rank_asked, first_rank_loads
from giw.training.record import TrainingRecord
from giw.training.sharded_net import ShardedNet
from giw.training.stopping import Interrupted, asked_to_stop, stop_by_interrupt
from giw.training.tensors import Tensors
from giw.training.threads import threads_for

OnEpoch = Callable[[str, int, dict[str, float]], None]
History = list[list[dict[str, float]]]  # of each epoch, of each trial


@dataclass(frozen=True)
class Pretrained:
    """Where every method but Val-only starts: parameters, Adam's memory, and the rows seen."""

    params: Params
    buffers: Params
    optimizer: Params
    seen: Tensor  # (n,) bool
    random_state: int


def train(
    method: Method,
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig | None = None,
    *,
    random_state: int = 0,
    pretrained: Pretrained | None = None,
    on_epoch: OnEpoch | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1,
    ranks: dist.ProcessGroup | None = None,
    checkpoint_seconds: float = 0.0,
) -> TrainingRecord:
    """Train a net by a method.

    The module is left as it is; a trained copy is in the record. The same
    ``random_state`` gives the same batches to every method, so that methods can be compared
    in pairs, and on CPU the same record bit for bit.

    Parameters
    ----------
    method : Method
        For example ``giw.methods.GIW()``.
    module : torch.nn.Module
        Initialised net, inputs to logits.
    data : Tensors
        Training and validation data; test data, if any, are used for the history only.
    config : TrainingConfig, optional
    random_state : int, default=0
        Seeds the order of rows, the rows held out, augmentation, and any dropout in the module.
    pretrained : Pretrained, optional
        Result of :func:`pretrain` with the same module, data, config and random state, to share
        it between methods.
    on_epoch : callable, optional
        Called with the phase (``"pretrain"`` or ``"train"``), the epoch and its values.
    checkpoint : path, optional
        A file in which the run is saved between epochs. Where the file exists, the run goes on
        from there; on CPU it ends as if it had never stopped, bit for bit. Ctrl-C then stops the
        run at its next step and saves it; a second one stops it at once.
    checkpoint_every : int, default=1
        Epochs between two savings.
    ranks : torch.distributed.ProcessGroup, optional
        Processes that share the rows of every batch. All call with the same module, data, config
        and random state, and all get the same record: that of a single process up to rounding
        (and up to the draws of dropout). The first one alone writes the checkpoint and reads it,
        for all. Ctrl-C, wherever it is heard, stops all of them at the same step.
    checkpoint_seconds : float, default=0.0
        Seconds that pass at least between two savings.
    """
    group = Group(
        [module], [data], config or TrainingConfig(), [random_state], stacked=False, ranks=ranks
    )
    group.on_epoch = [on_epoch]
    if checkpoint is not None:
        group.save_to(checkpoint, method, checkpoint_every, checkpoint_seconds)
    return group.train(method, None if pretrained is None else [pretrained])[0]


def pretrain(
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    random_state: int = 0,
    on_epoch: OnEpoch | None = None,
    ranks: dist.ProcessGroup | None = None,
) -> Pretrained:
    """Plain training on the training data, some of which is kept back for calibration."""
    group = Group([module], [data], config, [random_state], stacked=False, ranks=ranks)
    group.on_epoch = [on_epoch]
    return group.pretrain()[0]


def accuracy(net: FunctionalNet, params: Params, x: Tensor, y: Tensor) -> float:
    """Share of points whose largest logit is that of their label."""
    return float((predict_in_blocks(net, params, x).argmax(dim=1) == y).float().mean())


def plain_loss(net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
    """Mean training loss: what pretraining descends."""
    return sample_losses(net(params, as_input(batch.x)), batch.y).mean(), {}


@dataclass
class Group:
    """Trials that take every step together; a single trial is a group of one.

    With ``stacked`` all parameters get a leading dimension of trials and the method's loss is
    vectorised over it. Without, the group has one trial and nothing is added. With ``ranks`` the
    rows of every step are shared among processes.
    """

    modules: Sequence[nn.Module]
    datas: Sequence[Tensors]
    config: TrainingConfig
    random_states: Sequence[int]
    stacked: bool
    on_epoch: Sequence[OnEpoch | None] = ()
    store: Checkpoint | None = None
    saved: Saved | None = None
    ranks: dist.ProcessGroup | None = None
    started: float = field(default_factory=time.perf_counter)
    asked: int = 0  # how often

    def __post_init__(self) -> None:
        self.device = self.datas[0].x_train.device
        module = self.modules[0]
        precision = precision_for(self.config.precision, module, self.device, stacked=self.stacked)
        products = self.stacked or self.device.type == "cuda"
        form = by_products(module) if products else copy.deepcopy(module)
        fuse_norms(form, self.config.fused_norm)
        self.net = FunctionalNet(form.train(), precision)
        if self.ranks is not None:
            if self.stacked:
                raise ValueError("trials side by side are for one process; leave ranks out")
            self.net = ShardedNet(form.train(), precision, group=self.ranks)
        self.flat = FlatData.of(self.datas)

    def save_to(
        self, path: str | os.PathLike[str], method: Method, every: int, seconds: float = 0.0
    ) -> None:
        """Save the run between epochs, and take up what was saved before."""
        identity = run_identity(method, self.config, self.datas, self.random_states)
        self.store = Checkpoint(path, identity, every, seconds)
        load = self.store.load
        self.saved = load() if self.ranks is None else first_rank_loads(load, self.ranks)

    @property
    def _writes(self) -> bool:
        """Whether this process is the one that saves."""
        return self.ranks is None or dist.get_rank(self.ranks) == 0

    def train(
        self, method: Method, pretrained: Sequence[Pretrained] | None = None
    ) -> list[TrainingRecord]:
        """Pretrain where the method asks for it, split, and descend the method's loss."""
        if self.store is None:
            return self._train(method, pretrained)
        with stop_by_interrupt():
            records = self._train(method, pretrained)
            # too late to stop it, but whoever asked wants no more after it
            if asked_to_stop() if self.ranks is None else any_rank_asked(self.ranks, self.device):
                raise Interrupted(self._how_to_go_on("after its last epoch"))
            return records

    def _train(
        self, method: Method, pretrained: Sequence[Pretrained] | None
    ) -> list[TrainingRecord]:
        before = 0.0 if self.saved is None else self.saved.values["seconds"]
        self.started = time.perf_counter() - before
        splits: list[SupportSplit | None]
        if self.saved is not None and self.saved.phase == "train":
            splits = self._saved_splits(self.saved)
            starts = [self._untrained(t) for t in self._trials]
        else:
            if method.pretrains:
                starts = list(pretrained or self.pretrain())
            else:
                starts = [self._untrained(t) for t in self._trials]
            splits = [method.split(self._evidence(t, starts[t])) for t in self._trials]
        params, own = self._params(method, starts, splits)
        optimizer = make_adam(params, own, self.config)
        load_adam_state(optimizer, params, self._join_adam(starts))
        self.net.set_buffers(starts[0].buffers)
        inside, alpha = self._memberships(splits)
        descent = self._descent(method.loss, params, optimizer, inside, alpha)
        streams = [self._stream(t, "train") for t in self._trials]
        history = self._epochs(descent, streams, "train", method.name, splits)
        return self._records(method, params, splits, history)

    def pretrain(self) -> list[Pretrained]:
        """Plain training on the rows that are not kept back."""
        starts = [self._untrained(t) for t in self._trials]
        params = self._join([start.params for start in starts])
        optimizer = make_adam(params, NO_OWN_PARAMS, self.config)
        inside, alpha = self._memberships([None] * len(self.modules))
        descent = self._descent(plain_loss, params, optimizer, inside, alpha)
        streams = [self._stream(t, "pretrain", starts[t].seen) for t in self._trials]
        self._epochs(descent, streams, "pretrain", "pretraining", None)
        moments = adam_state(optimizer, params)
        return [
            Pretrained(
                self._apart(params, t),
                self.net.buffers(),
                trial_adam_state(moments, t) if self.stacked else moments,
                starts[t].seen,
                self.random_states[t],
            )
            for t in self._trials
        ]

    def _epochs(
        self,
        descent: Descent,
        streams: Sequence[BatchStream],
        phase: str,
        name: str,
        splits: Sequence[SupportSplit | None] | None,
    ) -> History:
        """Descend epoch by epoch, from where a saved run of this phase stopped."""
        training = phase == "train"
        epochs = self.config.epochs if training else self.config.pretrain_epochs
        evaluate = self._evaluation(descent) if training else None
        history: History = []
        with self._randomness(phase), self._threads():
            if self.saved is not None and self.saved.phase == phase:
                history = self._resume(self.saved, descent, streams)

            def plan(epoch: int) -> Plan:
                rows = [stream.next_epoch() for stream in streams]
                return descent.plan(rows, (epoch / epochs, (epoch + 1) / epochs))

            first = len(history)
            step, sums = self._steps_taken(phase)
            states = [stream.state() for stream in streams]
            ahead = plan(first) if first < epochs else None
            for epoch in range(first, epochs):
                factor = self.config.rate_factor(epoch) if training else 1.0
                rate = descent.set_rate(factor)
                if ahead is not None:
                    done = descent.run_epoch(ahead, first=step, sums=sums, stop=self._asked)
                    if done < len(ahead.progress):
                        self._stop(descent, states, phase, history, splits, done, epochs)
                step, sums = 0, {}
                hits = evaluate() if evaluate else None
                states = [stream.state() for stream in streams]
                # drawn while the device is still busy
                ahead = plan(epoch + 1) if epoch + 1 < epochs else None
                values = descent.means()
                if training:
                    for trial in values:
                        trial["learning_rate"] = rate
                if hits is not None:
                    for trial, share in zip(values, hits.tolist(), strict=True):
                        trial["test_accuracy"] = share
                self._check_finite(values, name, epoch)
                history.append(values)
                due = self.store is not None and self.store.due(epoch + 1, epochs)
                if self.store is not None and due and self._writes:
                    self.store.save(self._state(descent, states, phase, history, splits))
                for call, trial in zip(self.on_epoch, values, strict=False):
                    if call:
                        call(phase, epoch, trial)
        return history

    def _asked(self) -> bool:
        """Whether to stop before the next step; processes that share a batch stop together."""
        if self.ranks is None:
            return asked_to_stop()
        if self.store is None:
            return False
        self.asked += 1
        return self.asked % STEPS_TO_AGREE == 0 and any_rank_asked(self.ranks, self.device)

    def _steps_taken(self, phase: str) -> tuple[int, Params]:
        """Steps of the first epoch that a saved run has done, and what they logged."""
        if self.saved is None or self.saved.phase != phase or not self.saved.step:
            return 0, {}
        logged = self.saved.tensors["sums"]
        return self.saved.step, {name: logged[name] for name in self.saved.values["logged"]}

    def _stop(
        self,
        descent: Descent,
        states: Sequence[Params],
        phase: str,
        history: History,
        splits: Sequence[SupportSplit | None] | None,
        step: int,
        epochs: int,
    ) -> NoReturn:
        """Save in the middle of an epoch, and say so."""
        where = f"in epoch {len(history) + 1} of {epochs} ({phase})"
        if self.store is not None and self._writes:
            saved = self._state(descent, states, phase, history, splits)
            saved.step, saved.tensors["sums"] = step, descent.sums()
            saved.values["logged"] = list(saved.tensors["sums"])  # in their order
            self.store.save(saved)
        if self.ranks is not None:
            dist.barrier(self.ranks)  # whoever leaves early may take the others with it
        raise Interrupted(self._how_to_go_on(where))

    def _how_to_go_on(self, where: str) -> str:
        if self.store is None:
            return f"training was stopped {where}; it was not being saved"
        return (
            f"training was stopped {where} and is saved in {self.store.path}: start it again with "
            "the same checkpoint, and it goes on from there"
        )

    def _check_finite(self, values: list[dict[str, float]], name: str, epoch: int) -> None:
        for trial in values:
            if not np.isfinite(trial["loss"]):
                raise ValueError(
                    f"{name} diverged in epoch {epoch + 1}: the loss is {trial['loss']}; "
                    f"lower learning_rate (it is {self.config.learning_rate}) or scale the inputs"
                )

    # ------------------------------------------------------------------ state on disk

    def _state(
        self,
        descent: Descent,
        streams: Sequence[Params],
        phase: str,
        history: History,
        splits: Sequence[SupportSplit | None] | None,
    ) -> Saved:
        tensors = {
            "params": dict(descent.params),
            "adam": adam_state(descent.optimizer, descent.params),
            "buffers": self.net.buffers(),
            "random": _random_state(self.device),
        }
        tensors |= {f"stream {t}": state for t, state in enumerate(streams)}
        values: dict[str, Any] = {"history": history, "splits": []}
        values["seconds"] = time.perf_counter() - self.started
        for t, split in enumerate(splits or []):
            parts = None if split is None else split_parts(split)
            values["splits"].append(parts and parts[1])
            if parts:
                tensors[f"split {t}"] = parts[0]
        return Saved(phase, len(history), tensors, values)

    def _resume(self, saved: Saved, descent: Descent, streams: Sequence[BatchStream]) -> History:
        with torch.no_grad():
            for name, p in descent.params.items():
                p.copy_(saved.tensors["params"][name])
        load_adam_state(descent.optimizer, descent.params, saved.tensors.get("adam", {}))
        self.net.set_buffers(saved.tensors.get("buffers", {}))
        for t, stream in enumerate(streams):
            stream.load_state(saved.tensors[f"stream {t}"])
        if self._writes:  # what was saved is the first process's; the others go on with their own
            _set_random_state(saved.tensors["random"], self.device)
        return list(saved.values["history"])

    def _saved_splits(self, saved: Saved) -> list[SupportSplit | None]:
        return [
            None
            if values is None
            else split_from_parts(saved.tensors.get(f"split {t}", {}), values, self.device)
            for t, values in enumerate(saved.values["splits"])
        ]

    # ------------------------------------------------------------------ one trial or many

    @property
    def _trials(self) -> range:
        return range(len(self.modules))

    def _join(self, parts: Sequence[Params]) -> Params:
        """Leaves to train, stacked where trials are."""
        return {
            name: (torch.stack([part[name].detach() for part in parts]) if self.stacked
                   else p.detach().clone()).requires_grad_(p.requires_grad)
            for name, p in parts[0].items()
        }  # fmt: skip

    def _apart(self, params: Params, trial: int) -> Params:
        return {
            name: (p[trial] if self.stacked else p).detach().clone().requires_grad_(p.requires_grad)
            for name, p in params.items()
        }

    def _join_adam(self, starts: Sequence[Pretrained]) -> Params:
        states = [start.optimizer for start in starts]
        return stack_adam_states(states) if self.stacked else states[0]

    def _params(
        self,
        method: Method,
        starts: Sequence[Pretrained],
        splits: Sequence[SupportSplit | None],
    ) -> tuple[Params, OwnParams]:
        """The net's parameters, the method's and its memory, and how its parameters are moved."""
        owns, states = [], []
        for t in self._trials:
            net = FunctionalNet(copy.deepcopy(self.modules[t]).train())
            x = as_input(self.datas[t].x_train[:2])
            owns.append(method.own_params(net, starts[t].params, x, self.random_states[t]))
            states.append(method.state(self._evidence(t, starts[t]), splits[t], starts[t].params))
        params = self._join([start.params for start in starts])
        own = self._join([own.params for own in owns])
        params |= {name: p.requires_grad_() for name, p in own.items()}
        memory = self._join(states)
        params |= {name: p.requires_grad_(False) for name, p in memory.items()}
        return params, owns[0]

    def _untrained(self, trial: int) -> Pretrained:
        generator = seeded_generator(self.random_states[trial], "hold out")
        n, config = len(self.datas[trial].y_train), self.config
        seen = hold_out(n, config.calibration_share, config.max_calibration, generator)
        net = FunctionalNet(self.modules[trial], self.net.precision)
        return Pretrained(net.params(), net.buffers(), {}, seen, self.random_states[trial])

    def _stream(self, trial: int, purpose: str, seen: Tensor | None = None) -> BatchStream:
        data, training = self.datas[trial], purpose == "train"
        rows = torch.arange(len(data.y_train)) if seen is None else seen.nonzero()[:, 0]
        augmentation = self.config.augmentation if training else None
        if augmentation is not None:
            _check_images(data.x_train)
        return BatchStream(
            rows, len(data.y_val) if training else 0, self.config.batch_size,
            random_state=self.random_states[trial], purpose=purpose,
            augmentation=augmentation, side=data.x_train.shape[-1],
        )  # fmt: skip

    def _descent(
        self,
        loss: Loss,
        params: Params,
        optimizer: torch.optim.Optimizer,
        inside: Tensor,
        alpha: Tensor,
    ) -> Descent:
        return Descent(
            loss, self.net, params, optimizer, self.flat, inside, alpha,
            stacked=self.stacked,
            # messages between processes are not recorded with a step
            captured=self.config.cuda_graph and self.ranks is None,
        )  # fmt: skip

    def _evaluation(self, descent: Descent) -> Evaluation | None:
        if any(data.x_test is None or data.y_test is None for data in self.datas):
            return None
        return Evaluation(
            self.net, prediction_params(descent.params), self.datas, stacked=self.stacked,
            captured=self.config.cuda_graph and self.ranks is None,
        )  # fmt: skip

    def _evidence(self, trial: int, start: Pretrained) -> Evidence:
        data, net = self.datas[trial], FunctionalNet(copy.deepcopy(self.modules[trial]).train())
        net.set_buffers(start.buffers)

        def layer(name: str, x: Tensor) -> Tensor:
            parts = [named_layers(net, start.params, as_input(b))[name] for b in x.split(4096)]
            return torch.cat(parts)

        return Evidence(
            data.x_train, data.y_train, data.x_val, data.y_val, start.seen.to(self.device),
            hidden=lambda x: predict_in_blocks(net, start.params, x, hidden=True),
            random_state=start.random_state,
            logits=lambda x: predict_in_blocks(net, start.params, x),
            augmented=self.config.augmentation is not None,
            layers=tuple(named_layers(net, start.params, as_input(data.x_train[:2]))),
            layer=layer,
            trial=trial,
        )  # fmt: skip

    def _memberships(self, splits: Sequence[SupportSplit | None]) -> tuple[Tensor, Tensor]:
        """Membership of all validation points and its mean per trial; zero without a split."""
        inside, alpha = [], []
        for split, data in zip(splits, self.datas, strict=True):
            member = torch.zeros(len(data.y_val)) if split is None else split.membership
            inside.append(torch.as_tensor(member, dtype=torch.float32, device=self.device))
            alpha.append(0.0 if split is None else float(split.alpha))
        member, share = torch.cat(inside), torch.tensor(alpha, device=self.device)
        if self.ranks is not None:  # each process has split, and rounding must not part them
            member, share = first_rank_says(member, share, group=self.ranks)
        return member, share

    def _records(
        self,
        method: Method,
        params: Params,
        splits: Sequence[SupportSplit | None],
        history: History,
    ) -> list[TrainingRecord]:
        seconds = (time.perf_counter() - self.started) / len(self.modules)
        records = []
        for t, split in enumerate(splits):
            net = FunctionalNet(copy.deepcopy(self.modules[t]))
            net.set_buffers(self.net.buffers())
            columns = {name: np.array([e[t][name] for e in history]) for name in history[0][t]}
            settings = {**self.config.as_dict(), "random_state": self.random_states[t]}
            module = net.with_params(self._apart(prediction_params(params), t))
            records.append(TrainingRecord(method.name, module, columns, split, seconds, settings))
        return records

    @contextmanager
    def _threads(self) -> Iterator[None]:
        with threads_for(self.modules[0], self.config.batch_size * len(self.modules), self.device):
            yield

    @contextmanager
    def _randomness(self, phase: str) -> Iterator[None]:
        """Dropout draws from torch's global stream: seed a fork of it and put the old one back."""
        devices = [self.device] if self.device.type == "cuda" else []
        # processes that share a batch hold different rows of it, and drop out on their own
        rank = 0 if self.ranks is None else dist.get_rank(self.ranks)
        purpose = f"{phase} dropout" + f" of rank {rank}" * (rank > 0)
        seed = seeded_generator(self.random_states[0], purpose).initial_seed()
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            yield


def _check_images(x: Tensor) -> None:
    if x.ndim != 4 or x.shape[2] != x.shape[3]:
        raise ValueError(
            f"augmentation moves square images, (n, channels, side, side); "
            f"got inputs of shape {tuple(x.shape)}"
        )


def _random_state(device: torch.device) -> Params:
    state = {"cpu": torch.random.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def _set_random_state(state: Params, device: torch.device) -> None:
    torch.random.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
