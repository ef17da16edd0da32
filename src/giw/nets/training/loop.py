"""One loop for all methods: pretrain, split, train."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import torch.distributed as dist
from torch import Tensor, nn

from giw.nets.training.batches import BatchStream
from giw.nets.training.checkpoint import Checkpoint, Saved, run_identity
from giw.nets.training.config import TrainingConfig
from giw.nets.training.descent import Descent, Plan
from giw.nets.training.forward import sample_losses
from giw.nets.training.group import Group
from giw.nets.training.net import FunctionalNet, as_input, predict_in_blocks
from giw.nets.training.optimizer import adam_state, load_adam_state, make_adam, trial_adam_state
from giw.nets.training.pretrained import Pretrained
from giw.nets.training.protocol import NO_OWN_PARAMS, Batch, Logs, Method, Net, Params
from giw.nets.training.ranks import STEPS_TO_AGREE, first_rank_loads
from giw.nets.training.record import History, TrainingRecord
from giw.nets.training.resuming import resume, run_state, saved_splits, steps_taken
from giw.nets.training.stopping import Interrupted, asked_to_stop, stop_by_interrupt
from giw.nets.training.tensors import Tensors
from giw.support import SupportSplit

OnEpoch = Callable[[str, int, dict[str, float]], None]


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
        For example ``giw.nets.methods.GIW()``.
    module : torch.nn.Module
        Initialised net, inputs to logits.
    data : Tensors
        Training and validation data; test data, if any, are used for the history only.
    config : TrainingConfig, optional
        Epochs, batch size, learning rate and the like.
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
    run = Run(group, on_epoch=[on_epoch])
    if checkpoint is not None:
        run.save_to(checkpoint, method, checkpoint_every, checkpoint_seconds)
    return run.train(method, None if pretrained is None else [pretrained])[0]


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
    return Run(group, on_epoch=[on_epoch]).pretrain()[0]


def accuracy(net: FunctionalNet, params: Params, x: Tensor, y: Tensor) -> float:
    """Share of points whose largest logit is that of their label."""
    return float((predict_in_blocks(net, params, x).argmax(dim=1) == y).float().mean())


def plain_loss(net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
    """Mean training loss: what pretraining descends."""
    return sample_losses(net(params, as_input(batch.x)), batch.y).mean(), {}


@dataclass
class Run:
    """One way through pretraining, split and training, for a group of trials.

    It is saved between epochs once :meth:`save_to` has said where.
    """

    group: Group
    on_epoch: Sequence[OnEpoch | None] = ()
    store: Checkpoint | None = None
    saved: Saved | None = None
    started: float = field(default_factory=time.perf_counter)
    asked: int = 0  # how often

    def save_to(
        self, path: str | os.PathLike[str], method: Method, every: int, seconds: float = 0.0
    ) -> None:
        """Save the run between epochs, and take up what was saved before."""
        group = self.group
        identity = run_identity(method, group.config, group.datas, group.random_states)
        self.store = Checkpoint(path, identity, every, seconds)
        load = self.store.load
        self.saved = load() if group.ranks is None else first_rank_loads(load, group.ranks)

    def train(
        self, method: Method, pretrained: Sequence[Pretrained] | None = None
    ) -> list[TrainingRecord]:
        """Pretrain where the method asks for it, split, and descend the method's loss."""
        if self.store is None:
            return self._train(method, pretrained)
        with stop_by_interrupt():
            records = self._train(method, pretrained)
            # too late to stop it, but whoever asked wants no more after it
            if self.group.asked_to_stop():
                raise Interrupted(self._how_to_go_on("after its last epoch"))
            return records

    def _train(
        self, method: Method, pretrained: Sequence[Pretrained] | None
    ) -> list[TrainingRecord]:
        before = 0.0 if self.saved is None else self.saved.values["seconds"]
        self.started = time.perf_counter() - before
        splits: list[SupportSplit | None]
        group, saved = self.group, self._saved_in("train")
        if saved is not None:
            splits = saved_splits(saved, group.device)
            starts = [group.untrained(t) for t in group.trials]
        else:
            if method.pretrains:
                starts = list(pretrained or self.pretrain())
            else:
                starts = [group.untrained(t) for t in group.trials]
            splits = [method.split(group.evidence(t, starts[t])) for t in group.trials]
        params, own = group.params(method, starts, splits)
        optimizer = make_adam(params, own, group.config)
        load_adam_state(optimizer, params, group.join_adam(starts))
        group.net.set_buffers(starts[0].buffers)
        descent = group.descent(method.loss, params, optimizer, splits)
        streams = [group.stream(t, "train") for t in group.trials]
        history = self._epochs(descent, streams, "train", method.name, splits)
        return group.records(method, params, splits, history, self._seconds())

    def pretrain(self) -> list[Pretrained]:
        """Plain training on the rows that are not kept back."""
        group = self.group
        starts = [group.untrained(t) for t in group.trials]
        params = group.join([start.params for start in starts])
        optimizer = make_adam(params, NO_OWN_PARAMS, group.config)
        descent = group.descent(plain_loss, params, optimizer, [None] * len(starts))
        streams = [group.stream(t, "pretrain", starts[t].seen) for t in group.trials]
        self._epochs(descent, streams, "pretrain", "pretraining", None)
        moments = adam_state(optimizer, params)
        return [
            Pretrained(
                group.apart(params, t),
                group.net.buffers(),
                trial_adam_state(moments, t) if group.stacked else moments,
                starts[t].seen,
                group.random_states[t],
            )
            for t in group.trials
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
        group, training = self.group, phase == "train"
        epochs = group.config.epochs if training else group.config.pretrain_epochs
        evaluate = group.evaluation(descent) if training else None
        saved = self._saved_in(phase)
        history: History = []
        with group.randomness(phase), group.threads():
            if saved is not None:
                history = resume(saved, group, descent, streams)

            def plan(epoch: int) -> Plan:
                rows = [stream.next_epoch() for stream in streams]
                return descent.plan(rows, (epoch / epochs, (epoch + 1) / epochs))

            first = len(history)
            step, sums = steps_taken(saved)
            states = [stream.state() for stream in streams]
            ahead = plan(first) if first < epochs else None
            for epoch in range(first, epochs):
                factor = group.config.rate_factor(epoch) if training else 1.0
                rate = descent.set_rate(factor)
                if ahead is not None:
                    done = descent.run_epoch(ahead, first=step, sums=sums, stop=self._asked)
                    if done < len(ahead.progress):
                        self._stop(descent, states, phase, history, splits, done, epochs)
                step, sums = 0, {}
                last = epochs if group.config.test_last is None else group.config.test_last
                tested = evaluate() if evaluate and epoch >= epochs - last else None
                states = [stream.state() for stream in streams]
                # drawn while the device is still busy
                ahead = plan(epoch + 1) if epoch + 1 < epochs else None
                values = descent.means()
                if training:
                    for trial in values:
                        trial["learning_rate"] = rate
                if tested is not None:
                    for trial, (share, loss) in zip(values, tested.T.tolist(), strict=True):
                        trial |= {"test_accuracy": share, "test_loss": loss}
                _check_finite(values, name, epoch, group.config)
                history.append(values)
                due = self.store is not None and self.store.due(epoch + 1, epochs)
                if self.store is not None and due and group.writes:
                    self.store.save(self._state(descent, states, phase, history, splits))
                for call, trial in zip(self.on_epoch, values, strict=False):
                    if call:
                        call(phase, epoch, trial)
        return history

    def _saved_in(self, phase: str) -> Saved | None:
        """What was saved, if it was saved in this phase."""
        return self.saved if self.saved is not None and self.saved.phase == phase else None

    def _seconds(self) -> float:
        """Time that the run has taken, before it was stopped and since."""
        return time.perf_counter() - self.started

    def _state(
        self,
        descent: Descent,
        streams: Sequence[Params],
        phase: str,
        history: History,
        splits: Sequence[SupportSplit | None] | None,
    ) -> Saved:
        seconds = self._seconds()
        return run_state(self.group, descent, streams, phase, history, splits, seconds=seconds)

    def _asked(self) -> bool:
        """Whether to stop before the next step; processes that share a batch stop together."""
        if self.group.ranks is None:
            return asked_to_stop()
        if self.store is None:
            return False
        self.asked += 1
        return self.asked % STEPS_TO_AGREE == 0 and self.group.asked_to_stop()

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
        if self.store is not None and self.group.writes:
            saved = self._state(descent, states, phase, history, splits)
            saved.step, saved.tensors["sums"] = step, descent.sums()
            saved.values["logged"] = list(saved.tensors["sums"])  # in their order
            self.store.save(saved)
        if self.group.ranks is not None:
            dist.barrier(self.group.ranks)  # whoever leaves early may take the others with it
        raise Interrupted(self._how_to_go_on(where))

    def _how_to_go_on(self, where: str) -> str:
        if self.store is None:
            return f"training was stopped {where}; it was not being saved"
        return (
            f"training was stopped {where} and is saved in {self.store.path}: start it again with "
            "the same checkpoint, and it goes on from there"
        )


def _check_finite(
    values: list[dict[str, float]], name: str, epoch: int, config: TrainingConfig
) -> None:
    for trial in values:
        if not np.isfinite(trial["loss"]):
            raise ValueError(
                f"{name} diverged in epoch {epoch + 1}: the loss is {trial['loss']}; "
                f"lower learning_rate (it is {config.learning_rate}) or scale the inputs"
            )
