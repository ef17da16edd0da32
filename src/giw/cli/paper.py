"""``giw paper data``, ``giw paper run`` and ``giw paper report``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from giw.cli.messages import (
    FAILED,
    AsJson,
    Quiet,
    err_console,
    one_line_errors,
    say_json,
    say_notes,
)

if TYPE_CHECKING:
    from giw.cli.paper_progress import GridView
    from giw.paper.files import FileStatus
    from giw.paper.plan import Run
    from giw.paper.rows import Store

MACHINE = "what suits the machine"
LONG = 3600.0  # seconds from which a grid is not started without being asked for
app = typer.Typer(
    help="The paper's comparison: its data, its runs, its tables and figures.",
    no_args_is_help=True,
)


# giw paper run ------------------------------------------------------------------------------------


@app.command()
def run(
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
        typer.Option(
            help="Ablations, such as oracle, soft, hidden, osvm_code, n_val_10; several compose."
        ),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="honest (default), published, authors: the draw of the authors' loader, "
            "or development: held-out training images "
            "play the test sample, to choose constants by."
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="paper, or laptop: LeNet-5 on 3,000 training images.", show_default=MACHINE
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All data sets, cases, shifts and methods.")
    ] = False,
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
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what would be done and how long it would take.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's grid, or a part of it; what is done already is not done again.

    Each finished run is one small file in the folder of results, so an interrupted grid goes on
    where it stopped, and several processes may work on one folder. Killed, it loses a minute of
    training at most, and pretraining that was not finished; Ctrl-C stops at the next step and
    saves, exit code 130. `giw paper report` makes tables and figures of it. An estimate of the time
    comes first; above one hour it asks. What is not named is chosen for the machine, and said: on a
    GPU all but CIFAR-20 at the paper's scale; on a CPU one setting at laptop scale.

    Example: giw paper run --dataset mnist --case iii --shift support --method giw --method pooled
    """
    with one_line_errors("giw paper run", "run the same command again to go on"):
        from giw.cli.paper_progress import follow
        from giw.nets.devices import as_device
        from giw.paper import parallel
        from giw.paper.plan import fill_in, plan
        from giw.paper.rows import Store

        device = str(as_device(device))
        kind = "cuda" if device.startswith("cuda") else "cpu"
        chosen = {"datasets": dataset, "cases": case, "shifts": shift, "methods": method}
        if everything:
            chosen = {name: value or ["all"] for name, value in chosen.items()}
        chosen |= {"scale": scale, "trials": trials, "epochs": epochs}  # type: ignore[dict-item]
        choice, filled_in = fill_in(chosen, kind)
        parallel.check_engine(engine)
        protocols = protocol or ("honest",)
        runs = plan(**choice, variants=variant or (), protocols=protocols, seed=seed)
        store = Store(out)
        if estimate:
            typer.echo(_look_ahead(store, runs, device, processes)[1])
            return
        threads = parallel.default_threads(processes) if kind == "cpu" else None
        place = parallel.Place(out, data, device, threads)
        for name in dict.fromkeys(one.dataset for one in runs):  # before hours are planned on them
            parallel.runner_of(name, place)
        notes = [f"chosen for this machine: {filled_in}"] if filled_in else []
        store.forget_finished(runs)
        notes += [f"set aside, to be done again: {line}" for line in store.set_damaged_aside()]
        say_notes(notes, quiet=quiet)
        view, words = _look_ahead(store, runs, device, processes)
        if not quiet:
            typer.echo(words, err=True)
        if view.seconds_left(0.0) > LONG and view.jobs and not yes:
            _ask()
        stream = parallel.run_jobs(view.jobs, place, engine=engine, processes=processes)
        follow(view, stream, err_console(), quiet=quiet)
    left = sum(not store.has(one) for job in view.jobs for one in job.runs)
    typer.echo(
        f"{view.written} runs in {view.elapsed()}; see {out}/"
        + (f"; {left} not done: they failed, or another process has them" if left else "")
    )
    if view.failed:
        raise typer.Exit(FAILED)


def _look_ahead(store: Store, runs: list[Run], device: str, processes: int) -> tuple[GridView, str]:
    """What is to do, and in words how long that will take by what the folder has measured."""
    from giw.cli.paper_progress import GridView
    from giw.paper.estimate import in_words, job_seconds, measured_seconds, speedup
    from giw.paper.plan import group
    from giw.paper.run import device_name

    kind = "cuda" if device.startswith("cuda") else "cpu"
    results = store.read_all()[0] if store.folder.is_dir() else []
    measured = measured_seconds(results, device_name(device))
    finished = {result.run.key: result.accuracy for result in results}
    todo = [one for one in runs if one.key not in finished]  # a damaged file is none
    seconds = job_seconds(group(todo), kind, measured)
    view = GridView(seconds, len(runs), speedup(processes, kind, measured=bool(measured)))
    words = (
        f"{len(runs)} runs, {len(runs) - len(todo)} done, {len(todo)} to do in {len(seconds)} jobs "
        f"of {runs[0].epochs} epochs on {device}; about {in_words(view.seconds_left(0.0))}"
    )
    return view, words + (", by what the folder has measured" if measured else "")


def _ask() -> None:
    """Hours are started only by someone who knows it."""
    if not sys.stdin.isatty():
        raise ValueError("that takes more than an hour; add --yes to start it without being asked")
    if not typer.confirm("That is long. Start?", default=True, err=True):
        raise typer.Exit(FAILED)


# giw paper report ---------------------------------------------------------------------------------


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="Folder that giw paper run has filled.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the report.", show_default="RESULTS/report"),
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", "-t", help="Print all tables and write nothing.")
    ] = False,
) -> None:
    """Draw tables and figures from stored results: no GPU, no data set, no training.

    Writes report.html, which holds everything; tables.txt, tables.md and tables.tex; and the
    figures as SVG and PNG. Means are over trials with the same epochs, seed and protocol, never
    across them. Cells that were not run are shown as missing, and damaged files are named.

    The same results give the same bytes.
    """
    with one_line_errors("giw paper report"):
        from giw.pages.tables import text_sheet
        from giw.paper.report import paper_report, paper_sheets
        from giw.paper.rows import read_folder

        try:
            found, damaged = read_folder(results)
            for line in damaged:
                typer.echo(f"not used: {line}", err=True)
            if tables:
                typer.echo("\n".join(map(text_sheet, paper_sheets(found))))
                return
            made = paper_report(found, damaged)
            page = made.write(results / "report" if out is None else out)
        except OSError as error:  # a folder that is none, or cannot be written
            raise ValueError(str(error)) from error
        for line in made.remarks:
            typer.echo(f"note: {line}", err=True)
        for sentence in (made.page.answer, made.page.lead[-1]):
            typer.echo(sentence)
        typer.echo(
            f"{made.n_results} results, {len(made.sheets)} tables, {len(made.pictures)} figures; "
            f"open {page}"
        )


# giw paper data -----------------------------------------------------------------------------------


class DataSet(StrEnum):
    """Data sets that can be fetched."""

    mnist = "mnist"
    cifar100 = "cifar100"


@app.command()
def data(
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every file and compare its checksum.")
    ] = False,
    fetch: Annotated[
        DataSet | None, typer.Option(help="Download a data set first, where the network allows.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Data folder.", show_default="$GIW_DATA, else ~/.cache/giw"),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say where data sets are looked for, what is there, and whether it is whole.

    One edition of a data set is enough. The demo needs no files.

    Example:

        GIW_DATA=~/data giw paper data --verify

        giw paper data --fetch mnist

    Exit code 0 if nothing is wrong, missing files included; 1 if a file is altered or could not
    be fetched; 2 for a mistake in the command.
    """
    with one_line_errors("giw paper data"):
        from giw.paper import files

        if fetch is not None:
            shown = not (quiet or as_json)
            with err_console().status(f"fetching {fetch}") if shown else nullcontext():
                try:
                    files.fetch(str(fetch), data_dir)
                except ValueError as error:  # a checksum, and no mistake of the user's
                    raise RuntimeError(str(error)) from error
        statuses, folder = files.catalogue(data_dir, verify=verify), files.data_folder(data_dir)
        if as_json:
            say_json({"folder": str(folder), "files": [_plain(found) for found in statuses]})
        elif not quiet:
            _show(statuses, folder)
    altered = [found for found in statuses if found.state == "altered"]
    for found in altered:
        typer.echo(
            f"giw paper data: {found.path} is truncated or altered: its md5 sum is {found.md5}, "
            f"expected {found.file.md5}; remove it and fetch it again",
            err=True,
        )
    if altered:
        raise typer.Exit(FAILED)


def _plain(found: FileStatus) -> dict[str, Any]:
    values = asdict(found)
    return values | {"path": None if found.path is None else str(found.path)}


def _show(files: tuple[FileStatus, ...], folder: Path) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("data set", "edition", "file", "size", "state"):
        table.add_column(name, justify="right" if name == "size" else "left")
    style = {"missing": "dim", "altered": "bold red", "verified": "green", "present": ""}
    for found in files:
        size = "" if found.size is None else f"{found.size / 2**20:.1f} MB"
        names = (found.file.dataset, found.file.edition, found.file.name)
        table.add_row(*names, size, found.state, style=style[found.state])
    there = folder if folder.is_dir() else f"{folder} (not there)"
    console.print(f"Data folder: {there}", highlight=False, soft_wrap=True)
    console.print(table)
    for dataset in dict.fromkeys(found.file.dataset for found in files):
        whole = _whole_edition(files, dataset)
        way_out = f"not there; copy its files into the folder, or giw paper data --fetch {dataset}"
        told = f"{dataset}: {f'ready ({whole})' if whole else way_out}"
        console.print(told, highlight=False, soft_wrap=True)


def _whole_edition(files: tuple[FileStatus, ...], dataset: str) -> str | None:
    """An edition of which every file is there and none is known to be altered."""
    editions: dict[str, list[str]] = {}
    for found in files:
        if found.file.dataset == dataset:
            editions.setdefault(found.file.edition, []).append(found.state)
    good = {"present", "verified"}
    return next((name for name, states in editions.items() if set(states) <= good), None)
