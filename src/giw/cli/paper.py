"""``giw paper run``, ``giw paper report`` and ``giw paper data``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from giw.cli.common import (
    FAILED,
    AsJson,
    Command,
    Commands,
    DataFolder,
    Quiet,
    Seed,
    Told,
    check_writable,
    option,
    say_notes,
    stderr,
)

LONG = 3600.0  # seconds from which a grid is not started without being asked for
app = typer.Typer(
    cls=Commands,
    help="The paper's comparison: its data, its runs, its tables and figures.",
    no_args_is_help=True,
)


# giw paper run ------------------------------------------------------------------------------------

RESULTS = "Folder of results."
DATASET = "mnist, color_mnist, cifar20 or all; repeatable."
CASE = "iii, iv or all; repeatable."
SHIFT = "support, label_noise_0.2, label_noise_0.4, class_prior_10, class_prior_100, all."
METHOD = "Any method; all: the ten of the tables, and giw_split under class-prior shift."
VARIANT = "Ablations, such as oracle, soft, hidden, osvm_code, n_val_10; several compose."
PROTOCOL = (
    "honest (default), published, authors: the draw of the authors' loader, or development: "
    "held-out training images play the test sample, to choose constants by."
)
SCALE = "paper, or laptop: LeNet-5 on 3,000 training images."
EVERYTHING = "All data sets, cases, shifts and methods."
PROCESSES = "Processes side by side, sharing a GPU if there is one."
YES = "Start without asking, however long it takes."
ESTIMATE = "Say what would be done and how long it would take."
TRIALS, EPOCHS = "Trials of each cell.", "Epochs; the schedule is scaled."
MACHINE = {"show_default": "what suits the machine"}


@app.command(cls=Command)
def run(
    out: Annotated[Path, option("--out", "-o", help=RESULTS)] = Path("results"),
    dataset: Annotated[list[str] | None, option("--dataset", help=DATASET)] = None,
    case: Annotated[list[str] | None, option("--case", help=CASE)] = None,
    shift: Annotated[list[str] | None, option("--shift", help=SHIFT)] = None,
    method: Annotated[list[str] | None, option("--method", help=METHOD)] = None,
    variant: Annotated[list[str] | None, option("--variant", help=VARIANT)] = None,
    protocol: Annotated[list[str] | None, option("--protocol", help=PROTOCOL)] = None,
    scale: Annotated[str | None, option("--scale", help=SCALE, **MACHINE)] = None,
    everything: Annotated[bool, option("--all", help=EVERYTHING)] = False,
    trials: Annotated[int | None, option("--trials", min=1, help=TRIALS, **MACHINE)] = None,
    epochs: Annotated[int | None, option("--epochs", min=1, help=EPOCHS, **MACHINE)] = None,
    seed: Seed = 0,
    data: DataFolder = None,
    engine: Annotated[str, option("--engine", help="local, or ray for a Ray cluster.")] = "local",
    processes: Annotated[int, option("--processes", min=1, help=PROCESSES)] = 1,
    device: Annotated[str, option("--device", help="auto, cpu or cuda.")] = "auto",
    yes: Annotated[bool, option("--yes", "-y", help=YES)] = False,
    estimate: Annotated[bool, option("--estimate", help=ESTIMATE)] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told:
    """Run the paper's grid, or a part of it; what is done already is not done again.

    Each finished run is one small file in the folder of results, so an interrupted grid goes on
    where it stopped, and several processes may work on one folder. Killed, it loses a minute of
    training at most, and pretraining that was not finished; Ctrl-C stops after the epoch and
    saves, exit code 130. `giw paper report` makes tables and figures of it. An estimate of the time
    comes first; above one hour it asks. What is not named is chosen for the machine, and said: on a
    GPU all but CIFAR-20 at the paper's scale; on a CPU one setting at laptop scale.

    Example:

        giw paper run --dataset mnist --case iii --shift support --method giw

    Exit code 0 when all is done, 1 if a run failed, 2 for a mistake in the command, 130 after
    Ctrl-C.
    """
    check_writable(out, "--out")
    from giw.nets.kernels.devices import as_device
    from giw.paper import parallel
    from giw.paper.plan import fill_in, plan
    from giw.paper.progress import follow, look_ahead
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
    view, words = look_ahead(store, runs, device, processes)
    if estimate:
        ahead = {"runs": len(runs), "to_do": sum(len(job.runs) for job in view.jobs)}
        return Told(ahead | {"seconds": round(view.seconds_left(0.0))}, words, brief=words)
    threads = parallel.default_threads(processes) if kind == "cpu" else None
    place = parallel.Place(out, data, device, threads)
    for name in dict.fromkeys(one.dataset for one in runs):  # before hours are planned on them
        parallel.runner_of(name, place)
    store.forget_finished(runs)
    notes = [f"chosen for this machine: {filled_in}"] if filled_in else []
    notes += [f"set aside, to be done again: {line}" for line in store.set_damaged_aside()]
    silent = quiet or as_json
    say_notes(notes, quiet=silent)
    if not silent:
        typer.echo(words, err=True)
    if view.seconds_left(0.0) > LONG and view.jobs and not yes:
        if not sys.stdin.isatty():
            raise ValueError("that takes more than an hour; add --yes to start without being asked")
        if not typer.confirm("That is long. Start?", default=True, err=True):
            raise typer.Exit(FAILED)
    stream = parallel.run_jobs(view.jobs, place, engine=engine, processes=processes)
    try:
        follow(view, stream, stderr(), quiet=silent)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(str(error) or "stopped; finished runs are kept") from error
    left = sum(not store.has(one) for job in view.jobs for one in job.runs)
    more = f"; {left} not done: they failed, or another process has them" if left else ""
    counts = {"folder": str(out), "runs": len(runs), "written": view.written, "not_done": left}
    words = f"{view.written} runs in {view.elapsed()}; see {out}/{more}"
    return Told(counts, words, brief=words, code=FAILED if view.failed else 0)


# giw paper report ---------------------------------------------------------------------------------

FILLED, REPORT = "Folder that giw paper run has filled.", "Folder for the report."
AMONG = {"show_default": "RESULTS/report"}
PRINT = "Print all tables and write nothing."


@app.command(cls=Command)
def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help=FILLED)],
    out: Annotated[Path | None, option("--out", "-o", help=REPORT, **AMONG)] = None,
    tables: Annotated[bool, option("--tables", "-t", help=PRINT)] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told:
    """Draw tables and figures from stored results: no GPU, no data set, no training.

    Writes report.html, which holds everything; tables.txt, tables.md and tables.tex; and the
    figures as SVG and PNG. Means are over trials with the same epochs, seed and protocol, never
    across them. Cells that were not run are shown as missing, and damaged files are named.

    The same results give the same bytes.

    Example:

        giw paper report results -o report/

    Exit code 0 when the report is written, 2 where there are no results.
    """
    from giw.pages.tables import text_sheet
    from giw.paper.report import paper_report, paper_sheets
    from giw.paper.rows import read_folder

    try:
        found, damaged = read_folder(results)
        for line in damaged:
            typer.echo(f"not used: {line}", err=True)
        if tables:
            sheets = "\n".join(map(text_sheet, paper_sheets(found)))
            return Told({"tables": sheets}, sheets, brief=sheets)
        made = paper_report(found, damaged)
        page = made.write(out or results / "report")
    except OSError as error:  # a folder that is none, or cannot be written
        raise ValueError(str(error)) from error
    counts = {"results": made.n_results, "tables": len(made.sheets), "figures": len(made.pictures)}
    counted = ", ".join(f"{number} {what}" for what, number in counts.items())
    brief = f"{counted}; open {page}"
    words = "\n".join([made.page.answer, made.page.lead[-1], brief])
    return Told({**counts, "page": str(page), "notes": []}, words, brief, made.remarks)


# giw paper data -----------------------------------------------------------------------------------

VERIFY = "Read every file and compare its checksum."
FETCH = "Download a data set first, where the network allows."


class DataSet(StrEnum):
    """Data sets that can be fetched."""

    mnist = "mnist"
    cifar100 = "cifar100"


@app.command(cls=Command)
def data(
    verify: Annotated[bool, option("--verify", help=VERIFY)] = False,
    fetch: Annotated[DataSet | None, option("--fetch", help=FETCH)] = None,
    data: DataFolder = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told:
    """Say where data sets are looked for, what is there, and whether it is whole.

    One edition of a data set is enough. The demo needs no files.

    Example:

        GIW_DATA=~/data giw paper data --verify

        giw paper data --fetch mnist

    Exit code 0 if nothing is wrong, missing files included; 1 if a file is altered or could not
    be fetched; 2 for a mistake in the command.
    """
    from giw.paper import files

    if fetch is not None:
        with stderr(silent=quiet or as_json).status(f"fetching {fetch}"):
            try:
                files.fetch(str(fetch), data)
            except ValueError as error:  # a checksum, and no mistake of the user's
                raise RuntimeError(str(error)) from error
    found, folder = files.catalogue(data, verify=verify), files.data_folder(data)
    values = [{**asdict(one), "path": one.path and str(one.path)} for one in found]
    altered = [one for one in found if one.state == "altered"]
    for one in altered:
        typer.echo(f"giw paper data: {files.not_whole(one.path, one.file, one.md5)}", err=True)
    told = {"folder": str(folder), "files": values}
    return Told(told, files.in_words(found, folder), code=FAILED if altered else 0)
