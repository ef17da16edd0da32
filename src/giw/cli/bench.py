"""``giw bench``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from giw.bench.engines import Done
    from giw.bench.plan import Job, Run

# Seconds of one epoch of one trial, measured by ``giw bench`` itself on 2 CPU cores and an H200;
# only an estimate is made of them.
SECONDS = {
    "cpu": {"mnist": 6.0, "color_mnist": 40.0, "cifar20": 600.0},
    "cuda": {"mnist": 0.05, "color_mnist": 0.12, "cifar20": 2.0},
}


def bench(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of results.")] = Path("results"),
    dataset: Annotated[
        list[str] | None, typer.Option(help="mnist, color_mnist, cifar20; may be repeated.")
    ] = None,
    case: Annotated[list[str] | None, typer.Option(help="iii or iv; may be repeated.")] = None,
    shift: Annotated[
        list[str] | None,
        typer.Option(
            help="support, label_noise_0.2, label_noise_0.4, class_prior_10, class_prior_100."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Any method; all ten, and giw_split under class-prior shift, if not given."
        ),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(help="Ablations, such as oracle, soft, hidden, osvm_text, n_val_10."),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="honest (default), published, or development: held-out training images play the "
            "test sample, to choose constants by."
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials of each cell.")] = 5,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs; the schedule is scaled. 100 on a GPU, 10 on a CPU."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the experiment.")] = 0,
    data: Annotated[Path | None, typer.Option(help="Data folder; GIW_DATA if not given.")] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a Ray cluster.")] = "local",
    processes: Annotated[
        int, typer.Option(min=1, help="Processes side by side; several may share a GPU.")
    ] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Start without asking, however long it takes.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run the paper's grid, or a part of it; what is done already is not done again.

    Each finished run is one small file in the folder of results, so an interrupted grid goes on
    where it stopped, and several processes may work on one folder. `giw report` makes tables
    and figures of it. An estimate of the time comes first; above one hour it asks.

    Example: giw bench --dataset mnist --case iii --shift support --method giw --method pooled
    """
    from giw.bench.engines import ENGINES, Place, default_device, default_threads, run_jobs
    from giw.bench.plan import group, plan
    from giw.bench.store import Store

    console = Console()
    device = default_device() if device == "auto" else device
    epochs = epochs or (100 if device.startswith("cuda") else 10)
    try:
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
        runs = plan(
            datasets=dataset, cases=case, shifts=shift, methods=method,
            variants=variant or ("",), protocols=protocol or ("honest",),
            trials=trials, epochs=epochs, seed=seed,
        )  # fmt: skip
        _check_data(runs, data)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    store = Store(out)
    for line in store.set_damaged_aside(runs):
        console.print(f"[yellow]set aside[/yellow] {line}", highlight=False)
    todo = [run for run in runs if not store.has(run)]
    jobs = group(todo)
    guess = _estimate(todo, device) / processes
    console.print(
        f"{len(runs)} runs, {len(runs) - len(todo)} done, {len(todo)} to do in {len(jobs)} jobs of "
        f"{epochs} epochs on {device}; about {_duration(guess)}"
    )
    if guess > 3600 and not yes and not typer.confirm("That is long. Start?", default=True):
        raise typer.Exit(1)
    threads = default_threads(processes) if device == "cpu" else None
    place = Place(out, data, device, threads)
    started = time.perf_counter()
    failed = _follow(
        run_jobs(jobs, place, engine=engine, processes=processes), jobs, console, quiet
    )
    console.print(f"{len(todo)} runs in {_duration(time.perf_counter() - started)}; see {out}/")
    if failed:
        raise typer.Exit(1)


def _follow(stream: Iterable[Done], jobs: list[Job], console: Console, quiet: bool) -> int:
    """Show each job as it ends, with its mean accuracy; count those that failed."""
    from giw.training.progress import make_progress

    failed = 0
    with make_progress(shown=not quiet, console=console) as progress:
        task = progress.add_task("jobs", total=len(jobs), note="")
        for done in stream:
            if done.error:
                failed += 1
                console.print(f"[red]failed[/red] {done.job.name}: {done.error}")
            progress.update(task, advance=1, note=done.job.name)
    return failed


def _check_data(runs: list[Run], data: Path | None) -> None:
    """Look for the files before planning hours around them."""
    from giw.shift import paper_samples

    for dataset in dict.fromkeys(run.dataset for run in runs):
        paper_samples(dataset, data)


def _estimate(runs: list[Run], device: str) -> float:
    kind = "cuda" if device.startswith("cuda") else "cpu"
    return sum(SECONDS[kind][run.dataset] * (run.epochs + 10) for run in runs)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
