"""A file that is too large for memory: a random sample of its rows, and exact counts.

The rows to draw are chosen by their numbers. Then the file is walked through, some rows at a
time: labels are counted, the chosen rows are picked, and so is the row in which a label, a category
or a missing value of a column first occurs. A sample that lacked a rare category would make it look
as if training had never seen it, so that those which were not drawn join it in the end.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from giw.tables.reading import FIRST_ROW, NPZ, TableFile, checked_path, read_table
from giw.tables.table import Column, Table, missing_in

COPIES = 6  # of a table that are in memory at once: file, frame, columns, matrix, units, scratch


def read_within(
    path: str | os.PathLike[str], memory: float, *, label: str | None = None, random_state: int = 0
) -> Table:
    """A whole table where it can be worked on within ``memory`` bytes, a sample of it otherwise."""
    path = checked_path(path)
    if path.name.lower().endswith(NPZ):
        return read_table(path)
    file = TableFile(path, most_bytes=memory / COPIES)
    if file.kept is not None:
        return file.table(file.kept)
    return sample_file(file, label=label, random_state=random_state)


def sample_file(
    path: str | os.PathLike[str] | TableFile,
    most: int = 50_000,  # rows to draw, each with the same chance, without replacement
    *,
    label: str | None = None,  # a column whose values are counted over all rows, if it is there
    random_state: int = 0,
    most_levels: int = 10_000,  # texts of a column beyond which it is a name and no category
    most_added: int = 2_000,  # rows that may join the sample for the sake of rare values
    block_bytes: int = 2**20,  # read at a time; about fifty times as much is in memory then
) -> Table:
    """At most ``most`` random rows of a csv or parquet file, and one of each rare value besides."""
    import pandas as pd
    import pyarrow as pa

    file = path
    if not isinstance(file, TableFile):
        file = TableFile(Path(file), block_bytes, most_bytes=0)
    drawn = np.zeros(file.total, dtype=bool)
    choice = np.random.default_rng(random_state).choice
    drawn[choice(file.total, min(most, file.total), replace=False, shuffle=False)] = True
    picked = drawn.copy()  # and where a level first occurs
    first: dict[str, dict[Any, int]] = {name: {} for name in file.names}
    counts: Counter[Any] = Counter()
    batches, start = [], 0
    for batch in file.batches():
        for name, column in file.table([batch]).columns.items():
            if len(first[name]) > most_levels:  # nearly every row has its own
                continue
            levels = pd.Series(_levels(column, name == label), dtype=object)
            for at, level in levels.drop_duplicates().items():
                if level not in first[name]:
                    first[name][level], picked[start + at] = start + at, True
            if name == label:
                counts.update(levels)
        batches.append(batch.filter(pa.array(picked[start : start + len(batch)])))
        start += len(batch)
    label_counts = None
    if label in first:
        label_counts = _counted(file, label, first[label], counts, most_levels)
    table, rows = file.table(batches), np.flatnonzero(picked)
    rare: set[int] = set()
    for name, column in table.columns.items():
        if len(first[name]) <= most_levels:
            there = set(_levels(column[drawn[rows]], name == label))
            rare |= {row for level, row in first[name].items() if level not in there}
    drawn[sorted(rare)[:most_added]] = True
    notes, kept = table.notes, drawn[rows]
    if len(rare) > most_added:
        gone = f"{len(rare) - most_added:,} rare values are not in the sample"
        notes = (*notes, f"{table.source}: {gone} and count as never seen")
    return replace(
        table, columns={name: column[kept] for name, column in table.columns.items()}, notes=notes,
        rows=rows[kept], total=file.total, label_counts=label_counts,
    )  # fmt: skip


def _levels(column: Column, label: bool) -> list[Any]:
    """The text or label of each row, None where missing; of other numbers, whether they are."""
    if label or column.dtype == object:
        return [value if value == value else None for value in column.tolist()]
    return (~missing_in(column)).tolist()


def _counted(
    file: TableFile, label: str, first: dict[Any, int], counts: Counter[Any], most_levels: int
) -> dict[Any, int]:
    """How often each label occurs, as :meth:`giw.tables.Table.labels` would call it."""
    if None in first:
        raise ValueError(
            f"{file.path}: some of {file.total} rows have no label in column {label!r} "
            f"(the first in row {first[None] + FIRST_ROW}); drop those rows"
        )
    if len(first) > most_levels:
        raise ValueError(
            f"{file.path}: column {label!r} has more than {most_levels:,} different values: that "
            "is a number and not a class; group it first, for example with pandas.cut"
        )
    kind = object if isinstance(next(iter(counts)), str) else np.float64
    labels = Table({label: np.array(list(counts), dtype=kind)}).labels(label)
    return dict(zip(labels.tolist(), counts.values(), strict=True))
