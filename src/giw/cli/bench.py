"""``giw bench``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from giw.bench.plan import Run

MACHINE = "what suits the machine"


def bench(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of results.")] = Path("results"),
    dataset: Annotated[
        list[str] | None, typer.Option(help="mnist, color_mnist, cifar20 or all; repeatable.")
    ] = None,
    case: Annotated[list[str] | None, typer.Option(help="iii, iv or all; repeatable.")] = None,
    shift: Annotated[
        list[str] | None,
        typer.Option(
            help="support, label_noise_0.2, label_noise_0.4, class_prior_10, class_prior_100, all."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Any method; all: the ten of the tables, and giw_split under class-prior shift."
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
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials of each cell.", show_default=MACHINE)
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs; the schedule is scaled.", show_default=MACHINE),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the experiment.")] = 0,
    data: Annotated[Path | None, typer.Option(help="Data folder; GIW_DATA if not given.")] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a Ray cluster.")] = "local",
    processes: Annotated[
        int, typer.Option(min=1, help="Processes side by side, sharing a GPU if there is one.")
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
    and figures of it. An estimate of the time comes first; above one hour it asks. What is not
    named is chosen for the machine, and said: on a GPU all but CIFAR-20, five trials, 100 epochs;
    on a CPU one setting and four methods, two trials, 10 epochs.

    Example: giw bench --dataset mnist --case iii --shift support --method giw --method pooled
    """
    from giw.bench.defaults import fill_in
    from giw.bench.engines import Place, check_engine, default_device, default_threads, run_jobs
    from giw.bench.estimate import in_words, measured_seconds, run_seconds, speedup
    from giw.bench.plan import group, plan
    from giw.bench.runner import device_name
    from giw.bench.store import Store
    from giw.bench.variants import check_variant
    from giw.cli.bench_view import GridView, follow

    console = Console()
    device = default_device() if device == "auto" else device
    kind = "cuda" if device.startswith("cuda") else "cpu"
    chosen = {"datasets": dataset, "cases": case, "shifts": shift, "methods": method}
    choice, filled_in = fill_in(chosen | {"trials": trials, "epochs": epochs}, kind)
    try:
        check_engine(engine)
        runs = plan(
            **choice, variants=variant or ("",), protocols=protocol or ("honest",), seed=seed
        )
        for name in variant or ():
            check_variant(name)
        _check_data(runs, data)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    store = Store(out)
    for line in store.set_damaged_aside(runs):
        console.print(f"[yellow]set aside[/yellow] {line}", highlight=False)
    todo = [run for run in runs if not store.has(run)]
    jobs = group(todo)
    results = store.read_all()[0] if out.is_dir() else []
    measured = measured_seconds(results, device_name(device))

    def expected(run: Run) -> float:
        return run_seconds(run, kind, measured)

    faster = speedup(processes, kind, measured=bool(measured))
    if filled_in:
        console.print(f"chosen for this machine: {filled_in}", soft_wrap=True, highlight=False)
    guess = sum(map(expected, todo)) / faster
    console.print(
        f"{len(runs)} runs, {len(runs) - len(todo)} done, {len(todo)} to do in {len(jobs)} jobs of "
        f"{choice['epochs']} epochs on {device}; about {in_words(guess)}"
        + (", by what is in the folder" if measured else ""),
        soft_wrap=True,
    )
    if guess > 3600 and not yes and not typer.confirm("That is long. Start?", default=True):
        raise typer.Exit(1)
    place = Place(out, data, device, default_threads(processes) if device == "cpu" else None)
    finished = {result.run.key: result.accuracy for result in results}
    view = GridView(runs, jobs, expected, finished, processes, faster)
    follow(view, run_jobs(jobs, place, engine=engine, processes=processes), console, quiet=quiet)
    took = in_words(time.perf_counter() - view.started)
    others = sum(not store.has(run) for run in todo)
    console.print(
        f"{view.written} runs in {took}; see {out}/"
        + (f"; {others} not done, by failure or because another process has them" if others else "")
    )
    if view.failed:
        raise typer.Exit(1)


def _check_data(runs: list[Run], data: Path | None) -> None:
    """Look for the files before planning hours around them."""
    from giw.bench.engines import samples_of

    for dataset in dict.fromkeys(run.dataset for run in runs):
        samples_of(dataset, data)
