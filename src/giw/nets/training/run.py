"""One run for all methods: pretrain, split, train, and what is left of it."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from giw.nets.kernels.devices import (
    FunctionalNet,
    can_stack,
    check_shardable,
    first_says,
    precision_for,
    random_state,
    seeded_generator,
    seeded_stream,
    set_random_state,
    threads_for,
)
from giw.nets.kernels.products import by_products
from giw.nets.training.checkpoint import (
    Checkpoint,
    Interrupted,
    Saved,
    UnusableCheckpoint,
    asked_to_stop,
    saved_splits,
    split_parts,
    stop_by_interrupt,
)
from giw.nets.training.protocol import (
    Evidence,
    Method,
    Params,
    Pretrained,
    State,
    TrainingConfig,
    TrainingRecord,
    layer_outputs,
    plain_loss,
    predict_in_blocks,
)
from giw.nets.training.step import (
    BatchStream,
    Descent,
    JoinedData,
    LossFunction,
    Phase,
    Plan,
    Splits,
    Tensors,
    adam_state,
    alike,
    hold_out,
    load_adam_state,
    make_adam,
    score_of,
)

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
    checkpoint_seconds: float = 0.0,
    ranks: dist.ProcessGroup | None = None,
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
        run after its epoch; a second one stops it at once.
    checkpoint_seconds : float, default=0.0
        Seconds that pass at least between two savings.
    ranks : torch.distributed.ProcessGroup, optional
        Processes that share the rows of every batch. All call with the same module, data, config
        and random state, and all get the same record: that of a single process up to rounding
        (and up to the draws of dropout). The first one alone writes the checkpoint and reads it,
        for all. Ctrl-C, wherever it is heard, stops all of them after the same epoch.
    """
    run = Run([module], [data], config or TrainingConfig(), [random_state], [on_epoch], ranks=ranks)
    run.save_to(checkpoint, method, checkpoint_seconds)
    return run.train(method, None if pretrained is None else [pretrained])[0]


def pretrain(
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    random_state: int = 0,
    on_epoch: OnEpoch | None = None,
) -> Pretrained:
    """Plain training on the training data, some of which is kept back for calibration."""
    return Run([module], [data], config, [random_state], [on_epoch]).pretrain()[0]


def train_trials(
    method: Method,
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    config: TrainingConfig | None = None,
    random_states: Sequence[int] | None = None,
    *,
    pretrained: Sequence[Pretrained] | None = None,
    on_epoch: Callable[[int], OnEpoch | None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 0.0,
    side_by_side: bool | None = None,
) -> list[TrainingRecord]:
    """Train one net per trial, all by the same method.

    Side by side, parameters are stacked and every step moves all trials at once: a GPU that a
    small net leaves idle is then busy. Each trial sees the batches, the split and the augmentation
    that :func:`train` gives it, and ends where ``train`` ends, up to rounding.

    Parameters are those of :func:`train`, one of each per trial; seeds are 0, 1, 2, … if not given,
    and ``on_epoch`` makes a callback from the number of a trial. One checkpoint holds all trials;
    where they run one after the other, the trial's number is added to its name. ``side_by_side``
    is whether they do; if not given, :func:`can_stack` decides. ``seconds`` of a record are the
    trial's share of the time.
    """
    runs = _runs(modules, datas, config, random_states, on_epoch, side_by_side, pretrained)
    records = []
    for t, run in enumerate(runs):
        path = checkpoint if checkpoint is None or run.stacked else f"{os.fspath(checkpoint)}.{t}"
        run.save_to(path, method, checkpoint_seconds)
        starts = pretrained if pretrained is None or run.stacked else [pretrained[t]]
        records += run.train(method, starts)
    return records


def pretrain_trials(
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    config: TrainingConfig,
    random_states: Sequence[int] | None = None,
    *,
    on_epoch: Callable[[int], OnEpoch | None] | None = None,
    side_by_side: bool | None = None,
) -> list[Pretrained]:
    """Pretrain one net per trial, to share the result between methods."""
    runs = _runs(modules, datas, config, random_states, on_epoch, side_by_side)
    return [start for run in runs for start in run.pretrain()]


def _runs(
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    config: TrainingConfig | None,
    random_states: Sequence[int] | None,
    on_epoch: Callable[[int], OnEpoch | None] | None,
    side_by_side: bool | None,
    pretrained: Sequence[Pretrained] | None = None,
) -> list[Run]:
    """One run of all trials where they go side by side, else one run each."""
    seeds = range(len(modules)) if random_states is None else random_states
    counts = {"modules": len(modules), "datas": len(datas), "random_states": len(seeds)}
    if pretrained is not None:
        counts["pretrained"] = len(pretrained)
    if len(set(counts.values())) > 1 or not len(modules):
        found = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise ValueError(f"need one of each per trial, and at least one trial; got {found}")
    config = config or TrainingConfig()
    calls = [on_epoch(t) if on_epoch else None for t in range(len(modules))]
    same = alike(modules, datas, config.batch_size)
    if side_by_side and not same:
        raise ValueError(
            "trials side by side need nets of one architecture without batch normalisation, on one "
            "device, and data of the same sizes; leave side_by_side out and those that differ are "
            "trained one after the other"
        )
    if side_by_side is None:
        side_by_side = same and can_stack(modules[0], datas[0].x_train.device)
    if side_by_side:
        return [Run(modules, datas, config, seeds, calls, stacked=True)]
    each = zip(modules, datas, seeds, calls, strict=True)
    return [Run([module], [data], config, [seed], [call]) for module, data, seed, call in each]


# The run ------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One way through pretraining, split and training, for trials that take every step together.

    With ``stacked`` all parameters get a leading dimension of trials and the method's loss is
    vectorised over it. Without, there is one trial and nothing is added. With ``ranks`` the rows
    of every step are shared among processes. It is saved between epochs once :meth:`save_to` has
    said where.
    """

    modules: Sequence[nn.Module]
    datas: Sequence[Tensors]
    config: TrainingConfig
    seeds: Sequence[int]
    on_epoch: Sequence[OnEpoch | None]
    stacked: bool = False
    ranks: dist.ProcessGroup | None = None

    def __post_init__(self) -> None:
        self.device, module = self.datas[0].x_train.device, self.modules[0]
        precision = precision_for(self.config.precision, module, self.device, stacked=self.stacked)
        products = self.stacked or self.device.type == "cuda"
        form = by_products(module) if products else copy.deepcopy(module)
        self.net = FunctionalNet(form.train(), precision, self.ranks)
        self.data = JoinedData.of(self.datas)
        self.rank = 0 if self.ranks is None else dist.get_rank(self.ranks)
        self.store: Checkpoint | None = None
        self.saved: Saved | None = None

    def save_to(self, path: str | os.PathLike[str] | None, method: Method, seconds: float) -> None:
        """Save the run between epochs, and take up what was saved; nothing without a path."""
        if path is None:
            return
        described = repr(method)
        identity = {
            "method": method.name if " at 0x" in described else described,
            "random_states": list(self.seeds),
            "data": [data.checksum for data in self.datas],
            **asdict(self.config),
        }
        self.store = Checkpoint(path, identity, seconds)
        found: tuple[Saved | None, str] = None, ""
        if self.rank == 0:
            try:
                found = self.store.load(), ""
            except UnusableCheckpoint as error:
                found = None, str(error)
        # the others need not see the disk of the first process, but must start where it starts
        self.saved, refused = first_says(found, self.ranks)
        if refused:
            raise UnusableCheckpoint(refused)

    def train(
        self, method: Method, pretrained: Sequence[Pretrained] | None = None
    ) -> list[TrainingRecord]:
        """Pretrain where the method asks for it, split, and descend the method's loss."""
        if self.ranks is not None:
            check_shardable(self.modules[0], method)
        saved = self._saved_in("train")
        before = 0.0 if self.saved is None else self.saved.values["seconds"]
        self.started = time.perf_counter() - before
        with nullcontext() if self.store is None else stop_by_interrupt():
            starts = self._untrained()
            if method.pretrains and saved is None:
                starts = list(pretrained or self.pretrain())
            shown = [self._evidence(t, start) for t, start in enumerate(starts)]
            if saved is None:
                splits = [method.split(evidence) for evidence in shown]
            else:
                splits = saved_splits(saved, self.device)
            states = [method.state(*trial) for trial in zip(shown, splits, strict=True)]
            rates = method.learning_rate, method.weight_decay
            phase = self._phase("train", method.loss, starts, splits, states, rates)
            self._epochs(phase, method.name)
        return self._records(method.name, phase)

    def pretrain(self) -> list[Pretrained]:
        """Plain training on the rows that are not kept back."""
        starts = self._untrained()
        phase = self._phase("pretrain", plain_loss, starts, [None] * len(starts))
        self._epochs(phase, "pretraining")
        moments = adam_state(phase.descent.optimizer)
        return [
            Pretrained(self._apart(phase.descent.params, t), self.net.buffers(),
                       self._apart(moments, t, common=".step"), start.seen)
            for t, start in enumerate(starts)
        ]  # fmt: skip

    def _epochs(self, phase: Phase, of: str) -> None:
        """Descend epoch by epoch, from where a saved run of this phase stopped."""
        descent, training, config = phase.descent, phase.name == "train", self.config
        tests = training and all(d.x_test is not None and d.y_test is not None for d in self.datas)
        # Dropout draws from torch's global stream: a fork of it is seeded and the old one put back.
        # Processes that share a batch hold different rows of it, and drop out on their own.
        purpose = f"{phase.name} dropout" + f" of rank {self.rank}" * (self.rank > 0)
        seed = seeded_generator(self.seeds[0], purpose).initial_seed()
        with seeded_stream(seed, self.device), threads_for(self.modules[0], self.device):
            self._resume(phase)
            ahead: Plan | None = None
            for epoch in range(len(phase.history), phase.epochs):
                rate = descent.set_rate(config.rate_factor(epoch) if training else 1.0)
                descent.run_epoch(ahead or phase.plan(epoch))
                late = epoch >= phase.epochs - (config.test_last or phase.epochs)
                found = score_of(descent, self.datas) if tests and late else None
                read = [stream.state() for stream in phase.streams]
                if epoch + 1 < phase.epochs:  # drawn while the device is still busy
                    ahead = phase.plan(epoch + 1)
                values = descent.means()
                for t, trial in enumerate(values):
                    if training:
                        trial["learning_rate"] = rate
                    if found is not None:
                        trial["test_accuracy"], trial["test_loss"] = found[:, t].tolist()
                    if not np.isfinite(trial["loss"]):
                        raise ValueError(
                            f"{of} diverged in epoch {epoch + 1}: the loss is {trial['loss']}; "
                            f"lower learning_rate (it is {config.learning_rate}) or scale the "
                            "inputs"
                        )
                phase.history.append(values)
                for call, trial in zip(self.on_epoch, values, strict=True):
                    if call:
                        call(phase.name, epoch, trial)
                self._pause(phase, read)

    # Saving, stopping and going on ----------------------------------------------------------------

    def _pause(self, phase: Phase, read: list[Params]) -> None:
        """Save the run after an epoch where it is time to, and stop it where that was asked for.

        ``read`` are the states of the streams as they were after the epochs in the history.
        """
        epoch, stop = len(phase.history), asked_to_stop()
        if self.ranks is not None:  # all stop together
            asked = torch.tensor(float(stop), device=self.device)
            dist.all_reduce(asked, op=dist.ReduceOp.MAX, group=self.ranks)
            stop = bool(asked)
        if self.store and self.rank == 0 and (stop or self.store.due(epoch, phase.epochs)):
            tensors = phase.descent.snapshot() | {"random": random_state(self.device)}
            tensors |= {f"stream {t}": state for t, state in enumerate(read)}
            splits, numbers = split_parts(phase.splits)
            values = {
                "history": phase.history,
                "seconds": time.perf_counter() - self.started,
                "splits": numbers,
            }
            self.store.save(Saved(phase.name, epoch, tensors | splits, values))
        if not stop:
            return
        if self.ranks is not None:
            dist.barrier(self.ranks)  # whoever leaves early may take the others with it
        where = f"training was stopped after epoch {epoch} of {phase.epochs} ({phase.name})"
        if self.store is None:
            raise Interrupted(f"{where}; it was not being saved")
        raise Interrupted(
            f"{where} and is saved in {self.store.path}: start it again with the same checkpoint, "
            "and it goes on from there"
        )

    def _resume(self, phase: Phase) -> None:
        """Put back all that was saved of this phase."""
        saved = self._saved_in(phase.name)
        if saved is None:
            return
        phase.descent.restore(saved.tensors)
        for t, stream in enumerate(phase.streams):
            stream.load_state(saved.tensors[f"stream {t}"])
        if self.rank == 0:  # what was saved is the first process's; the others go on with their own
            set_random_state(saved.tensors["random"], self.device)
        phase.history += saved.values["history"]

    def _saved_in(self, phase: str) -> Saved | None:
        """What was saved, if it was saved in this phase."""
        return self.saved if self.saved is not None and self.saved.phase == phase else None

    # Trials joined for the steps, and taken apart again -------------------------------------------

    def _join(self, parts: Sequence[Params], common: str | tuple[str, ...] = ()) -> Params:
        """Leaves to train, stacked where trials are; names that end so are common to all."""
        return {
            name: (torch.stack([part[name].detach() for part in parts])
                   if self.stacked and not name.endswith(common)
                   else p.detach().clone()).requires_grad_(p.requires_grad)
            for name, p in parts[0].items()
        }  # fmt: skip

    def _apart(self, tensors: Params, trial: int, common: str | tuple[str, ...] = ()) -> Params:
        """One trial's share of what was joined, copied."""
        return {
            name: (p[trial] if self.stacked and not name.endswith(common) else p)
            .detach().clone().requires_grad_(p.requires_grad)
            for name, p in tensors.items()
        }  # fmt: skip

    def _untrained(self) -> list[Pretrained]:
        """Nets as they were initialised, and the rows that pretraining would see."""
        share, most, starts = self.config.calibration_share, self.config.max_calibration, []
        for module, data, seed in zip(self.modules, self.datas, self.seeds, strict=True):
            seen = hold_out(len(data.y_train), share, most, seeded_generator(seed, "hold out"))
            net = FunctionalNet(module, self.net.precision)
            starts.append(Pretrained(net.params(), net.buffers(), {}, seen))
        return starts

    def _evidence(self, trial: int, start: Pretrained) -> Evidence:
        """What a method may look at before it trains a net."""
        data, net = self.datas[trial], FunctionalNet(copy.deepcopy(self.modules[trial]).train())
        net.set_buffers(start.buffers)
        return Evidence(
            data.x_train, data.y_train, data.x_val, data.y_val, start.seen.to(self.device),
            hidden=lambda x: predict_in_blocks(net, start.params, x, hidden=True),
            random_state=self.seeds[trial],
            logits=lambda x: predict_in_blocks(net, start.params, x),
            layers=lambda x: layer_outputs(net, start.params, x),
            weight=data.weight,
        )  # fmt: skip

    def _phase(
        self,
        name: str,
        loss: LossFunction,
        starts: Sequence[Pretrained],
        splits: Splits,
        states: Sequence[State] = (State(),),
        rates: tuple[float, float] = (0.0, 0.0),
    ) -> Phase:
        """Steps down a loss from where trials start, all at once, and the rows they see.

        Images are moved, and validation data and rows kept back are seen, in training only.
        """
        config, training = self.config, name == "train"
        params = self._join([start.params for start in starts])
        state = states[0].with_tensors(self._join([state.tensors() for state in states]))
        optimizer = make_adam(params, state, config, *rates)
        load_adam_state(optimizer, self._join([s.optimizer for s in starts], common=".step"))
        self.net.set_buffers(starts[0].buffers)
        streams, member = [], []
        augmentation = config.augmentation if training else None
        for data, start, split, seed in zip(self.datas, starts, splits, self.seeds, strict=True):
            x, m = data.x_train, len(data.y_val)
            if augmentation is not None and (x.ndim != 4 or x.shape[2] != x.shape[3]):
                raise ValueError(
                    f"augmentation moves square images, (n, channels, side, side); "
                    f"got inputs of shape {tuple(x.shape)}"
                )
            rows = torch.arange(len(x)) if training else start.seen.nonzero()[:, 0]
            streams.append(BatchStream(
                rows, m if training else 0, config.batch_size, seed, name,
                augmentation=augmentation, side=x.shape[-1],
                weight=None if data.weight is None else data.weight.cpu()[rows],
                over_val=training and config.epoch_of == "val",
            ))  # fmt: skip
            # membership of each validation point; zero without a split
            member.append(torch.zeros(m) if split is None else torch.as_tensor(split.membership))
        shares = [0.0 if split is None else float(split.alpha) for split in splits]
        # each process has split, and rounding must not part them
        inside, alpha = first_says((torch.cat(member).float().cpu(), shares), self.ranks)
        descent = Descent(
            loss, self.net, params, state, optimizer, self.data, inside.to(self.device),
            torch.tensor(alpha, device=self.device), stacked=self.stacked,
            # messages between processes are not recorded with a step
            captured=config.cuda_graph and self.ranks is None,
        )  # fmt: skip
        epochs = config.epochs if training else config.pretrain_epochs
        return Phase(name, epochs, descent, streams, splits)

    def _records(self, name: str, phase: Phase) -> list[TrainingRecord]:
        """What is left of each trial; the seconds are those of all of them."""
        share = (time.perf_counter() - self.started) / len(self.modules)
        records = []
        for t, (module, split) in enumerate(zip(self.modules, phase.splits, strict=True)):
            params = self._apart(phase.descent.params, t)
            trained = FunctionalNet(module).with_params(params, self.net.buffers())
            columns = {
                key: np.array([epoch[t].get(key, np.nan) for epoch in phase.history])
                for key in phase.history[-1][t]  # the first ones may not have been tested
            }
            records.append(TrainingRecord(name, trained, columns, split, share))
        return records
