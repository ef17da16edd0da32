"""A parquet file that is too large for memory: a random sample of its rows, and exact counts.

The file is walked through twice, a batch of rows at a time. The first walk counts labels and notes
where every label, every category and a missing value of each column first occurs; the second picks
rows. A sample that lacked a rare category would make it look as if training had never seen it, so
the first row of each one that was not drawn joins the sample.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.data.tables import Table, read_table, table_from_frame

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
    return sample_parquet(path, SAMPLED, label=label, random_state=random_state)


def fits(path: str | os.PathLike[str], memory: float) -> bool:
    """Whether a file can be worked on within ``memory`` bytes; only parquet is ever too large.

    The table itself would take rows × columns × 8 bytes, or what the file says of its text.
    """
    path = Path(path)
    if not path.name.lower().endswith((".parquet", ".pq")) or not path.exists():
        return True
    metadata = _open(path).metadata
    text = sum(metadata.row_group(j).total_byte_size for j in range(metadata.num_row_groups))
    return COPIES * max(8 * metadata.num_rows * metadata.num_columns, text) <= memory


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
    path = Path(path)
    file = _open(path)
    total = file.metadata.num_rows
    if total == 0:
        raise ValueError(f"{path} holds no rows; a table needs at least one")
    if label not in file.schema_arrow.names:
        label = None
    generator = np.random.default_rng(random_state)
    drawn = np.zeros(total, dtype=bool)  # a byte per row of the file is all that grows with it
    drawn[generator.choice(total, size=min(most, total), replace=False, shuffle=False)] = True
    added, counts = _rare_rows(path, file, label, drawn)
    drawn[added[:MOST_ADDED]] = True
    frame = _picked(file, drawn)
    table = table_from_frame(frame, str(path))
    notes = list(table.notes)
    if len(added) > MOST_ADDED:
        notes.append(
            f"{path}: {len(added) - MOST_ADDED:,} rare values are not in the sample and count as "
            "never seen"
        )
    rows = np.flatnonzero(drawn)
    return TableSample(replace(table, notes=tuple(notes)), rows, total, counts)


class _Kinds:
    """Values of a column: where each first occurs in the file, and which are in the sample."""

    def __init__(self) -> None:
        self.first: dict[Any, int] = {}
        self.drawn: set[Any] = set()

    def add(self, value: Any, row: int, *, drawn: bool) -> None:
        self.first.setdefault(value, row)
        if drawn:
            self.drawn.add(value)

    def rare(self) -> list[int]:
        """First rows of the values that were not drawn; none where every row has its own value."""
        if len(self.first) > MOST_KINDS:
            return []
        return [row for value, row in self.first.items() if value not in self.drawn]


def _rare_rows(
    path: Path, file: Any, label: str | None, drawn: NDArray[np.bool_]
) -> tuple[list[int], dict[Any, int] | None]:
    """First rows of categories, labels and gaps that the sample lacks, and counts of the labels."""
    import pyarrow as pa

    found = {name: _Kinds() for name in file.schema_arrow.names}
    labels: Counter[Any] = Counter()
    start = 0
    for batch in _batches(file):
        mask = drawn[start : start + batch.num_rows]
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kinds, kind = found[name], column.type
            if pa.types.is_dictionary(kind):
                column, kind = column.cast(kind.value_type), kind.value_type
            gone = column.is_null(nan_is_null=pa.types.is_floating(kind))
            gaps = np.flatnonzero(gone.to_numpy(zero_copy_only=False))
            if len(gaps):
                kinds.add(None, start + int(gaps[0]), drawn=bool(mask[gaps].any()))
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            if (text or name == label) and len(kinds.first) <= MOST_KINDS:
                for value, at, size, taken in _kinds(column, mask):
                    kinds.add(value, start + at, drawn=taken)
                    if name == label:
                        labels[value] += size
        start += batch.num_rows
    rows = sorted({row for kinds in found.values() for row in kinds.rare()})
    if label is None:
        return rows, None
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
    return rows, _as_labels(labels, label, path)


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
    """Counts under the labels that :meth:`giw.data.Table.labels` would give."""
    import pandas as pd

    values = table_from_frame(pd.DataFrame({label: list(counts)}), str(path)).labels(label)
    total: Counter[Any] = Counter()
    for value, count in zip(values.tolist(), counts.values(), strict=True):
        total[value] += count
    return dict(total)


def _picked(file: Any, drawn: NDArray[np.bool_]) -> Any:
    """The marked rows as a data frame."""
    import pyarrow as pa

    parts, start = [], 0
    for batch in _batches(file):
        mask = drawn[start : start + batch.num_rows]
        if mask.any():
            parts.append(batch.filter(pa.array(mask)))
        start += batch.num_rows
    return pa.Table.from_batches(parts).to_pandas()


def _batches(file: Any) -> Iterator[Any]:
    return file.iter_batches(batch_size=BATCH, use_threads=False)


def _open(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("parquet files need pyarrow: pip install 'giw[tables]'") from None
    try:
        # without a read-ahead of whole row groups, which may be as large as the file
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        words = " ".join(str(error).split())
        raise ValueError(
            f"{path} is not a whole parquet file: {words}; write or copy it again"
        ) from None
