"""The cost of a step, of the split and of the weights: model beside measurement, on the CPU.

    python benchmarks/scaling.py                 # everything, about a minute
    python benchmarks/scaling.py --part ranks    # one of: step, ranks, split, weights

Rates of this machine are measured first, on one thread: products of matrices, products of a matrix
with a vector, exponentials, choosing the smallest of many. Models divide
counted operations by them; nothing is fitted to what they are compared with. CPU seconds of one
thread.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import giw
from giw.nets.methods import method_named
from giw.nets.models import MLP
from giw.nets.training import Batch, State
from giw.nets.training.protocol import FunctionalNet
from giw.objective import dynamic_kmm
from giw.support import nearest

HIDDEN, CLASSES, INPUTS = (1024, 1024), 10, 256
CENTERS, WIDTHS, CHOSEN_FROM = 100, 7, 3_000  # of uLSIF


def cpu_seconds(work: Callable[[], Any], *, least: float = 0.4) -> float:
    """CPU seconds of one call: the median over calls that fill ``least`` seconds."""
    work()
    took: list[float] = []
    while sum(took) < least or len(took) < 2:
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return float(np.median(took))


@dataclass(frozen=True)
class Rates:
    """What this machine does in a second of one thread."""

    product: float  # operations in products of matrices, float32
    product64: float  # the same in float64
    bytes: float  # read in products of a matrix with a vector
    exp: float  # exponentials, float32
    exp64: float
    select: float  # numbers among which the eight smallest are found

    @classmethod
    def measured(cls) -> Rates:
        """A few seconds."""
        a, v = torch.randn(1024, 1024), torch.randn(1024)
        big, long = torch.randn(2048, 2048), torch.rand(2**20)
        thin, few = torch.randn(8192, 32).double(), torch.randn(100, 32).double()
        return cls(
            2 * 1024**3 / cpu_seconds(lambda: a @ a),
            2 * 8192 * 100 * 32 / cpu_seconds(lambda: thin @ few.T),
            4 * 2048**2 / cpu_seconds(lambda: big @ torch.cat([v, v])),
            2**20 / cpu_seconds(lambda: long.exp()),
            2**20 / cpu_seconds(lambda: long.double().exp()),
            2048**2 / cpu_seconds(lambda: big.topk(8, largest=False)),
        )


def n_params() -> int:
    """Parameters of the net of the measurements."""
    return sum(p.numel() for p in MLP(INPUTS, CLASSES, HIDDEN).parameters())


def net_seconds(rows: float, rate: Rates) -> float:
    """Forward and backward: 2 and 4 operations per parameter and row."""
    return 6 * n_params() * rows / rate.product


def kmm_seconds(n: int, m: int, rate: Rates) -> float:
    """A kernel of n × (n + m), and a linear system of its first n columns."""
    return n * (n + m) / rate.exp + n**3 / 3 / rate.product


def neighbour_seconds(points: int, n: int, d: int, rate: Rates) -> float:
    """Distances as one product, and the smallest of them."""
    return points * n * (2 * d / rate.product + 1 / rate.select)


def ulsif_seconds(n: int, d: int, rate: Rates) -> float:
    """Kernels at b centres and their second moments; seven widths tried on 3,000 rows of each."""
    b = CENTERS

    def once(rows: float) -> float:
        return rows * b / rate.exp64 + rows * (2 * b * d + 2 * b * b) / rate.product64

    ridges = 11
    left_out = 2 * 2 * CHOSEN_FROM * b * (b + ridges) / rate.product64
    chosen = WIDTHS * (once(2 * min(n, CHOSEN_FROM)) + left_out)
    weights = n * (b / rate.exp64 + 2 * b * d / rate.product64)
    return chosen + once(n) + weights


def show(name: str, model: float, measured: float) -> None:
    """One line."""
    print(f"{name:<44} {1e3 * model:9.1f} {1e3 * measured:9.1f} {measured / model:6.1f}")


def head(title: str) -> None:
    """Names of the columns."""
    print(f"\n{title:<44} {'model':>9} {'measured':>9} {'ratio':>6}   (CPU ms)")


def a_batch(n: int, m: int) -> Batch:
    """A training and a validation batch."""
    g = torch.Generator().manual_seed(0)
    x, x_val = torch.randn(n, INPUTS, generator=g), torch.randn(m, INPUTS, generator=g)
    y, y_val = (torch.randint(CLASSES, (k,), generator=g) for k in (n, m))
    inside = (torch.arange(m) % 3 > 0).float()
    return Batch(x, y, x_val, y_val, inside, inside.mean(), torch.zeros(()))


def a_step(net: FunctionalNet, batch: Batch) -> Callable[[], Any]:
    """Loss and gradient of GIW, without the optimiser."""
    method, params = method_named("giw"), net.params()

    def step() -> Any:
        loss = method.loss(net, params, State(), batch)[0]
        return torch.autograd.grad(loss, list(params.values()))

    return step


def step(rate: Rates) -> None:
    """A step against the size of the batch."""
    head("weights of a batch, n = m")
    for n in (64, 128, 256, 512, 1024):
        losses, val = torch.rand(n, 1), torch.rand(n, 1)
        found = cpu_seconds(lambda losses=losses, val=val: dynamic_kmm(losses, val))
        show(f"n = {n}", kmm_seconds(n, n, rate), found)
    head(f"step of GIW, n = m, net of {n_params() / 1e6:.2f} M parameters")
    for n in (64, 256, 1024):
        net = FunctionalNet(MLP(INPUTS, CLASSES, HIDDEN))
        model = net_seconds(2 * n, rate) + kmm_seconds(n, n, rate)
        show(f"n = {n}", model, cpu_seconds(a_step(net, a_batch(n, n))))


def ranks(rate: Rates) -> None:
    """A step shared among processes: CPU seconds of each, and bytes that it sends."""
    n = 512
    head(f"step of GIW, n = m = {n}, of one process")
    for count in (1, 2, 4):
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(_as_rank, args=(count, folder, n), nprocs=count)
            found = [np.load(Path(folder) / f"{rank}.npy") for rank in range(count)]
        model = net_seconds(2 * n / count, rate) + kmm_seconds(n, n, rate)
        show(f"{count} processes", model, float(np.median([seconds for seconds, _ in found])))
        if count > 1:
            share = -(-2 * n // count)
            expected = 4 * (share * CLASSES + n_params())
            print(f"  bytes into messages: model {expected:,}, counted {found[0][1]:,.0f}")


def _as_rank(rank: int, count: int, folder: str, n: int) -> None:
    torch.set_num_threads(1)
    meeting = (Path(folder) / "meeting").as_uri()
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=count)
    sent = [0]
    reduce, gather = dist.all_reduce, dist.all_gather

    def counted_reduce(tensor: torch.Tensor, **how: Any) -> Any:
        sent[0] += tensor.nbytes
        return reduce(tensor, **how)

    def counted_gather(found: list[torch.Tensor], tensor: torch.Tensor, **how: Any) -> Any:
        sent[0] += tensor.nbytes
        return gather(found, tensor, **how)

    dist.all_reduce, dist.all_gather = counted_reduce, counted_gather
    module = MLP(INPUTS, CLASSES, HIDDEN)
    net = FunctionalNet(module, group=dist.group.WORLD if count > 1 else None)
    step = a_step(net, a_batch(n, n))
    step()
    sent[0], took = 0, []
    for _ in range(9):
        start = time.process_time()
        step()
        took.append(time.process_time() - start)
    np.save(Path(folder) / f"{rank}.npy", [np.median(took), sent[0] / 9])
    dist.destroy_process_group()


def split(rate: Rates) -> None:
    """Neighbours and the whole split against the number of training rows."""
    head("5 nearest of n rows for 1,000 points, d = 64")
    for n in (5_000, 20_000):
        z, points = torch.randn(n, 64), torch.randn(1_000, 64)
        found = cpu_seconds(lambda z=z, points=points: nearest(points, z, 5))
        show(f"n = {n:,}", neighbour_seconds(1_000, n, 64, rate), found)
    head("calibrate and split 1,000 points, d = 64")
    for n in (5_000, 20_000):
        z, val = torch.randn(n, 64), torch.randn(1_000, 64)
        searched = min(n, 3_000) + min(n, 2_000) + len(val)  # calibration rows, anchors, points
        splitter = giw.SupportSplitter(cells="none", random_state=0)
        found = cpu_seconds(lambda z=z, val=val, s=splitter: s.fit(z).split(val), least=0.0)
        show(f"n = {n:,}", neighbour_seconds(searched, n, 64, rate), found)


def weights(rate: Rates) -> None:
    """The ratio in closed form against the number of rows and features."""
    head("uLSIF, width and ridge chosen, m = 3,000")
    for n, d in ((10_000, 8), (100_000, 8), (100_000, 64)):
        x, v = np.random.default_rng(0).normal(size=(n, d)), np.ones((3_000, d)) * 0.3
        v = v + np.random.default_rng(1).normal(size=v.shape)
        found = cpu_seconds(lambda x=x, v=v: giw.ulsif(x, v), least=0.0)
        show(f"n = {n:,}, d = {d}", ulsif_seconds(n, d, rate), found)


PARTS: dict[str, Callable[[Rates], None]] = {
    "step": step, "ranks": ranks, "split": split, "weights": weights,
}  # fmt: skip


def main() -> None:
    """Measure the rates, then every part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--part", choices=PARTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rate = Rates.measured()
    print(
        f"one thread: {rate.product / 1e9:.0f} GFLOP/s in products ({rate.product64 / 1e9:.0f} in "
        f"thin float64 ones), {rate.bytes / 1e9:.1f} GB/s, {rate.exp / 1e9:.2f} G exp/s "
        f"({rate.exp64 / 1e9:.2f} in float64), the smallest of {rate.select / 1e9:.2f} G numbers/s"
    )
    for name in [options.part] if options.part else list(PARTS):
        PARTS[name](rate)


if __name__ == "__main__":
    main()
