"""``giw label-next``: which rows of a pool to label first, and what that is expected to gain."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giw.cli.common import AsJson, Label, Quiet, Seed, Told, Train, check_writable, option, stderr

if TYPE_CHECKING:
    from giw.tables import Table

POOL = "Rows without labels, from where the model will be used."
VAL = "Rows of the same kind that are labelled already: they tell what more of them will gain."


def label_next(
    train: Train,
    pool: Annotated[Path, typer.Argument(metavar="POOL", help=POOL)],
    label: Label,
    labelled: Annotated[Path | None, option("--val", help=VAL)] = None,
    many: Annotated[int, option("--rows", "-n", help="How many rows to label.", min=1)] = 50,
    out: Annotated[Path, option("--out", "-o", help="Csv file for them.")] = Path("to_label.csv"),
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told:
    """Say which rows of a pool to label first, and what their labels are expected to gain.

    They are drawn at random, so that they also show how good the model is; no other way gained more
    on natural tables. Rows of POOL that have a label are passed over, unless all have one.

    The file has the rows as they are in POOL, their number there as a spreadsheet counts it
    (names are in row 1), and a column for the label.

    Example:

        giw label-next train.csv pool.csv --label y --val val.csv -n 50

    Exit code 0 when the file is written, 2 for a mistake in the input.
    """
    check_writable(out, "--out", ".csv")
    if out.exists():  # it may hold an afternoon of somebody's labels
        raise ValueError(f"{out} exists already; name another file with --out")
    import numpy as np

    from giw.tables import Encoder, read_table
    from giw.tables.table import missing_in
    from giw.writing import write_whole

    tables = [read_table(path) for path in (train, pool, labelled) if path is not None]
    y = tables[0].labels(label)
    encoder = Encoder().fit(tables[0].without(label), tables[1].without(label))
    encoder.transform(tables[1])  # it has the columns of training
    column, free = tables[1].columns.get(label), np.arange(len(tables[1]))
    if column is not None and missing_in(column).any():
        free = np.flatnonzero(missing_in(column))
    if len(free) < many:
        raise ValueError(f"{pool} has {len(free)} rows to label, fewer than {many}; lower --rows")
    rows = np.sort(np.random.default_rng(seed).permutation(free)[:many])
    said, values = "Pass these as --val and see what more gain.", dict[str, Any]()
    if labelled is not None:
        with stderr(quiet or as_json).status("judging by --val"):
            said, values = _outlook(encoder, tables[0], y, tables[2], label, many, seed)
    write_whole(out, _as_in_file(pool, tables[1], rows, label).to_csv(index=False))
    files = [str(train), str(labelled or out), "--label", label, "-o", "model/"]
    files += ["--drop", "row"] * (labelled is None)
    add = f", add the rows to {labelled} without column 'row'" if labelled is not None else ""
    words = [
        f"Label these {many} of {len(free):,} rows first, drawn at random: {out}",
        said,
        f"Next: fill in column {label!r}{add}, then\n  {shlex.join(['giw', 'fit', *files])}",
    ]
    values |= {"file": str(out), "rows": (rows + 2).tolist(), "pool": len(free), "way": "random"}
    return Told(values, "\n".join(words), notes=[n for table in tables for n in table.notes])


def _outlook(
    encoder: Any, train: Table, y: Any, val: Table, label: str, many: int, seed: int
) -> tuple[str, dict[str, Any]]:
    """What so many labels are expected to gain, and how well accuracy is known."""
    import giw
    from giw.judging.gain import FEWEST, expected_gain

    y_val = val.labels(label)
    X, X_val = encoder.transform(train), encoder.transform(val)
    model = giw.ReweightedClassifier(random_state=seed)
    found = expected_gain(model, X, y, X_val, y_val, many, random_state=seed)
    if found is None:
        return f"What more gain is told of classes, from {FEWEST} rows of --val on.", {}
    gain, (low, high) = found
    risk = giw.select(model.fit(X, y, X_val=X_val, y_val=y_val)).risks["stack"]
    known = 0.05  # half of an interval of accuracy that most people would call known
    wide = giw.labels_needed(risk, 2 * known)
    values = {"accuracy": risk.estimate, "expected_gain": gain, "gain_interval": [low, high]}
    values["labels_for_interval"] = wide
    return (
        f"Accuracy now: {risk.estimate:.2f} on left-out rows ({risk.interval[0]:.2f} to "
        f"{risk.interval[1]:.2f}). Expected gain of {many} labels: {gain:+.3f} ({low:+.3f} "
        f"to {high:+.3f}). Accuracy is known to ± {known:g} "
        + (f"with {wide:,} labels more." if wide else "already.")
    ), values


def _as_in_file(path: Path, table: Table, rows: Any, label: str) -> Any:
    """The rows as they are in the file, with their numbers first and a column for the label."""
    import pandas as pd

    from giw.tables.reading import CSV, PARQUET, header

    name = path.name.lower()
    if name.endswith(CSV):
        frame = pd.read_csv(
            path, sep=header(path)[1], dtype=str, keep_default_na=False, encoding="utf-8-sig"
        )
    else:
        frame = pd.read_parquet(path) if name.endswith(PARQUET) else pd.DataFrame(table.columns)
    if "row" in frame:
        raise ValueError(f"{path} has a column 'row', which is to hold row numbers; rename it")
    some = frame.iloc[rows].copy()
    if label not in some:
        some[label] = ""
    some.insert(0, "row", rows + 2)
    return some
