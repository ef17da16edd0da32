"""A file that is too large for memory: a random sample of its rows, and exact counts.

The rows to draw are chosen by their numbers. Then the file is walked through, some rows at a
time: labels are counted, the chosen rows are picked, and so is the row in which a label, a category
or a missing value of a column first occurs. A sample that lacked a rare category would make it look
as if training had never seen it, so that those which were not drawn join it in the end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.tables.csv_files import CsvFile, csv_bytes
from giw.tables.reading import CSV, PARQUET, parquet_errors, read_table
from giw.tables.table import Table, table_from_frame

COPIES = 6  # of a table that are in memory at once: file, frame, columns, matrix, units, scratch
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableSample(Table):
    """Some rows of a file, in its order, where they stand in it, and what is known of all rows.

    Attributes
    ----------
    rows : int array of shape (k,)
        Their numbers in the file, from 0.
    total : int
        Rows in the file.
    label_counts : dict of label to int, or None
        How often each label occurs in the whole file.
    """

    rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    total: int = 0
    label_counts: dict[Any, int] | None = None


class ParquetFile:
    """Rows of a parquet file, some at a time."""

    def __init__(self, path: Path, block_bytes: int) -> None:
        import pyarrow as pa

        self.path = path
        self._file = _opened(path)
        schema = self._file.schema_arrow
        self.names: list[str] = schema.names
        self.total: int = self._file.metadata.num_rows
        self.words = {
            name
            for name, kind in zip(schema.names, schema.types, strict=True)
            if pa.types.is_dictionary(kind) or pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
        }  # fmt: skip
        self._rows_at_a_time = max(1, block_bytes // (8 * max(1, len(self.names))))

    def batches(self) -> Iterator[Any]:
        """Batches of Arrow, all rows in their order."""
        with parquet_errors(self.path):  # a damaged page is found when it is read
            yield from self._file.iter_batches(self._rows_at_a_time, use_threads=False)

    def table(self, rows: Any) -> Table:
        """Some rows and columns of them."""
        with parquet_errors(self.path):  # damaged text is found when it is looked at
            return table_from_frame(rows.to_pandas(), str(self.path))


def read_within(
    path: str | os.PathLike[str], memory: float, *, label: str | None = None, random_state: int = 0
) -> Table | TableSample:
    """A whole table where it can be worked on within ``memory`` bytes, a sample of it otherwise."""
    if fits(path, memory):
        return read_table(path)
    return sample_file(path, label=label, random_state=random_state)


def fits(path: str | os.PathLike[str], memory: float) -> bool:
    """Whether a file can be worked on within ``memory`` bytes; npz files always count as if.

    The table itself would take rows × columns × 8 bytes, or what its text takes.
    """
    path = Path(path)
    name = path.name.lower()
    if not path.is_file():
        return True
    if name.endswith(PARQUET):
        metadata = _opened(path).metadata
        text = sum(metadata.row_group(j).total_byte_size for j in range(metadata.num_row_groups))
        return COPIES * max(8 * metadata.num_rows * metadata.num_columns, text) <= memory
    return not name.endswith(CSV) or COPIES * csv_bytes(path, memory / COPIES) <= memory


def sample_file(
    path: str | os.PathLike[str],
    most: int = 50_000,
    *,
    label: str | None = None,
    random_state: int = 0,
    most_levels: int = 10_000,
    most_added: int = 2_000,
    block_bytes: int = 2**20,
) -> TableSample:
    """At most ``most`` random rows of a csv or parquet file, and one of each rare value besides.

    Parameters
    ----------
    path : path
    most : int, default=50_000
        Rows to draw, each with the same chance, without replacement.
    label : str, optional
        Column whose values are counted over all rows, if the file has it.
    random_state : int, default=0
    most_levels : int, default=10_000
        Different texts of a column beyond which it is a name and no category.
    most_added : int, default=2_000
        Rows that may join the sample for the sake of rare values.
    block_bytes : int, default=2**20
        What is read of the file at a time; about fifty times as much is in memory then.
    """
    path = Path(path)
    parquet = path.name.lower().endswith(PARQUET)
    file: ParquetFile | CsvFile = (ParquetFile if parquet else CsvFile)(path, block_bytes)
    if file.total == 0:
        raise ValueError(f"{path} holds no rows; a table needs at least one")
    label = label if label in file.names else None
    generator = np.random.default_rng(random_state)
    drawn = np.zeros(file.total, dtype=bool)  # all that grows with the file: a byte per row
    drawn[generator.choice(file.total, min(most, file.total), replace=False, shuffle=False)] = True
    kept, first, counts = _walked_through(file, drawn, label, most_levels)
    rare = _rare(kept, drawn, first, most_levels)
    drawn[rare[:most_added]] = True
    table = file.table(_chosen(kept, drawn))
    notes, rows = table.notes, np.flatnonzero(drawn)
    if len(rare) > most_added:
        note = f"{path}: {len(rare) - most_added:,} rare values are not in the sample and count as"
        notes = (*notes, f"{note} never seen")
    exact = None
    if label is not None:
        _check_label(file, first[label], label, most_levels)
        exact = _as_labels(file, counts, label)
    return TableSample(table.columns, str(path), notes, False, rows, file.total, exact)


def _check_label(
    file: ParquetFile | CsvFile, first: dict[Any, int], label: str, most_levels: int
) -> None:
    if None in first:
        raise ValueError(
            f"{file.path}: some of {file.total} rows have no label in column {label!r} (the first "
            f"in row {first[None]}); drop those rows"
        )
    if len(first) > most_levels:
        raise ValueError(
            f"{file.path}: column {label!r} has more than {most_levels:,} different values: that "
            "is a number and not a class; group it first, for example with pandas.cut"
        )


def _walked_through(
    file: ParquetFile | CsvFile, drawn: NDArray[np.bool_], label: str | None, most_levels: int
) -> tuple[list[tuple[Ints, Any]], dict[str, dict[Any, int]], Counter[Any]]:
    """Rows that may join the sample, where each level first occurs, and counts of labels."""
    import pyarrow as pa

    kept: list[tuple[Ints, Any]] = []
    first: dict[str, dict[Any, int]] = {name: {} for name in file.names}
    labels: Counter[Any] = Counter()
    start = 0
    for batch in file.batches():
        mask = drawn[start : start + len(batch)].copy()
        for name, column in zip(file.names, batch.columns, strict=True):
            seen = first[name]
            if len(seen) > most_levels:
                continue
            for level, at, size in _levels(column, by_value=name in file.words or name == label):
                if level not in seen:
                    seen[level], mask[at] = start + at, True
                if name == label:
                    labels[level] += size
        if mask.any():
            kept.append((start + np.flatnonzero(mask), batch.filter(pa.array(mask))))
        start += len(batch)
    return kept, first, labels


def _levels(column: Any, *, by_value: bool) -> Iterator[tuple[Any, int, int]]:
    """Each level of a column, where it first occurs and how often; None is a missing value.

    Without ``by_value``, whether a value is missing is the level.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    gone = column.is_null(nan_is_null=pa.types.is_floating(column.type))
    if not by_value:
        gaps = np.flatnonzero(gone.to_numpy(zero_copy_only=False))
        return iter([(None, int(gaps[0]), len(gaps))] if len(gaps) else [])
    column = pc.if_else(gone, pa.scalar(None, column.type), column)
    found = pc.dictionary_encode(column, null_encoding="encode")
    codes = found.indices.to_numpy(zero_copy_only=False)
    _, at, size = np.unique(codes, return_index=True, return_counts=True)
    return zip(found.dictionary.to_pylist(), at.tolist(), size.tolist(), strict=True)


def _rare(
    kept: list[tuple[Ints, Any]],
    drawn: NDArray[np.bool_],
    first: dict[str, dict[Any, int]],
    most_levels: int,
) -> list[int]:
    """First rows of the levels that were not drawn; of no column where every row has its own."""
    sample = _chosen(kept, drawn)
    rows: set[int] = set()
    for name, seen in first.items():
        if len(seen) <= most_levels:
            column = sample[name].combine_chunks()
            there = {level for level, _, _ in _levels(column, by_value=set(seen) != {None})}
            rows |= {row for level, row in seen.items() if level not in there}
    return sorted(rows)


def _chosen(kept: list[tuple[Ints, Any]], drawn: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    parts = [batch.filter(pa.array(drawn[rows])) for rows, batch in kept]
    return pa.Table.from_batches(parts)


def _as_labels(file: ParquetFile | CsvFile, counts: Counter[Any], label: str) -> dict[Any, int]:
    """Counts under the labels that :meth:`giw.tables.Table.labels` would give."""
    import pyarrow as pa

    values = file.table(pa.table({label: pa.array(list(counts))})).labels(label)
    total: Counter[Any] = Counter()
    for value, count in zip(values.tolist(), counts.values(), strict=True):
        total[value] += count
    return dict(total)


def _opened(path: Path) -> Any:
    import pyarrow.parquet

    with parquet_errors(path):
        # without a read-ahead of whole row groups, which may be as large as the file
        return pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
