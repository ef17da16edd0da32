"""Processes that share a batch on one GPU: what one process finds, and what a step takes.

    python benchmarks/ranks_on_gpu.py                  # NCCL alone, then gloo by two on one GPU
    python benchmarks/ranks_on_gpu.py --device cpu     # gloo alone and by two, without a GPU

NCCL wants a GPU for each process, so that one GPU holds a group of one; two processes share it over
gloo. Both roads of docs/saving.md are compared with one process that knows of no group, in double
precision: `GIWObjective` under DistributedDataParallel, and `giw.nets.training.train(..., ranks=)`.
Exit code 1 if a weight or a parameter differs by more than rounding.

Steps are then timed in single precision, and put beside the model of benchmarks/scaling.py with the
rates of this device. Messages are timed alone and added to it. Wall milliseconds, medians.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import giw
from giw.nets.methods import method_named
from giw.nets.models import MLP
from giw.nets.training import Batch, Tensors, TrainingConfig, train
from giw.nets.training.protocol import FunctionalNet
from scaling import CLASSES, HIDDEN, INPUTS, a_batch, a_step, n_params

STEPS, N, M = 5, 256, 101  # of the comparison; an odd number of rows makes parts of unequal size
METHODS = ("giw", "diw", "giw_plus", "dann")
ROUNDING = 1e-8
SIZES = {"cuda": (256, 1024, 4096, 8192), "cpu": (64, 256)}
CONFIG = TrainingConfig(
    epochs=2, pretrain_epochs=1, batch_size=64, precision="float32", cuda_graph=False
)


def on(device: str, batch: Batch) -> Batch:
    """The same batch on a device."""
    return Batch(*(part.to(device) if isinstance(part, Tensor) else part for part in batch))


def wall_seconds(work: Callable[[], Any], device: str, *, least: float = 0.3) -> float:
    """Seconds of one call: the median over calls that fill ``least`` seconds, two at least."""

    def synchronise() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(3):  # kernels are compiled, memory is laid out
        work()
    synchronise()
    took: list[float] = []
    # the same number of calls in every process, or they would wait for each other for ever
    start = time.perf_counter()
    work()
    synchronise()
    calls = min(200, max(3, round(least / (time.perf_counter() - start))))
    if dist.is_initialized():
        agreed = torch.tensor(calls, device=device)
        dist.broadcast(agreed, src=0)
        calls = int(agreed)
    for _ in range(calls):
        start = time.perf_counter()
        work()
        synchronise()
        took.append(time.perf_counter() - start)
    return float(np.median(took))


def descend(device: str, group: dist.ProcessGroup | None) -> dict[str, Tensor]:
    """A few steps of `GIWObjective`, under DistributedDataParallel where there is a group."""
    rank, ranks = (0, 1) if group is None else (dist.get_rank(group), dist.get_world_size(group))
    torch.manual_seed(0)
    module = MLP(INPUTS, CLASSES, (64,)).double().to(device)
    net = module if group is None else DistributedDataParallel(module)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    weights = []
    for _ in range(STEPS):
        x = torch.randn(N + M, INPUTS, generator=generator, dtype=torch.float64)
        y = torch.randint(CLASSES, (N + M,), generator=generator)
        inside = (torch.rand(M, generator=generator) < 0.6).double()
        rows, val = (torch.arange(size).tensor_split(ranks)[rank] for size in (N, M))
        both = torch.cat([rows, N + val])
        losses = cross_entropy(net(x[both].to(device)), y[both].to(device), reduction="none")
        objective = giw.GIWObjective(inside, group=group)
        loss = objective(losses[: len(rows)], losses[len(rows) :], val)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weights.append(objective.weight_.cpu())
    return {
        "weights": torch.cat(weights).reshape(STEPS, -1),
        "parameters": torch.cat([p.detach().reshape(-1) for p in module.parameters()]).cpu(),
    }


def trained(name: str, device: str, group: dist.ProcessGroup | None) -> Tensor:
    """Parameters after training by a method."""
    generator = torch.Generator().manual_seed(2)

    def draw(n: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(n, 8, generator=generator, dtype=torch.float64)
        return x.to(device), (x[:, 0] > 0).long().to(device)

    torch.manual_seed(3)
    module = MLP(8, 2, (16,)).double().to(device)
    data = Tensors(*draw(333), *draw(21))
    record = train(method_named(name), module, data, CONFIG, random_state=4, ranks=group)
    return torch.cat([p.detach().reshape(-1) for p in record.module.parameters()]).cpu()


def step_seconds(device: str, group: dist.ProcessGroup | None) -> dict[int, float]:
    """Seconds of a step of GIW against the size of the batch."""
    module = MLP(INPUTS, CLASSES, HIDDEN).to(device)
    net = FunctionalNet(module, group=group)
    return {n: wall_seconds(a_step(net, on(device, a_batch(n, n))), device) for n in SIZES[device]}


def message_seconds(device: str) -> dict[str, float]:
    """Seconds of the messages of a step, alone: gradients to sum, outputs to gather."""
    ranks = dist.get_world_size()
    gradients = torch.zeros(n_params(), device=device)
    found = {"sum": wall_seconds(lambda: dist.all_reduce(gradients), device)}
    for n in SIZES[device]:
        mine = torch.zeros(2 * n // ranks, CLASSES, device=device)
        all_rows = [torch.empty_like(mine) for _ in range(ranks)]
        found[f"gather {n}"] = wall_seconds(
            lambda mine=mine, all_rows=all_rows: dist.all_gather(all_rows, mine), device
        )
    return found


def everything(device: str, group: dist.ProcessGroup | None) -> dict[str, Any]:
    """All that is compared or timed."""
    found: dict[str, Any] = {"objective": descend(device, group)}
    found["methods"] = {name: trained(name, device, group) for name in METHODS}
    found["steps"] = step_seconds(device, group)
    if group is not None:
        found["messages"] = message_seconds(device)
    return found


def as_rank(rank: int, count: int, backend: str, device: str, folder: str) -> None:
    """One of the processes."""
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group(
        backend, init_method=(Path(folder) / "meeting").as_uri(), rank=rank, world_size=count,
        timeout=timedelta(seconds=50),
    )  # fmt: skip
    try:
        torch.save(everything(device, dist.group.WORLD), Path(folder) / f"{rank}.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()


def in_processes(count: int, backend: str, device: str) -> list[dict[str, Any]]:
    """What each process of a group found."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(as_rank, args=(count, backend, device, folder), nprocs=count)
        return [torch.load(Path(folder) / f"{rank}.pt") for rank in range(count)]


def differences(alone: dict[str, Any], found: list[dict[str, Any]]) -> dict[str, float]:
    """Largest difference from one process, in every comparison and on every process."""

    def largest(a: Tensor, b: Tensor) -> float:
        return float((a - b).abs().max())

    together = torch.cat([rank["objective"]["weights"] for rank in found], dim=1)
    own = alone["objective"]
    result = {
        "weights, objective under DDP": largest(together, own["weights"]),
        "parameters, objective under DDP": max(
            largest(rank["objective"]["parameters"], own["parameters"]) for rank in found
        ),
    }
    for name in METHODS:
        result[f"parameters, trained by {name}"] = max(
            largest(rank["methods"][name], alone["methods"][name]) for rank in found
        )
    return result


def model_seconds(device: str) -> Callable[[int, int], float]:
    """Seconds of a step's computing by rates of this device, for a batch and a number of processes.

    On one GPU the processes take turns: rows are shared, so that their net takes as long as one
    process's, and each solves for all weights.
    """
    a, big = (torch.randn(*shape, device=device) for shape in ((2048, 2048), (8192, 8192)))
    product = 2 * 2048**3 / wall_seconds(lambda: a @ a, device)
    exp = 8192**2 / wall_seconds(lambda: big.exp(), device)
    print(f"{product / 1e9:,.0f} GFLOP/s in products, {exp / 1e9:,.2f} G exp/s")

    def model(n: int, processes: int) -> float:
        turns = processes if device == "cuda" else 1
        net = 6 * n_params() * 2 * n / product / (1 if device == "cuda" else processes)
        return net + turns * (2 * n * n / exp + n**3 / 3 / product)

    return model


def compare(backend: str, count: int, device: str, alone: dict[str, Any], model: Any) -> bool:
    """Print a group's differences and times; whether it found what one process finds."""
    found = in_processes(count, backend, device)
    print(f"\n{backend}, {count} process{'es' * (count > 1)}: largest difference from one process")
    same = True
    for name, difference in differences(alone, found).items():
        same = same and difference <= ROUNDING
        print(
            f"  {name:<36} {difference:8.1e}  {'same' if difference <= ROUNDING else 'DIFFERENT'}"
        )
    messages = {key: max(r["messages"][key] for r in found) for key in found[0]["messages"]}
    print(f"  sum of {n_params() / 1e6:.2f} M gradients, alone: {1e3 * messages['sum']:.2f} ms")
    print(
        f"  {'step, n = m':<14} {'computing':>10} {'messages':>10} {'model':>8} "
        f"{'measured':>9}  (ms)"
    )
    for n in SIZES[device]:
        # training and validation rows go through the net together: one gathering, one sum
        said = messages["sum"] + messages[f"gather {n}"]
        computing, measured = model(n, count), max(r["steps"][n] for r in found)
        row = (computing, said, computing + said, measured)
        print(f"  {n:<14,} " + "{:10.2f} {:10.2f} {:8.2f} {:9.2f}".format(*(1e3 * s for s in row)))
    return same


def main() -> None:
    """One process, then the groups."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = parser.parse_args().device
    if device == "cuda" and not torch.cuda.is_available():
        parser.error("no CUDA device here; --device cpu tries the same over gloo")
    # all processes are on this machine, whatever its name resolves to
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    start = time.perf_counter()
    where = torch.cuda.get_device_name() if device == "cuda" else "one CPU thread a process"
    print(f"torch {torch.__version__}, {where}")
    model = model_seconds(device)
    alone = everything(device, None)
    print("\none process, no group")
    print(f"  {'step, n = m':<14} {'model':>8} {'measured':>9}  (ms)")
    for n, seconds in alone["steps"].items():
        print(f"  {n:<14,} {1e3 * model(n, 1):8.2f} {1e3 * seconds:9.2f}")
    first = "nccl" if device == "cuda" else "gloo"
    same = [compare(*group, device, alone, model) for group in ((first, 1), ("gloo", 2))]
    print(f"\n{'all the same' if all(same) else 'DIFFERENT'}, {time.perf_counter() - start:.0f} s")
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
