"""Every method on a toy problem, with the rows of each step shared among processes or not."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.methods.two_backwards import slope_by_pulling_back
from tests.training.toy import toy_net, toy_tensors

from giw.methods import METHODS, method_named
from giw.methods.virtual import slope_along
from giw.training import FunctionalNet, Tensors, TrainingConfig, sample_losses, train
from giw.training.sharded_net import ShardedNet

# 25 rows a step: one process of two has a row more than the other
CONFIG = TrainingConfig(epochs=2, pretrain_epochs=1, batch_size=25, learning_rate=0.01)


def data() -> Tensors:
    """In double precision, so that rounding is told from mistakes."""
    found = toy_tensors(n=75, m=7)
    parts = {f.name: getattr(found, f.name) for f in fields(found)}
    return Tensors(**{k: v.double() if v.is_floating_point() else v for k, v in parts.items()})


def trained(name: str, **how: Any) -> dict[str, torch.Tensor]:
    """Parameters of the net in the end."""
    record = train(method_named(name), toy_net().double(), data(), CONFIG, random_state=3, **how)
    return dict(record.module.state_dict())


def slopes(net: FunctionalNet) -> dict[str, torch.Tensor]:
    """A product of derivatives by both roads, one of which differentiates twice."""
    d = data()
    params = {name: p.detach() for name, p in net.params().items()}
    way = {name: torch.ones_like(p) for name, p in params.items()}

    def losses(p: Any) -> torch.Tensor:
        return sample_losses(net(p, d.x_train[:9]), d.y_train[:9])

    return {
        "forward": slope_along(losses, params, way),
        "backward twice": slope_by_pulling_back(losses, params, way),
    }


def shared(rank: int, folder: str) -> dict[str, Any]:
    """As one of the processes."""
    world = dist.group.WORLD
    found: dict[str, Any] = {name: trained(name, ranks=world) for name in METHODS}
    found["slopes"] = slopes(ShardedNet(toy_net().double(), group=world))
    path = Path(folder) / f"of rank {rank}"
    trained("diw", ranks=world, checkpoint=path)
    found["wrote"] = path.exists()
    try:  # the first process has a file to go on from, the second has none
        trained("diw", ranks=world, checkpoint=path)
    except ValueError as error:
        found["refused"] = str(error)
    return found
