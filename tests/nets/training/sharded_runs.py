"""Every method on a toy problem, with the rows of each step shared among processes or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.nets.training.toy import toy_net, toy_tensors

from giw.nets.methods import METHODS, method_named
from giw.nets.training import (
    Interrupted,
    Tensors,
    TrainingConfig,
    UnusableCheckpoint,
    ask_to_stop,
    train,
)

# 25 rows a step: one process of two has a row more than the other
SHARED = [name for name, method in METHODS.items() if not method.looks_ahead]
CONFIG = TrainingConfig(epochs=2, pretrain_epochs=1, batch_size=25, learning_rate=0.01)


def data() -> Tensors:
    """In double precision, so that rounding is told from mistakes."""
    found = toy_tensors(n=75, m=7)
    return replace(
        found, x_train=found.x_train.double(), x_val=found.x_val.double(),
        x_test=found.x_test.double(),
    )  # fmt: skip


def trained(name: str, **how: Any) -> dict[str, torch.Tensor]:
    """Parameters of the net in the end."""
    record = train(method_named(name), toy_net().double(), data(), CONFIG, random_state=3, **how)
    return dict(record.module.state_dict())


def shared(rank: int, folder: str) -> dict[str, Any]:
    """As one of the processes."""
    world = dist.group.WORLD
    found: dict[str, Any] = {name: trained(name, ranks=world) for name in SHARED}
    try:
        trained("reweight", ranks=world)
    except ValueError as error:
        found["looks ahead"] = str(error)
    found["interrupted"] = interrupted(rank, Path(folder))
    path = Path(folder) / f"damaged, of rank {rank}"
    path.write_text("no checkpoint")
    try:
        trained("diw", ranks=world, checkpoint=path)
    except UnusableCheckpoint as error:
        found["refused"] = str(error)
    return found


def interrupted(rank: int, folder: Path) -> dict[str, Any]:
    """The second process is asked to stop; then both go on. Only the first one has a file."""
    world, path = dist.group.WORLD, folder / f"of rank {rank}"

    def ask(phase: str, epoch: int, _: Any) -> None:
        if rank == 1 and (phase, epoch) == ("train", 0):
            ask_to_stop()

    found: dict[str, Any] = {}
    try:
        trained("giw", ranks=world, checkpoint=path, on_epoch=ask)
    except Interrupted as error:
        found["said"] = str(error)
    found["wrote"] = path.exists()
    found["params"] = trained("giw", ranks=world, checkpoint=path)
    return found
