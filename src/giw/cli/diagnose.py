"""``giw diagnose``: say how two tables differ."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giw.cli.common import DRIFTED, AsJson, Quiet, Seed, Told, check_writable, option, stderr

if TYPE_CHECKING:
    from giw.tables import Table


LABEL = "Column that holds the label."
NO_LABEL = "There is none: compare features only."
GROUP = "Column that says which rows belong together (patient, day): tests take one row of each."
OUT = "Write a page with figures here, such as report.html."
ROWS = "Write all rows outside and all suspect labels here, as csv."
MEMORY = "Gigabytes that a table may take; a larger csv or parquet file is walked through."


TRAIN = "Training data: csv, parquet or npz; or the folder of a model that giw fit has saved."
VAL = "Validation data, from where the model will be used; new rows beside a model."
LEVEL = "Of a model and new rows: how often rows without drift may raise an alarm."


def diagnose(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help=TRAIN)],
    val: Annotated[Path, typer.Argument(metavar="VAL", help=VAL)],
    label: Annotated[str | None, option("--label", "-l", help=LABEL)] = None,
    no_label: Annotated[bool, option("--no-label", help=NO_LABEL)] = False,
    group: Annotated[str | None, option("--group", "-g", help=GROUP)] = None,
    out: Annotated[Path | None, option("--out", "-o", help=OUT)] = None,
    rows: Annotated[Path | None, option("--rows", help=ROWS)] = None,
    memory: Annotated[float, option("--memory", help=MEMORY, min=0.001)] = 1.0,
    level: Annotated[float, option("--level", help=LEVEL, metavar="SHARE")] = 0.01,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told:
    """Say what has shifted between training and validation data, how much, where, and what to do.

    Which of the four cases of support shift it is, with bounds; whether features, class shares or
    labels have shifted, and what that costs a model; every column beside the other table's; which
    rows are outside and why; training labels that look wrong; and a recommendation.

    If VAL has no label column, only features are compared. Large tables are sampled, and the answer
    says so; csv and parquet files larger than --memory are never read whole.

    With the folder of a model instead of TRAIN, rows without labels are compared with the
    validation rows that the model was fitted to: something to run every night.

    Example:

        giw diagnose train.csv new.csv --label y -o report.html --rows rows.csv

        giw diagnose model/ tonight.csv --json

    Exit code 0 when the diagnosis is done, whatever it says; of a model and new rows 0 without and
    3 with drift. 2 for a mistake in the input.
    """
    silent = quiet or as_json
    if out is not None:
        check_writable(out, "--out", ".html", ".htm", read=[train, val])
    if rows is not None:
        check_writable(rows, "--rows", ".csv", read=[train, val])
    if train.is_dir():
        if (label or no_label or group or out) and (train / "giw.json").exists():
            raise ValueError(
                "a model knows its columns and makes no page: leave out --label, --no-label, "
                "--group and --out"
            )
        return _diagnose_new(train, val, level, rows, seed, silent=silent)
    from giw.diagnosis import diagnose as run
    from giw.tables import read_within
    from giw.tables.table import did_you_mean
    from giw.writing import write_whole

    with stderr(silent).status("reading") as status:
        tables = [
            read_within(path, memory * 1e9, label=label, random_state=seed) for path in (train, val)
        ]
        if (label is None) != no_label:
            both = "--label and --no-label exclude each other; leave one out"
            raise ValueError(both if no_label else _which_label(tables[0]))
        y = y_val = None
        if label is not None:
            y = tables[0].labels(label)
            y_val = tables[1].labels(label) if label in tables[1].columns else None
        groups = [None if group is None else table.columns.get(group) for table in tables]
        if group is not None and groups[1] is None:
            hint = did_you_mean(group, tables[1].names)
            raise ValueError(f"{val} has no column {group!r} for --group{hint}")
        X, X_val = (table.without(label, group) for table in tables)
        found = run(
            X, y, X_val, y_val, groups=groups[0], groups_val=groups[1],
            random_state=seed, on_step=status.update,
        )  # fmt: skip
    fit = ""
    units = any(fact.kind == "unit" for fact in found.facts)  # converted in Python only
    if y_val is not None and found.recommendation.remedy != "plain" and not units:
        words = ["giw", "fit", str(train), str(val), "--label", str(label), "-o", "model/"]
        words += [word for f in found.facts if f.aside for word in ("--drop", str(f.column))]
        fit = shlex.join(words)
    if out is not None:
        command = ["giw", "diagnose", str(train), str(val)]
        command += ["--label", label] if label is not None else ["--no-label"]
        command += ["--group", group] if group is not None else []
        found.to_html(out, command=shlex.join(command), next_command=fit)
    if rows is not None:
        write_whole(rows, found.to_frame("rows").to_csv(index=False))
    notes = [f"{val} has no column {label!r}: only features were compared"]
    page = f"Page with figures: {out}" if out else "Add -o report.html for a page with figures."
    return Told(
        {**found.to_dict(), "next_command": fit, "page": out and str(out)},
        "\n\n".join([found.summary(), *[f"From the shell:\n  {fit}"] * bool(fit), page]),
        brief=found.recommendation.answer.replace("\u00a0", " "),
        notes=notes if label and y_val is None else (),
    )


def _diagnose_new(
    model: Path, data: Path, level: float, rows: Path | None, seed: int, *, silent: bool
) -> Told:
    """New rows beside those of a saved model; exit code 3 where they have drifted."""
    from giw.cli.predict import reference_of
    from giw.diagnosis.drift import drift
    from giw.estimators.saving import load_with_notes
    from giw.tables import Encoder, read_table
    from giw.writing import write_whole

    if not 0 < level < 1:
        raise ValueError(f"--level must lie between 0 and 1, got {level:g}")
    estimator, notes = load_with_notes(model)
    reference, table = reference_of(estimator, model), read_table(data)
    judged: dict[str, Any] = {}
    with stderr(silent).status(f"comparing {len(table):,} rows"):
        left = getattr(estimator, "left_out_", None)
        if left is not None and left.mixed is not None and "table" in notes:
            X = Encoder.from_dict(notes["table"]).transform(table)
            right = estimator.classes_[left.mixed.argmax(axis=1)] == left.y
            judged["confidence"] = estimator.predict_proba(X).max(axis=1)
            judged["left_out"] = left.mixed.max(axis=1), right
        found = drift(reference, table, level=level, random_state=seed, **judged)
    if rows is not None:
        lines = "".join(f"{row + 2}\n" for row in found.outside)
        write_whole(rows, f"row\n{lines}")
    words = found.summary().replace("\u00a0", " ")
    code = DRIFTED if found.found else 0
    return Told(found.to_dict(), words, words.split("\n")[0], table.notes, code)


def _which_label(read: Table, most_classes: int = 20) -> str:
    """What to add, with the columns whose few values may be classes, the last column first."""
    columns = reversed(list(read.columns.items()))
    few = [name for name, column in columns if 2 <= len(set(column.tolist())) <= most_classes]
    listed = ", ".join(repr(name) for name in few[:5]) + ", …" * (len(few) > 5)
    which = f"columns of few values: {listed}" if few else "no column has few values"
    return f"name the column of the label with --label ({which}), or say --no-label"
