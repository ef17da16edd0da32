"""``giw example``: small tables of real data that differ in one way each."""

from __future__ import annotations

import gzip
import shlex
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giw.cli.common import AsJson, Quiet, Told, check_writable, option
from giw.writing import write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

NAME = "One of the list; left out: the list."
STORIES = {
    "new-category": (
        "An airline that training never saw. Flights from New York: is the aircraft a large one? "
        "Training has no flight of United."
    ),
    "noisy-labels": (
        "Wrong training labels. Breast tumours: benign or malignant? Three in ten training labels "
        "were exchanged at random; validation labels are right."
    ),
    "class-mix": (
        "Other class shares. Breast tumours: benign or malignant? A tenth of training is malignant "
        "and more than half of validation."
    ),
    "time-drift": (
        "Another season. Flights from New York: more than 15 minutes late? Training is June and "
        "July, validation September to November."
    ),
    "no-shift": (
        "No difference. Breast tumours: benign or malignant? All rows come from one table at "
        "random."
    ),
}


def example(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help=NAME)] = None,
    out: Annotated[Path | None, option("--out", "-o", help="Folder.", show_default="NAME")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told:
    """Write a small example of real data, and name the commands to try on it.

    The folder gets train.csv, val.csv (few rows, from where the model will be used) and new.csv
    (rows to predict; their labels are there too, so that predictions can be judged). Without NAME
    the examples are listed.

    Example:

        giw example new-category

    Exit code 0 when the files are written, 2 for a mistake in the command.
    """
    if name is None:
        listed = "\n".join(f"{known}\n  {text}" for known, text in STORIES.items())
        return Told(dict(STORIES), words := f"{listed}\n\nNext:\n  giw example NAME", brief=words)
    if name not in STORIES:
        raise ValueError(f"{name!r} is none of {', '.join(STORIES)}")
    folder = out or Path(name)
    check_writable(folder / "train.csv", "--out", ".csv")
    tables = example_tables(name)
    texts = {folder / f"{part}.csv": table.to_csv(index=False) for part, table in tables.items()}
    for path, text in texts.items():
        if path.exists() and path.read_bytes() != text.encode():
            raise ValueError(f"{path} is another file; name another folder with --out")
    for path, text in texts.items():
        write_whole(path, text)
    train, val, _ = map(str, texts)
    label = tables["train"].columns[-1]
    both = [train, val, "--label", label]
    commands = [
        shlex.join(["giw", "diagnose", *both]),
        shlex.join(["giw", "fit", *both, "-o", str(folder / "model")]),
    ]
    rows = {str(path): len(table) for path, table in zip(texts, tables.values(), strict=True)}
    sizes = ", ".join(f"{path} {n:,}" for path, n in rows.items())
    following = "\n".join(f"  {command}" for command in commands)
    values = {"files": rows, "label": label, "next_commands": commands}
    return Told(values, f"{STORIES[name]}\nRows: {sizes}.\n\nNext:\n{following}")


def example_tables(name: str) -> dict[str, DataFrame]:
    """Tables "train", "val" and "new" of an example, the label last; the same at every call."""
    import numpy as np

    # with 0 the validation tumours of class-mix differ from the others by chance, at p = 0.0003
    rng = np.random.default_rng(1 if name == "class-mix" else 0)
    if name in ("new-category", "time-drift"):
        table = _flights(name)
        month, airline = table.pop("month"), table["airline"]
        source = month.between(6, 7) if name == "time-drift" else airline != "UA"
        target = month.between(9, 11) if name == "time-drift" else airline.notna()
        train = rng.permutation(np.flatnonzero(source))[:2_000]
        rest = np.setdiff1d(np.flatnonzero(target), train)
        rows = [train, *np.split(rng.permutation(rest)[:1_650], [150])]
    else:
        table = _tumours()
        malignant = (table["finding"] == "malignant").to_numpy()
        order = rng.permutation(len(table))
        if name == "class-mix":
            ill, well = order[malignant[order]], order[~malignant[order]]
            rows = [
                rng.permutation(np.concatenate([ill[a:b], well[c:d]]))
                for a, b, c, d in ((0, 25, 0, 225), (25, 55, 225, 245), (55, None, 245, None))
            ]
        else:
            rows = np.split(order, [300, 360])
    parts = ("train", "val", "new")
    tables = {p: table.iloc[r].reset_index(drop=True) for p, r in zip(parts, rows, strict=True)}
    if name == "noisy-labels":
        label = tables["train"]["finding"]
        other = label.map({"benign": "malignant", "malignant": "benign"})
        tables["train"]["finding"] = label.where(rng.random(len(label)) >= 0.3, other)
    return tables


def _flights(name: str) -> Any:
    """The flights beside this file; flights.md tells where they are from."""
    import numpy as np
    import pandas as pd

    content = resources.files("giw.cli").joinpath("flights.csv.gz").read_bytes()
    table = pd.read_csv(BytesIO(gzip.decompress(content)))
    seats, delay = table.pop("seats"), table.pop("delay")
    if name == "time-drift":
        table["late"] = np.where(delay > 15, "yes", "no")
        return table
    table["large"] = np.where(seats >= 140, "yes", "no")
    return table[seats.notna()].drop(columns=["wind", "rain", "visibility"])


def _tumours() -> Any:
    """The ten mean measurements of scikit-learn's breast cancer table."""
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer(as_frame=True).frame
    finding = table["target"].map({0: "malignant", 1: "benign"})
    mean = table[[column for column in table if column.startswith("mean ")]]
    return mean.rename(columns=lambda column: column.removeprefix("mean ")).assign(finding=finding)
