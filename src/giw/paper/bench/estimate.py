"""How long a grid takes: from what its store has measured, else from what we have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from giw.paper.bench.plan import Run
from giw.paper.bench.store import Result

PRETRAIN_EPOCHS = 10

# Seconds of one epoch of one trial of GIW, for folders that have no result yet. On an H200 that has
# nothing else to do, five trials side by side: `python benchmarks/training.py cuda` for
# Color-MNIST, MNIST by its number of steps; for CIFAR-20, one trial,
# `python benchmarks/training.py fused`: 79 steps of 6.6 ms, and testing. On a CPU:
# CPU seconds of a step times the steps of an epoch, on two cores.
EPOCH_SECONDS: dict[str, dict[str, float]] = {
    "cpu": {"mnist": 7.0, "color_mnist": 70.0, "cifar20": 800.0},
    "cuda": {"mnist": 0.025, "color_mnist": 0.055, "cifar20": 0.6},
}
# What a method takes of GIW's time; 1 where it is not named.
OF_GIW: dict[str, dict[str, float]] = {
    "cpu": {
        **{"val_only": 0.1, "pretrain_val": 0.1, "pooled": 0.3, "dann": 0.3, "ccsa": 0.3},
        **{"r_diw": 0.3, "diw": 0.5, "reweight": 0.7, "mw_net": 0.8},
    },
    "cuda": {"val_only": 0.6, "pretrain_val": 0.5, "reweight": 2.4, "mw_net": 3.0},
}
GPU_SHARED = 3.0  # fourteen processes on one H200 did about three times the work of one
Measured = Mapping[tuple[str, str], float]  # seconds per epoch by data set and method


def measured_seconds(results: Iterable[Result], device: str) -> dict[tuple[str, str], float]:
    """Median seconds of an epoch by data set and method, of results from a device of this name."""
    found: dict[tuple[str, str], list[float]] = {}
    for result in results:
        run = result.run
        if result.about.get("device") == device:
            key = run.dataset, run.method
            found.setdefault(key, []).append(result.seconds / len(result.curve))
    return {key: median(seconds) for key, seconds in found.items()}


def run_seconds(run: Run, kind: str, measured: Measured) -> float:
    """Expected wall time of a run, pretraining included; its share where trials share a GPU."""
    usual = EPOCH_SECONDS[kind][run.dataset] * OF_GIW[kind].get(run.method, 1.0)
    return measured.get((run.dataset, run.method), usual) * (run.epochs + PRETRAIN_EPOCHS)


def speedup(processes: int, kind: str, *, measured: bool) -> float:
    """How many times the work of one process several do; what was measured was measured so."""
    return float(processes) if kind == "cpu" or measured else min(float(processes), GPU_SHARED)


class Pace:
    """Time left, from how the work done so far compares with what was expected of it.

    Parameters
    ----------
    expected : float
        Seconds that all the work was expected to take on one process.
    speedup : float
        How many times as fast several processes are; it matters only until something is done.
    """

    def __init__(self, expected: float, speedup: float = 1.0) -> None:
        self.expected = expected
        self.speedup = speedup
        self.done = 0.0

    def advance(self, expected: float) -> None:
        """Tell of work that is done, in the seconds that were expected of it."""
        self.done += expected

    def left(self, elapsed: float) -> float:
        """Seconds left after so many."""
        rest = max(0.0, self.expected - self.done)
        if self.done == 0:
            return max(0.0, rest / self.speedup - elapsed)
        return rest * elapsed / self.done


def in_words(seconds: float) -> str:
    """A duration that one reads at a glance."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
