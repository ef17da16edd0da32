"""``giw bench``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from giw.cli.messages import FAILED, Quiet, err_console, one_line_errors, say_notes

if TYPE_CHECKING:
    from giw.cli.bench_view import GridView
    from giw.paper.bench.plan import Run
    from giw.paper.bench.store import Store

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
            help="honest (default), published, published_resampled: a draw for each trial, or "
            "development: held-out training images play the test sample, to choose constants by."
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done and how long it would take.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's grid, or a part of it; what is done already is not done again.

    Each finished run is one small file in the folder of results, so an interrupted grid goes on
    where it stopped, and several processes may work on one folder. Killed, it loses a minute of
    training at most, and pretraining that was not finished; Ctrl-C stops at the next step and
    saves, exit code 130. `giw report` makes tables and figures of it. An estimate of the time comes
    first; above one hour it asks. What is not named is chosen for the machine, and said: on a GPU
    all but CIFAR-20, five trials, 100 epochs; on a CPU one setting and four methods, two trials, 10
    epochs.

    Example: giw bench --dataset mnist --case iii --shift support --method giw --method pooled
    """
    with one_line_errors("giw bench", "run the same command again to go on"):
        from giw.checks import as_device
        from giw.cli.bench_view import follow
        from giw.paper.bench.defaults import fill_in
        from giw.paper.bench.engines import Place, check_engine, default_threads, run_jobs
        from giw.paper.bench.plan import plan
        from giw.paper.bench.store import Store
        from giw.paper.bench.variants import check_variant

        device = str(as_device(device))
        kind = "cuda" if device.startswith("cuda") else "cpu"
        chosen = {"datasets": dataset, "cases": case, "shifts": shift, "methods": method}
        choice, filled_in = fill_in(chosen | {"trials": trials, "epochs": epochs}, kind)
        check_engine(engine)
        variants, protocols = variant or ("",), protocol or ("honest",)
        runs = plan(**choice, variants=variants, protocols=protocols, seed=seed)
        for name in variants:
            check_variant(name)
        store = Store(out)
        if dry_run:
            typer.echo(_look_ahead(store, runs, device, processes)[1].words)
            return
        _check_data(runs, data)
        notes = [f"chosen for this machine: {filled_in}"] if filled_in else []
        store.forget_finished(runs)
        notes += [f"set aside, to be done again: {line}" for line in store.set_damaged_aside(runs)]
        say_notes(notes, quiet=quiet)
        view, guess = _look_ahead(store, runs, device, processes)
        if not quiet:
            typer.echo(guess.words, err=True)
        if guess.seconds > 3600 and view.jobs and not yes:
            _ask()
        place = Place(out, data, device, default_threads(processes) if kind == "cpu" else None)
        stream = run_jobs(view.jobs, place, engine=engine, processes=processes)
        follow(view, stream, err_console(), quiet=quiet)
    left = sum(not store.has(run) for job in view.jobs for run in job.runs)
    typer.echo(
        f"{view.written} runs in {view.elapsed()}; see {out}/"
        + (f"; {left} not done: they failed, or another process has them" if left else "")
    )
    if view.failed:
        raise typer.Exit(FAILED)


class Guess(NamedTuple):
    """How long it will take, and the plan in words."""

    seconds: float
    words: str


def _look_ahead(
    store: Store, runs: list[Run], device: str, processes: int
) -> tuple[GridView, Guess]:
    """What is to do, and how long that will take by what the folder has measured."""
    from giw.cli.bench_view import GridView
    from giw.paper.bench.estimate import in_words, measured_seconds, run_seconds, speedup
    from giw.paper.bench.plan import group
    from giw.paper.bench.runner import device_name

    kind = "cuda" if device.startswith("cuda") else "cpu"
    results = store.read_all()[0] if store.folder.is_dir() else []
    measured = measured_seconds(results, device_name(device))
    finished = {result.run.key: result.accuracy for result in results}
    todo = [run for run in runs if run.key not in finished]  # a damaged file is none
    jobs = group(todo)
    faster = speedup(processes, kind, measured=bool(measured))
    view = GridView(
        runs, jobs, lambda run: run_seconds(run, kind, measured), finished, processes, faster
    )
    seconds = view.pace.left(0.0)
    words = (
        f"{len(runs)} runs, {len(runs) - len(todo)} done, {len(todo)} to do in {len(jobs)} jobs of "
        f"{runs[0].epochs} epochs on {device}; about {in_words(seconds)}"
    )
    return view, Guess(seconds, words + (", by what the folder has measured" if measured else ""))


def _ask() -> None:
    """Hours are started only by someone who knows it."""
    if not sys.stdin.isatty():
        raise ValueError("that takes more than an hour; add --yes to start it without being asked")
    if not typer.confirm("That is long. Start?", default=True, err=True):
        raise typer.Exit(FAILED)


def _check_data(runs: list[Run], data: Path | None) -> None:
    """Look for the files before planning hours around them."""
    from giw.paper.bench.engines import samples_of

    for dataset in dict.fromkeys(run.dataset for run in runs):
        samples_of(dataset, data)
