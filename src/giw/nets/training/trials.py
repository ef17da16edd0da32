"""Trials of one setting side by side: as many nets, one chain of steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from giw.nets.training.config import TrainingConfig
from giw.nets.training.group import Group
from giw.nets.training.loop import OnEpoch, Run
from giw.nets.training.pretrained import Pretrained
from giw.nets.training.protocol import Method
from giw.nets.training.record import TrainingRecord
from giw.nets.training.tensors import Tensors


def train_trials(
    method: Method,
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    config: TrainingConfig | None = None,
    random_states: Sequence[int] | None = None,
    *,
    pretrained: Sequence[Pretrained] | None = None,
    on_epoch: Callable[[int], OnEpoch] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1,
    checkpoint_seconds: float = 0.0,
    side_by_side: bool | None = None,
) -> list[TrainingRecord]:
    """Train one net per trial, all by the same method.

    Side by side, parameters are stacked and every step moves all trials at once: a GPU that a
    small net leaves idle is then busy. Each trial sees the batches, the split and the augmentation
    that :func:`giw.nets.training.train` gives it, and ends where ``train`` ends, up to rounding.

    Parameters
    ----------
    method : Method
        For example ``giw.nets.methods.GIW()``.
    modules : sequence of torch.nn.Module
        One initialised net per trial, all of one architecture.
    datas : sequence of Tensors
        One problem per trial, on one device.
    config : TrainingConfig, optional
        Epochs, batch size, learning rate and the like.
    random_states : sequence of int, optional
        One per trial; 0, 1, 2, … if not given.
    pretrained : sequence of Pretrained, optional
        Of :func:`pretrain_trials` or :func:`giw.nets.training.pretrain`.
    on_epoch : callable, optional
        From the number of a trial to a callback for its epochs.
    checkpoint, checkpoint_every, checkpoint_seconds
        As in :func:`giw.nets.training.train`; one file holds all trials. Where trials run one after
        the other, the trial's number is added to the name.
    side_by_side : bool, optional
        If not given: whether :func:`can_stack` the nets on their device.

    Returns
    -------
    list of TrainingRecord
        ``seconds`` is a trial's share of the time.
    """
    config = config or TrainingConfig()
    seeds = list(range(len(modules))) if random_states is None else list(random_states)
    _check_trials(modules, datas, seeds, pretrained)
    if _goes_stacked(modules, datas, side_by_side):
        run = _stacked_run(modules, datas, config, seeds, on_epoch)
        if checkpoint is not None:
            run.save_to(checkpoint, method, checkpoint_every, checkpoint_seconds)
        return run.train(method, pretrained)
    records = []
    for t in range(len(modules)):
        group = Group([modules[t]], [datas[t]], config, [seeds[t]], stacked=False)
        run = Run(group, on_epoch=[on_epoch(t) if on_epoch else None])
        if checkpoint is not None:
            path = f"{os.fspath(checkpoint)}.{t}"
            run.save_to(path, method, checkpoint_every, checkpoint_seconds)
        records += run.train(method, None if pretrained is None else [pretrained[t]])
    return records


def pretrain_trials(
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    config: TrainingConfig,
    random_states: Sequence[int] | None = None,
    *,
    on_epoch: Callable[[int], OnEpoch] | None = None,
    side_by_side: bool | None = None,
) -> list[Pretrained]:
    """Pretrain one net per trial, to share the result between methods."""
    seeds = list(range(len(modules))) if random_states is None else list(random_states)
    _check_trials(modules, datas, seeds, None)
    if _goes_stacked(modules, datas, side_by_side):
        return _stacked_run(modules, datas, config, seeds, on_epoch).pretrain()
    found = []
    for t in range(len(modules)):
        group = Group([modules[t]], [datas[t]], config, [seeds[t]], stacked=False)
        found += Run(group, on_epoch=[on_epoch(t) if on_epoch else None]).pretrain()
    return found


def can_stack(module: nn.Module, device: torch.device | str = "cuda") -> bool:
    """Whether trials of a net run side by side by default.

    They do unless the net has buffers (batch normalisation's statistics belong to one trial),
    draws random numbers of its own (dropout), or is large enough to fill a GPU by itself. On a
    CPU, which one net keeps busy, nets with convolutions go one after the other, which is faster;
    nets of small products still gain, because a step is then fewer operations.
    """
    layers = list(module.modules())
    random = any(isinstance(layer, nn.modules.dropout._DropoutNd) for layer in layers)
    convolves = any(isinstance(layer, nn.modules.conv._ConvNd) for layer in layers)
    size = sum(p.numel() for p in module.parameters())
    return (
        not random
        and not any(True for _ in module.buffers())
        and size <= LARGEST_STACKED
        and not (convolves and torch.device(device).type == "cpu")
    )


LARGEST_STACKED = 2_000_000  # parameters; LeNet-5 has 0.06 or 0.2 million, ResNet-18 has 11


def _goes_stacked(
    modules: Sequence[nn.Module], datas: Sequence[Tensors], asked: bool | None
) -> bool:
    if asked is not None or not modules or not datas:
        return bool(asked)
    return can_stack(modules[0], datas[0].x_train.device)


def _stacked_run(
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    config: TrainingConfig,
    seeds: Sequence[int],
    on_epoch: Callable[[int], OnEpoch] | None,
) -> Run:
    if any(True for _ in modules[0].buffers()):
        raise ValueError(
            "nets with buffers (batch normalisation) cannot be stacked; leave side_by_side out "
            "and they are trained one after the other"
        )
    _check_alike(modules, datas, config)
    group = Group(modules, datas, config, seeds, stacked=True)
    return Run(group, on_epoch=[on_epoch(t) if on_epoch else None for t in range(len(modules))])


def _check_trials(
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    seeds: Sequence[int],
    pretrained: Sequence[Pretrained] | None,
) -> None:
    counts = {"modules": len(modules), "datas": len(datas), "random_states": len(seeds)}
    if pretrained is not None:
        counts["pretrained"] = len(pretrained)
    if len(set(counts.values())) > 1 or not len(modules):
        found = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise ValueError(f"need one of each per trial, and at least one trial; got {found}")


def _check_alike(
    modules: Sequence[nn.Module], datas: Sequence[Tensors], config: TrainingConfig
) -> None:
    """Trials that take every step together must agree in all shapes."""
    shapes = [{name: p.shape for name, p in module.named_parameters()} for module in modules]
    if any(other != shapes[0] for other in shapes):
        raise ValueError("trials side by side need nets of one architecture; these differ")
    facts: dict[str, list[Any]] = {
        "device": [data.x_train.device for data in datas],
        "shape of a point": [tuple(data.x_train.shape[1:]) for data in datas],
        "steps per epoch": [-(-len(data.y_train) // config.batch_size) for data in datas],
        "size of a batch": [min(len(data.y_train), config.batch_size) for data in datas],
        "validation points": [len(data.y_val) for data in datas],
        "test points": [0 if data.y_test is None else len(data.y_test) for data in datas],
    }
    for name, found in facts.items():
        if len(set(found)) > 1:
            raise ValueError(
                f"trials side by side must agree in everything but values; {name}: "
                f"{', '.join(str(value) for value in found)}; "
                "pass side_by_side=False to train them one after the other"
            )
