"""A few steps of GIW on one batch, alone or with the batch shared among processes."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import giw

STEPS, N, M, D = 4, 12, 7, 3
CASES = {  # rows of the first process: training, validation (None: all have the same)
    "even": (6, 3),
    "uneven": (8, 2),
    "same validation": (5, None),
}


def batches() -> list[tuple[Tensor, ...]]:
    """Training points, labels, validation points, labels and membership of every step."""
    g = torch.Generator().manual_seed(0)
    return [
        (
            torch.randn(N, D, generator=g, dtype=torch.float64),
            torch.randint(2, (N,), generator=g),
            torch.randn(M, D, generator=g, dtype=torch.float64) + 1,
            torch.randint(2, (M,), generator=g),
            torch.rand(M, generator=g, dtype=torch.float64),
        )
        for _ in range(STEPS)
    ]


def descend(
    net: nn.Module, objective: giw.GIWObjective, train: slice, val: slice, *, on_inputs: bool
) -> Any:
    """Weights of every step on these rows, risks, and the parameters at the end."""
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    weights, risks, rows = [], [], torch.arange(M)[val]
    for x, y, x_val, y_val, inside_all in batches():
        x, y, x_val, y_val = x[train], y[train], x_val[val], y_val[val]
        loss = cross_entropy(net(x), y, reduction="none")
        val_loss = cross_entropy(net(x_val), y_val, reduction="none")
        z = {"train_z": x, "val_z": x_val} if on_inputs else {}
        objective.membership = inside_all  # batches here have a split of their own each
        risk = objective(loss, val_loss, rows, **z)
        optimizer.zero_grad()
        risk.backward()
        optimizer.step()
        weights.append(objective.weight_)
        risks.append(risk.detach())
    return weights, risks, [p.detach().clone() for p in net.parameters()]


def new_net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(D, 8), nn.Tanh(), nn.Linear(8, 2)).double()


def alone(*, on_inputs: bool) -> Any:
    return descend(
        new_net(), giw.GIWObjective([0.5] * M), slice(None), slice(None), on_inputs=on_inputs
    )


def shared(rank: int) -> dict[str, Any]:
    """Every case, as one of two processes."""
    found: dict[str, Any] = {}
    for name, (first_train, first_val) in CASES.items():
        train = slice(first_train) if rank == 0 else slice(first_train, None)
        val = slice(None)
        if first_val is not None:
            val = slice(first_val) if rank == 0 else slice(first_val, None)
        for on_inputs in (False, True):
            objective = giw.GIWObjective(
                [0.5] * M, group=dist.group.WORLD, shared_val=first_val is None
            )
            net = DistributedDataParallel(new_net())
            found[f"{name}, {on_inputs}"] = descend(net, objective, train, val, on_inputs=on_inputs)
    z = {"train_z": torch.zeros(2, 1 + rank), "val_z": torch.zeros(1, 1 + rank)}
    try:
        giw.GIWObjective([0.5], group=dist.group.WORLD)(torch.ones(2), torch.ones(1), **z)
    except ValueError as error:
        found["refused"] = str(error)
    return found
