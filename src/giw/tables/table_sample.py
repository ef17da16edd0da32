"""A file that is too large for memory: a random sample of its rows, and exact counts.

The rows to draw are chosen by their numbers. Then the file is walked through, a batch of rows at a
time: labels are counted, the chosen rows are picked, and so is the row in which a label, a category
or a missing value of a column first occurs. A sample that lacked a rare category would make it look
as if training had never seen it, so that those which were not drawn join it in the end.

A parquet file says how many rows it has, and of what type; a csv file is walked through once more
before, to find that out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from giw.tables.csv_walk import CSV_ENDINGS, CsvWalk, csv_bytes
from giw.tables.reading import Table, parquet_errors, read_table, table_from_frame

BATCH = 65_536  # rows read at a time
SAMPLED = 50_000  # rows of a file that does not fit
COPIES = 6  # of a table that are in memory at once: file, frame, columns, matrix, units, scratch
MOST_KINDS = 10_000  # different values of a column beyond which it is a name and no category
MOST_ADDED = 2_000  # rows that join the sample for the sake of rare values
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableSample:
    """Some rows of a file, where they stand in it, and what is known of all rows.

    Attributes
    ----------
    table : Table
        The rows that were drawn, in the order of the file.
    rows : int array of shape (k,)
        Their numbers in the file, from 0.
    total : int
        Rows in the file.
    label_counts : dict of label to int, or None
        How often each label occurs in the whole file.
    """

    table: Table
    rows: Ints
    total: int
    label_counts: dict[Any, int] | None = None

    @property
    def columns(self) -> Any:
        """Of the table."""
        return self.table.columns

    def without(self, name: str) -> TableSample:
        """The same rows less one column."""
        return replace(self, table=self.table.without(name))

    def labels(self, name: str) -> NDArray[Any]:
        """One column as labels, of the sampled rows."""
        return self.table.labels(name)


class Walk(Protocol):
    """A file that can be walked through, a batch of rows at a time."""

    path: Path
    names: list[str]
    total: int
    text: set[str]  # columns that stay text even where the sampled rows look like dates
    notes: tuple[str, ...]

    def batches(self) -> Iterator[Any]:
        """Batches of Arrow, all rows in their order."""
        ...

    def errors(self) -> AbstractContextManager[None]:
        """Around work on the batches: what is wrong with the file, in one line."""
        ...


class ParquetWalk:
    """Rows of a parquet file, some at a time."""

    def __init__(self, path: Path, rows_at_a_time: int) -> None:
        self.path, self.rows_at_a_time = path, rows_at_a_time
        self._file = _open(path)
        self.names: list[str] = self._file.schema_arrow.names
        self.total: int = self._file.metadata.num_rows
        self.text: set[str] = set()
        self.notes: tuple[str, ...] = ()

    def batches(self) -> Iterator[Any]:
        """Batches of Arrow, all rows in their order."""
        return iter(self._file.iter_batches(batch_size=self.rows_at_a_time, use_threads=False))

    def errors(self) -> AbstractContextManager[None]:
        """A damaged page is found when it is read, damaged text when it is looked at."""
        return parquet_errors(self.path)


def read_within(
    path: str | os.PathLike[str],
    memory: float,
    *,
    label: str | None = None,
    random_state: int = 0,
) -> Table | TableSample:
    """A whole table where it can be worked on within ``memory`` bytes, a sample of it otherwise."""
    if fits(path, memory):
        return read_table(path)
    sample = sample_parquet if _is_parquet(Path(path)) else sample_csv
    return sample(path, SAMPLED, label=label, random_state=random_state)


def fits(path: str | os.PathLike[str], memory: float) -> bool:
    """Whether a file can be worked on within ``memory`` bytes; npz files always count as if.

    The table itself would take rows × columns × 8 bytes, or what its text takes.
    """
    path = Path(path)
    if not path.is_file():
        return True
    if _is_parquet(path):
        metadata = _open(path).metadata
        text = sum(metadata.row_group(j).total_byte_size for j in range(metadata.num_row_groups))
        return COPIES * max(8 * metadata.num_rows * metadata.num_columns, text) <= memory
    if path.name.lower().endswith(CSV_ENDINGS):
        return COPIES * csv_bytes(path, memory / COPIES) <= memory
    return True


def sample_parquet(
    path: str | os.PathLike[str],
    most: int,
    *,
    label: str | None = None,
    random_state: int = 0,
) -> TableSample:
    """At most ``most`` random rows of a parquet file, and one row of each rare value besides.

    Parameters
    ----------
    path : path
    most : int
        Rows to draw, each with the same chance, without replacement.
    label : str, optional
        Column whose values are counted over all rows, if the file has it.
    random_state : int, default=0
    """
    return sampled(ParquetWalk(Path(path), BATCH), most, label, random_state)


def sample_csv(
    path: str | os.PathLike[str],
    most: int,
    *,
    label: str | None = None,
    random_state: int = 0,
) -> TableSample:
    """The same of a csv file, with the types that :func:`giw.tables.read_table` would find.

    Parameters as in :func:`giw.tables.sample_parquet`.
    """
    _import_pyarrow("csv files larger than the memory")
    return sampled(CsvWalk(Path(path), BATCH), most, label, random_state)


def sampled(walk: Walk, most: int, label: str | None, random_state: int) -> TableSample:
    """At most ``most`` random rows of what is walked through, and one row of each rare value."""
    path, total = walk.path, walk.total
    if total == 0:
        raise ValueError(f"{path} holds no rows; a table needs at least one")
    if label not in walk.names:
        label = None
    generator = np.random.default_rng(random_state)
    drawn = np.zeros(total, dtype=bool)  # a byte per row of the file is all that grows with it
    drawn[generator.choice(total, size=min(most, total), replace=False, shuffle=False)] = True
    with walk.errors():
        kept, added, counts = _walked_through(walk, label, drawn)
        drawn[added[:MOST_ADDED]] = True
        table = table_from_frame(kept.frame(drawn), str(path))
    columns = dict(table.columns)
    for name in walk.text:
        if columns[name].dtype != object:  # the sampled rows are all dates, and others are not
            columns[name] = kept.texts(name, drawn)
    notes = [*walk.notes, *table.notes]
    if len(added) > MOST_ADDED:
        notes.append(
            f"{path}: {len(added) - MOST_ADDED:,} rare values are not in the sample and count as "
            "never seen"
        )
    rows = np.flatnonzero(drawn)
    return TableSample(Table(columns, str(path), tuple(notes)), rows, total, counts)


class _Kept:
    """Rows that are in the sample, or may join it."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.rows: list[Ints] = []

    def add(self, batch: Any, start: int, mask: NDArray[np.bool_]) -> None:
        import pyarrow as pa

        if mask.any():
            self.parts.append(batch.filter(pa.array(mask)))
            self.rows.append(start + np.flatnonzero(mask))

    def chosen(self, drawn: NDArray[np.bool_]) -> Any:
        import pyarrow as pa

        mask = pa.array(drawn[np.concatenate(self.rows)])
        return pa.Table.from_batches(self.parts).filter(mask)

    def frame(self, drawn: NDArray[np.bool_]) -> Any:
        return self.chosen(drawn).to_pandas()

    def texts(self, name: str, drawn: NDArray[np.bool_]) -> NDArray[Any]:
        return np.array(self.chosen(drawn)[name].to_pylist(), dtype=object)


class _Kinds:
    """Values of a column: where each first occurs in the file, and which are in the sample."""

    def __init__(self) -> None:
        self.first: dict[Any, int] = {}
        self.drawn: set[Any] = set()

    def is_new(self, value: Any, row: int, *, drawn: bool) -> bool:
        """Note a value; whether it has not occurred before."""
        before = len(self.first)
        self.first.setdefault(value, row)
        if drawn:
            self.drawn.add(value)
        return len(self.first) > before

    def rare(self) -> list[int]:
        """First rows of the values that were not drawn; none where every row has its own value."""
        if len(self.first) > MOST_KINDS:
            return []
        return [row for value, row in self.first.items() if value not in self.drawn]


def _walked_through(
    walk: Walk, label: str | None, drawn: NDArray[np.bool_]
) -> tuple[_Kept, list[int], dict[Any, int] | None]:
    """Rows that may join the sample, numbers of those with something rare, counts of labels."""
    import pyarrow as pa

    found = {name: _Kinds() for name in walk.names}
    labels: Counter[Any] = Counter()
    kept, start, path = _Kept(), 0, walk.path
    for batch in walk.batches():
        mask = drawn[start : start + batch.num_rows]
        may_join = mask.copy()
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kinds, kind = found[name], column.type
            if pa.types.is_dictionary(kind):
                column, kind = column.cast(kind.value_type), kind.value_type
            gone = column.is_null(nan_is_null=pa.types.is_floating(kind))
            gaps = np.flatnonzero(gone.to_numpy(zero_copy_only=False))
            if len(gaps) and kinds.is_new(None, start + int(gaps[0]), drawn=bool(mask[gaps].any())):
                may_join[gaps[0]] = True
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            if (text or name == label) and len(kinds.first) <= MOST_KINDS:
                for value, at, size, taken in _kinds(column, mask):
                    if kinds.is_new(value, start + at, drawn=taken):
                        may_join[at] = True
                    if name == label:
                        labels[value] += size
        kept.add(batch, start, may_join)
        start += batch.num_rows
    rows = sorted({row for kinds in found.values() for row in kinds.rare()})
    if label is None:
        return kept, rows, None
    if None in found[label].first:
        raise ValueError(
            f"{path}: some of {start} rows have no label in column {label!r} (the first in row "
            f"{found[label].first[None]}); drop those rows"
        )
    if len(found[label].first) > MOST_KINDS:
        raise ValueError(
            f"{path}: column {label!r} has more than {MOST_KINDS:,} different values: that is a "
            "number and not a class; group it first, for example with pandas.cut"
        )
    return kept, rows, _as_labels(labels, label, path)


def _kinds(column: Any, mask: NDArray[np.bool_]) -> Iterator[tuple[Any, int, int, bool]]:
    """Each value of a column, where it first occurs, how often, and whether the mask has it."""
    import pyarrow.compute as pc

    place = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    encoded = pc.dictionary_encode(column.drop_null())
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    _, at, size = np.unique(codes, return_index=True, return_counts=True)
    taken = np.bincount(codes[mask[place]], minlength=len(size)) > 0
    values = encoded.dictionary.to_pylist()  # in the order of their codes
    return zip(values, place[at].tolist(), size.tolist(), taken.tolist(), strict=True)


def _as_labels(counts: Counter[Any], label: str, path: Path) -> dict[Any, int]:
    """Counts under the labels that :meth:`giw.tables.Table.labels` would give."""
    import pandas as pd

    values = table_from_frame(pd.DataFrame({label: list(counts)}), str(path)).labels(label)
    total: Counter[Any] = Counter()
    for value, count in zip(values.tolist(), counts.values(), strict=True):
        total[value] += count
    return dict(total)


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith((".parquet", ".pq"))


def _import_pyarrow(what: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{what} need pyarrow: pip install 'giw[tables]'") from None
    return pyarrow


def _open(path: Path) -> Any:
    pyarrow = _import_pyarrow("parquet files")
    with parquet_errors(path):
        # without a read-ahead of whole row groups, which may be as large as the file
        return pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
