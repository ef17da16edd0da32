"""``giw diagnose``."""

from __future__ import annotations

import shlex
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giw.cli.messages import (
    AsJson,
    Quiet,
    Seed,
    check_writable,
    err_console,
    heard_warnings,
    one_line_errors,
    say_json,
    say_notes,
)

if TYPE_CHECKING:
    from giw.tables import Table


LABEL = "Column that holds the label."
NO_LABEL = "There is none: compare features only."
GROUP = "Column that says which rows belong together (patient, day): tests take one row of each."
OUT = "Write a page with figures here, such as report.html."
ROWS = "Write all rows outside and all suspect labels here, as csv."
MEMORY = "Gigabytes that a table may take; a larger csv or parquet file is walked through."


def _option(*names: str, words: str, **more: Any) -> Any:
    return typer.Option(*names, help=words, **more)


def diagnose(
    train: Annotated[Path, typer.Argument(help="Training data: csv, parquet or npz.")],
    val: Annotated[
        Path, typer.Argument(help="Validation data, from where the model will be used.")
    ],
    label: Annotated[str | None, _option("--label", "-l", words=LABEL)] = None,
    no_label: Annotated[bool, _option("--no-label", words=NO_LABEL)] = False,
    group: Annotated[str | None, _option("--group", "-g", words=GROUP)] = None,
    out: Annotated[Path | None, _option("--out", "-o", words=OUT)] = None,
    rows: Annotated[Path | None, _option("--rows", words=ROWS)] = None,
    memory: Annotated[float, _option("--memory", words=MEMORY, min=0.001)] = 1.0,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what has shifted between training and validation data, how much, where, and what to do.

    Which of the four cases of support shift it is, with bounds; the share that lies outside the
    training data; whether features, class shares or labels have shifted, and what that costs a
    model; every column beside the other table's; which rows are outside and why; training labels
    that look wrong; and a recommendation.

    Text and missing values are handled. If VAL has no label column, only features are compared.
    Large tables are sampled, and the answer says so. Csv and parquet files larger than --memory are
    never read whole: they are walked through, classes are counted over all rows, the rest is a
    sample.

    Example:

        giw diagnose train.csv new.csv --label y -o report.html --rows rows.csv

    Exit code 0 when the diagnosis is done, whatever it says; 2 for a mistake in the input.
    """
    with one_line_errors("giw diagnose"):
        from giw.diagnosis import STEPS
        from giw.diagnosis import diagnose as run
        from giw.pages.progress import make_progress
        from giw.tables import read_within
        from giw.tables.table import did_you_mean
        from giw.writing import write_whole

        for path, option in ((out, "--out"), (rows, "--rows")):
            if path is not None:
                check_writable(path, f"name a file with {option}", a_file=True)

        tables = [
            read_within(path, memory * 1e9, label=label, random_state=seed) for path in (train, val)
        ]
        if label is None and not no_label:
            raise ValueError(_which_label(tables[0]))
        if label is not None and no_label:
            raise ValueError("--label and --no-label exclude each other; leave one out")
        y = y_val = None
        if label is not None:
            y = tables[0].labels(label)
            y_val = tables[1].labels(label) if label in tables[1].columns else None
        groups = [None if group is None else t.columns.get(group) for t in tables]
        if group is not None and groups[1] is None:
            hint = did_you_mean(group, tables[1].names)
            raise ValueError(f"{val} has no column {group!r} for --group{hint}")
        apart = [name for name in (label, group) if name is not None]
        features = [reduce(lambda t, name: t.without(name), apart, table) for table in tables]
        console = err_console()
        shown = console.is_terminal and not (quiet or as_json)
        bar = make_progress(shown=shown, console=console)
        with heard_warnings() as warned, bar as progress:
            task = progress.add_task("reading", total=len(STEPS), note="")

            def on_step(name: str) -> None:
                progress.update(task, completed=STEPS.index(name), description=name)

            found = run(
                features[0], y, features[1], y_val, groups=groups[0], groups_val=groups[1],
                random_state=seed, on_step=on_step,
            )  # fmt: skip
        if label and y_val is None:
            warned.append(f"{val} has no column {label!r}: only features were compared")
        say_notes(warned, quiet=quiet)
        fit = ""
        if y_val is not None and found.recommendation.remedy != "plain":
            fit = shlex.join(["giw", "fit", str(train), "--val", str(val), "--label", str(label),
                              "-o", "model/"])  # fmt: skip
        if out is not None:
            command = ["giw", "diagnose", str(train), str(val)]
            command += ["--label", label] if label is not None else ["--no-label"]
            command += ["--group", group] if group is not None else []
            found.to_html(out, command=shlex.join(command), next_command=fit)
        if rows is not None:
            rows.parent.mkdir(parents=True, exist_ok=True)
            write_whole(rows, found.to_frame("rows").to_csv(index=False))
        if as_json:
            say_json({**found.to_dict(), "next_command": fit, "page": out and str(out)})
        elif quiet:
            typer.echo(found.recommendation.answer.replace("\u00a0", " "))
        else:
            more = "Add -o report.html for a page with figures."
            more = more if out is None else f"Page with figures: {out}"
            parts = [found.summary(), *[f"From the shell: {fit}"] * bool(fit), more]
            typer.echo("\n\n".join(parts))


def _which_label(read: Table, most_classes: int = 20) -> str:
    """What to add, with the columns whose few values may be classes, the last column first."""
    columns = reversed(list(read.columns.items()))
    few = [name for name, column in columns if 2 <= len(set(column.tolist())) <= most_classes]
    listed = ", ".join(repr(name) for name in few[:5]) + ", …" * (len(few) > 5)
    which = f"columns of few values: {listed}" if few else "no column has few values"
    return f"name the column of the label with --label ({which}), or say --no-label"
