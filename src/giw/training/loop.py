"""One loop for all methods: pretrain, split, train."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from giw.support import SupportSplit
from giw.training.batches import epoch_batches, hold_out, validation_batches
from giw.training.config import TrainingConfig
from giw.training.forward import sample_losses
from giw.training.net import FunctionalNet, as_input, predict_in_blocks
from giw.training.protocol import Batch, Evidence, Logs, Method, OwnParams, Params
from giw.training.record import TrainingRecord
from giw.training.tensors import Tensors
from giw.training.threads import threads_for

OnEpoch = Callable[[str, int, dict[str, float]], None]


@dataclass(frozen=True)
class Pretrained:
    """Where every method but Val-only starts: parameters, Adam's state, and the rows seen."""

    params: Params
    buffers: Params
    optimizer: dict[str, Any]
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
        Seeds the order of rows, the rows held out, and any dropout in the module.
    pretrained : Pretrained, optional
        Result of :func:`pretrain` with the same module, data, config and random state, to share
        it between methods.
    on_epoch : callable, optional
        Called with the phase (``"pretrain"`` or ``"train"``), the epoch and its values.
    """
    config = config or TrainingConfig()
    net = FunctionalNet(copy.deepcopy(module).train())
    started = time.perf_counter()
    device = data.x_train.device
    threads = threads_for(module, config.batch_size, device)
    with threads, _own_randomness(random_state, device):
        if method.pretrains:
            start = pretrained or pretrain(
                module, data, config, random_state=random_state, on_epoch=on_epoch
            )
        else:
            start = _untrained(net, data, config, random_state)
        params = {
            name: p.detach().clone().requires_grad_(p.requires_grad)
            for name, p in start.params.items()
        }
        net.set_buffers(start.buffers)
        optimizer = _adam(params, config)
        if start.optimizer["state"]:
            optimizer.load_state_dict(copy.deepcopy(start.optimizer))
        own = method.own_params(net, params, as_input(data.x_train[:2]), random_state)
        params |= _add_own(optimizer, own)
        split = method.split(_evidence(net, start, data))
        history = _descend(method, net, params, optimizer, data, split, config, start, on_epoch)
    return TrainingRecord(
        method=method.name,
        module=net.with_params(params),
        history=history,
        split=split,
        seconds=time.perf_counter() - started,
        settings={**config.as_dict(), "random_state": random_state},
    )


def pretrain(
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    random_state: int = 0,
    on_epoch: OnEpoch | None = None,
) -> Pretrained:
    """Plain training on the training data, some of which is kept back for calibration."""
    net = FunctionalNet(copy.deepcopy(module).train())
    start = _untrained(net, data, config, random_state)
    params, device = start.params, data.x_train.device
    optimizer = _adam(params, config)
    generator = _generator(random_state, "pretrain")
    rows = start.seen.nonzero()[:, 0]
    with threads_for(module, config.batch_size, device):
        _pretrain_epochs(net, params, optimizer, data, rows, config, generator, on_epoch)
    return Pretrained(params, net.buffers(), optimizer.state_dict(), start.seen, random_state)


def _pretrain_epochs(
    net: FunctionalNet,
    params: Params,
    optimizer: torch.optim.Optimizer,
    data: Tensors,
    rows: Tensor,
    config: TrainingConfig,
    generator: torch.Generator,
    on_epoch: OnEpoch | None,
) -> None:
    device = data.x_train.device
    for epoch in range(config.pretrain_epochs):
        total = torch.zeros((), device=device)
        batches = rows[epoch_batches(len(rows), config.batch_size, generator)].to(device)
        for batch in batches:
            logits = net(params, as_input(data.x_train[batch]))
            loss = sample_losses(logits, data.y_train[batch]).mean()
            _step(optimizer, params, loss)
            total += loss.detach()
        if on_epoch:
            on_epoch("pretrain", epoch, {"loss": float(total) / len(batches)})


def accuracy(net: FunctionalNet, params: Params, x: Tensor, y: Tensor) -> float:
    """Share of points whose largest logit is that of their label."""
    return float((predict_in_blocks(net, params, x).argmax(dim=1) == y).float().mean())


def _descend(
    method: Method,
    net: FunctionalNet,
    params: Params,
    optimizer: torch.optim.Optimizer,
    data: Tensors,
    split: SupportSplit | None,
    config: TrainingConfig,
    start: Pretrained,
    on_epoch: OnEpoch | None,
) -> dict[str, np.ndarray]:
    """Minimise the method's loss, epoch by epoch."""
    device = data.x_train.device
    generator = _generator(start.random_state, "train")
    inside, alpha = _membership(split, data)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, config.drop_every, config.decay)
    val_rows = validation_batches(len(data.y_val), config.batch_size, generator)
    epochs: list[dict[str, float]] = []
    for epoch in range(config.epochs):
        sums: Logs = {}
        batches = epoch_batches(len(data.y_train), config.batch_size, generator).to(device)
        for step, rows in enumerate(batches):
            val = next(val_rows).to(device)
            done = (epoch + step / len(batches)) / config.epochs
            batch = Batch(
                data.x_train[rows], data.y_train[rows], data.x_val[val], data.y_val[val],
                inside[val], alpha, torch.tensor(done, device=device),
            )  # fmt: skip
            loss, logs = method.loss(net, params, batch)
            _step(optimizer, params, loss)
            for name, value in {"loss": loss, **logs}.items():  # stays on the device
                sums[name] = sums.get(name, 0) + value.detach()
        values = {name: float(value) / len(batches) for name, value in sums.items()}
        values["learning_rate"] = float(schedule.get_last_lr()[0])
        schedule.step()
        if data.x_test is not None and data.y_test is not None:
            values["test_accuracy"] = accuracy(net, params, data.x_test, data.y_test)
        if not np.isfinite(values["loss"]):
            raise ValueError(
                f"{method.name} diverged in epoch {epoch + 1}: the loss is {values['loss']}; "
                f"lower learning_rate (it is {config.learning_rate}) or scale the inputs"
            )
        epochs.append(values)
        if on_epoch:
            on_epoch("train", epoch, values)
    return {name: np.array([values[name] for values in epochs]) for name in epochs[0]}


def _step(optimizer: torch.optim.Optimizer, params: Params, loss: Tensor) -> None:
    trained = [p for p in params.values() if p.requires_grad]
    # a parameter that a loss does not touch (an unused head) simply stays where it is
    gradients = torch.autograd.grad(loss, trained, allow_unused=True)
    for p, gradient in zip(trained, gradients, strict=True):
        p.grad = gradient
    optimizer.step()


def _adam(params: Params, config: TrainingConfig) -> torch.optim.Adam:
    trained = [p for p in params.values() if p.requires_grad]
    return torch.optim.Adam(
        trained, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
    )


def _add_own(optimizer: torch.optim.Optimizer, own: OwnParams) -> Params:
    """Hand a method's own parameters to the optimiser that moves the net's."""
    params = {name: p.detach().clone().requires_grad_() for name, p in own.params.items()}
    if params:
        settings = {"lr": own.learning_rate, "weight_decay": own.weight_decay}
        optimizer.add_param_group({"params": list(params.values()), **settings})
    return params


def _untrained(
    net: FunctionalNet, data: Tensors, config: TrainingConfig, random_state: int
) -> Pretrained:
    generator = _generator(random_state, "hold out")
    seen = hold_out(len(data.y_train), config.calibration_share, config.max_calibration, generator)
    return Pretrained(net.params(), net.buffers(), {"state": {}}, seen, random_state)


def _evidence(net: FunctionalNet, start: Pretrained, data: Tensors) -> Evidence:
    return Evidence(
        data.x_train, data.y_train, data.x_val, data.y_val, start.seen.to(data.x_train.device),
        hidden=lambda x: predict_in_blocks(net, start.params, x, hidden=True),
        random_state=start.random_state,
    )  # fmt: skip


def _membership(split: SupportSplit | None, data: Tensors) -> tuple[Tensor, Tensor]:
    """Membership of each validation point and its mean; nothing is inside without a split."""
    device = data.x_train.device
    if split is None:
        return torch.zeros(len(data.y_val), device=device), torch.zeros((), device=device)
    inside = torch.as_tensor(split.membership, dtype=torch.float32, device=device)
    return inside, torch.as_tensor(split.alpha, dtype=torch.float32, device=device)


def _generator(random_state: int, purpose: str) -> torch.Generator:
    """Independent streams of randomness for each purpose, from one number."""
    words = np.random.SeedSequence([random_state, *purpose.encode()]).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(words[0]) << 31 | int(words[1]) >> 1)


@contextmanager
def _own_randomness(random_state: int, device: torch.device) -> Iterator[None]:
    """Dropout draws from torch's global stream: seed a fork of it and put the old one back."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(random_state)
        yield
