"""How long a grid takes, and what a person sees of ``giw paper run`` while it is at work."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from giw.paper.parallel import Done
from giw.paper.plan import LAPTOP_POINTS, Job, Run, group
from giw.paper.rows import Result, Store
from giw.paper.run import device_name

# Seconds of one epoch of one trial of GIW, for folders that have no result yet. On an idle H200,
# five trials side by side: `python benchmarks/training.py cuda`, CIFAR-20 one trial; on a CPU, CPU
# seconds of a step times the steps of an epoch.
EPOCH_SECONDS: dict[str, dict[str, float]] = {
    "cpu": {"mnist": 7.0, "color_mnist": 70.0, "cifar20": 800.0},
    "cuda": {"mnist": 0.025, "color_mnist": 0.055, "cifar20": 0.6},
    "laptop": {"mnist": 0.35, "color_mnist": 1.5, "cifar20": 1.5},  # on one core
}
# What a method takes of GIW's time; 1 where it is not named.
OF_GIW = {"cuda": {"val_only": 0.6, "pretrain_val": 0.5, "reweight": 2.4, "mw_net": 3.0}}
OF_GIW["cpu"] = dict.fromkeys(("pooled", "dann", "ccsa", "r_diw"), 0.3)
OF_GIW["cpu"] |= {"val_only": 0.1, "pretrain_val": 0.1, "diw": 0.5, "reweight": 0.7, "mw_net": 0.8}
GPU_SHARED = 3.0  # fourteen processes on one H200 did about three times the work of one
Measured = Mapping[tuple[str, ...], float]  # seconds per epoch by data set, method and scale


def measured_seconds(results: Iterable[Result], device: str) -> Measured:
    """Median seconds of an epoch by data set, method and scale, as measured on this device."""
    found: dict[tuple[str, ...], list[float]] = {}
    for result in results:
        run = result.run
        if result.about.get("device") == device:
            key = run.dataset, run.method, run.scale
            found.setdefault(key, []).append(result.seconds / run.epochs)
    return {key: median(seconds) for key, seconds in found.items()}


def epoch_seconds(run: Run, kind: str, measured: Measured) -> float:
    """Expected wall time of an epoch of a run; its share where trials share a GPU."""
    laptop = run.scale == "laptop"
    usual = EPOCH_SECONDS["laptop" if laptop and kind == "cpu" else kind][run.dataset]
    usual *= LAPTOP_POINTS / 60_000 if laptop and kind == "cuda" else 1.0
    usual *= OF_GIW[kind].get(run.method, 1.0)
    return measured.get((run.dataset, run.method, run.scale), usual)


def job_seconds(jobs: Iterable[Job], kind: str, measured: Measured) -> dict[Job, float]:
    """Expected wall time of each job; the first on its data carries the shared pretraining."""
    seconds, begun = {}, set()
    for job in jobs:
        run = job.first
        seconds[job] = len(job.runs) * run.epochs * epoch_seconds(run, kind, measured)
        if run.data not in begun:
            begun.add(run.data)
            plain = Run(*(run.dataset, run.case, run.shift, "pooled", 0), scale=run.scale)
            epochs = len(job.runs) * run.pretrain_epochs
            seconds[job] += epochs * epoch_seconds(plain, kind, measured)
    return seconds


def speedup(processes: int, kind: str, *, measured: bool) -> float:
    """How many times the work of one process several do; what was measured was measured so."""
    return float(processes) if kind == "cpu" or measured else min(float(processes), GPU_SHARED)


def in_words(seconds: float) -> str:
    """A duration that one reads at a glance."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass
class GridView:
    """How far a grid is."""

    seconds: Mapping[Job, float]  # that each job is expected to take
    speedup: float = 1.0  # how many times as fast as one process the processes will be
    failed: int = 0
    written: int = 0
    ended: int = 0
    expected: float = 0.0  # of the jobs that have ended
    started: float = field(default_factory=time.perf_counter)

    @property
    def jobs(self) -> list[Job]:
        """What is to do."""
        return list(self.seconds)

    def seconds_left(self, elapsed: float) -> float:
        """Time left, from how the work done so far compares with what was expected of it."""
        rest = max(0.0, sum(self.seconds.values()) - self.expected)
        if self.expected == 0:
            return max(0.0, rest / self.speedup - elapsed)
        return rest * elapsed / self.expected

    def elapsed(self) -> str:
        """Time since the start in words."""
        return in_words(time.perf_counter() - self.started)

    def add(self, done: Done) -> str:
        """Take note of a job that ended; returns one line about it."""
        self.ended += 1
        self.written += done.written
        self.failed += bool(done.error)
        self.expected += self.seconds[done.job]
        percent = 100 * np.array(done.accuracy)
        said = done.error or "left to another process"
        if len(percent):
            spread = f" ± {percent.std(ddof=1):.1f}" if len(percent) > 1 else ""
            said = f"{percent.mean():.1f}{spread} %"
        left = in_words(self.seconds_left(time.perf_counter() - self.started))
        return f"{self.ended}/{len(self.jobs)} {done.job.name}: {said}; {left} left"


def follow(view: GridView, stream: Iterable[Done], console: Console, *, quiet: bool) -> None:
    """Show jobs as they end, a line each, with a bar beneath them on a terminal."""
    shown = console.is_terminal and not quiet
    columns = (TextColumn("jobs"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not shown) as progress:
        bar = progress.add_task("jobs", total=len(view.jobs))
        for done in stream:
            line = view.add(done)
            if done.error or not quiet:
                style = "red" if done.error else ""
                progress.console.print(Text(line, style=style), soft_wrap=True)
            progress.advance(bar)


def look_ahead(store: Store, runs: list[Run], device: str, processes: int) -> tuple[GridView, str]:
    """What is to do, and in words how long that will take by what the folder has measured."""
    kind = "cuda" if device.startswith("cuda") else "cpu"
    results = store.read_all()[0] if store.folder.is_dir() else []
    measured = measured_seconds(results, device_name(device))
    finished = {result.run.key for result in results}
    todo = [one for one in runs if one.key not in finished]  # a damaged file is none
    seconds = job_seconds(group(todo), kind, measured)
    view = GridView(seconds, speedup(processes, kind, measured=bool(measured)))
    words = (
        f"{len(runs)} runs, {len(runs) - len(todo)} done, {len(todo)} to do in {len(seconds)} jobs "
        f"of {runs[0].epochs} epochs on {device}; about {in_words(view.seconds_left(0.0))}"
    )
    return view, words + (", by what the folder has measured" if measured else "")
