"""How long a grid takes: from what its folder has measured, else from what we have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from giw.paper.plan import LAPTOP_POINTS, Job, Run
from giw.paper.rows import Result

# Seconds of one epoch of one trial of GIW, for folders that have no result yet. On an idle H200,
# five trials side by side: `python benchmarks/training.py cuda`, CIFAR-20 one trial; on a CPU, CPU
# seconds of a step times the steps of an epoch.
EPOCH_SECONDS: dict[str, dict[str, float]] = {
    "cpu": {"mnist": 7.0, "color_mnist": 70.0, "cifar20": 800.0},
    "cuda": {"mnist": 0.025, "color_mnist": 0.055, "cifar20": 0.6},
    "laptop": {"mnist": 0.35, "color_mnist": 1.5, "cifar20": 1.5},  # on one core
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
Measured = Mapping[tuple[str, ...], float]  # seconds per epoch by data set, method and scale


def measured_seconds(results: Iterable[Result], device: str) -> dict[tuple[str, ...], float]:
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
            before = 5 if run.scale == "laptop" else run.setting.pretrain_epochs
            seconds[job] += len(job.runs) * before * epoch_seconds(plain, kind, measured)
    return seconds


def speedup(processes: int, kind: str, *, measured: bool) -> float:
    """How many times the work of one process several do; what was measured was measured so."""
    return float(processes) if kind == "cpu" or measured else min(float(processes), GPU_SHARED)


def in_words(seconds: float) -> str:
    """A duration that one reads at a glance."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
