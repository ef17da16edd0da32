"""How long a grid takes: from what its store has measured, else from what we have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from giw.bench.plan import Run
from giw.bench.store import Result

PRETRAIN_EPOCHS = 10

# Seconds of one epoch of one trial, five trials side by side, on one H200 and on 2 CPU cores, for
# stores that have no result yet; a method that is not named takes as long as GIW.
EPOCH_SECONDS: dict[str, dict[str, float]] = {
    "cpu": {"mnist": 6.0, "color_mnist": 40.0, "cifar20": 600.0},
    "cuda": {"mnist": 0.05, "color_mnist": 0.12, "cifar20": 2.0},
}
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
    usual = EPOCH_SECONDS[kind][run.dataset]
    return measured.get((run.dataset, run.method), usual) * (run.epochs + PRETRAIN_EPOCHS)


class Pace:
    """Time left, from how the work done so far compares with what was expected of it.

    Parameters
    ----------
    expected : float
        Seconds that all the work was expected to take on one process.
    processes : int
        How many work side by side; it matters only until something is done.
    """

    def __init__(self, expected: float, processes: int = 1) -> None:
        self.expected = expected
        self.processes = processes
        self.done = 0.0

    def advance(self, expected: float) -> None:
        """Tell of work that is done, in the seconds that were expected of it."""
        self.done += expected

    def left(self, elapsed: float) -> float:
        """Seconds left after so many."""
        rest = max(0.0, self.expected - self.done)
        if self.done == 0:
            return max(0.0, rest / self.processes - elapsed)
        return rest * elapsed / self.done


def in_words(seconds: float) -> str:
    """A duration that one reads at a glance."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
