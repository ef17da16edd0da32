"""``giw diagnose``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    from giw.tables import Table, TableSample


def diagnose(
    train: Annotated[Path, typer.Argument(help="Training data: csv, parquet or npz.")],
    val: Annotated[
        Path, typer.Argument(help="Validation data, from where the model will be used.")
    ],
    label: Annotated[
        str | None,
        typer.Option("--label", "-l", help="Column that holds the label.", show_default="none"),
    ] = None,
    no_label: Annotated[
        bool, typer.Option("--no-label", help="There is none: compare features only.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write a page with figures here, such as report.html."),
    ] = None,
    memory: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="Gigabytes that a table may take; a larger csv or parquet file is walked through.",
        ),
    ] = 1.0,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what has shifted between training and validation data, how much, where, and what to do.

    Which of the four cases of support shift it is, with bounds; the share that lies outside the
    training data; whether features, class shares or labels have shifted; which rows are outside
    and which columns put them there; training labels that look wrong; and a recommendation.

    Text and missing values are handled. If VAL has no label column, only features are compared.
    Large tables are sampled, and the answer says so. Csv and parquet files larger than --memory are
    never read whole: they are walked through, classes are counted over all rows, the rest is a
    sample.

    Example:

        giw diagnose train.csv new.csv --label y -o report.html

    Exit code 0 when the diagnosis is done, whatever it says; 2 for a mistake in the input.
    """
    with one_line_errors("giw diagnose"):
        from giw.diagnosis import STEPS
        from giw.diagnosis import diagnose as run
        from giw.pages.progress import make_progress
        from giw.tables import read_within

        if out is not None:
            check_writable(out, "name a file with --out", a_file=True)

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
        features = [t if label is None else t.without(label) for t in tables]
        console = err_console()
        shown = console.is_terminal and not (quiet or as_json)
        with (
            heard_warnings() as warned,
            make_progress(shown=shown, console=console) as progress,
        ):
            task = progress.add_task("reading", total=len(STEPS), note="")

            def on_step(name: str) -> None:
                progress.update(task, completed=STEPS.index(name), description=name)

            found = run(features[0], y, features[1], y_val, random_state=seed, on_step=on_step)
            progress.update(task, completed=len(STEPS), description="done")
        missing = [f"{val} has no column {label!r}: only features were compared"]
        say_notes([*warned, *(missing if label and y_val is None else [])], quiet=quiet)
        fit = ""
        if label is not None and y_val is not None and found.recommendation.remedy != "plain":
            fit = shlex.join(
                ["giw", "fit", str(train), "--val", str(val), "--label", label, "-o", "model/"]
            )
        if out is not None:
            command = ["giw", "diagnose", str(train), str(val)]
            command += ["--label", label] if label is not None else ["--no-label"]
            found.to_html(out, command=shlex.join(command), next_command=fit)
        if as_json:
            say_json(
                {**found.to_dict(), "next_command": fit, "page": None if out is None else str(out)}
            )
        elif quiet:
            typer.echo(found.recommendation.answer.replace("\u00a0", " "))
        else:
            typer.echo(found.summary())
            if fit:
                typer.echo(f"\nFrom the shell: {fit}")
            typer.echo(
                f"\nPage with figures: {out}"
                if out is not None
                else "\nAdd -o report.html for a page with figures."
            )


def _which_label(read: Table | TableSample, most_classes: int = 20) -> str:
    """What to add, with the columns whose few values may be classes, the last column first."""
    table = getattr(read, "table", read)
    few = [
        name
        for name in reversed(table.names)
        if 2 <= len(set(table.columns[name].tolist())) <= most_classes
    ]
    listed = ", ".join(repr(name) for name in few[:5]) + ", …" * (len(few) > 5)
    which = f"columns of few values: {listed}" if few else "no column has few values"
    return f"name the column of the label with --label ({which}), or say --no-label"
