"""A csv file that is too large for memory, some rows at a time, with the types of the whole file.

A csv file does not say what its columns hold. A column of numbers with one word in its last row is
a column of text, and :func:`giw.tables.read_table` finds that out by looking at all rows. So does
the first walk through the file here; later ones read every row by what it found.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from giw.tables.reading import (
    COUNTS_ROWS,
    UNNAMED,
    check_csv_names,
    csv_errors,
    csv_separator,
    import_pandas,
    iso_days,
)

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
HEAD = 2**20  # bytes by which the number of rows is judged


class CsvWalk:
    """Rows of a csv file, some at a time, as often as one likes.

    Types are those that :func:`giw.tables.read_table` finds, with one exception: whole numbers
    beyond 2⁶³ are text there if the column has fractions, gaps or negative numbers too, and numbers
    here
    unless these come in the same batch.

    Parameters
    ----------
    path : Path
    rows_at_a_time : int

    Attributes
    ----------
    names : list of str
        Columns, less a first one without a name that counts the rows.
    total : int
        Rows.
    text : set of str
        Columns of text, whatever a few of their rows may look like.
    notes : tuple of str
        What was done while reading that a person should know.
    """

    def __init__(self, path: Path, rows_at_a_time: int) -> None:
        self.path, self.rows_at_a_time = path, rows_at_a_time
        with csv_errors(path):
            self.separator = csv_separator(path)
        kinds: dict[str, _Kind] = {}
        self.total, counts = 0, True
        for chunk in self._chunks():
            if not kinds:
                check_csv_names(path, [str(name) for name in chunk.columns])
                kinds = {name: _Kind() for name in chunk.columns}
                first = chunk.iloc[0, 0] if chunk.size else None
            for name, kind in kinds.items():
                kind.see(chunk[name])
            counts = counts and _counts_on(chunk, first, self.total)
            self.total += len(chunk)
        self.names = list(kinds)
        self.notes: tuple[str, ...] = ()
        if self.total and self.names[:1] == [UNNAMED] and counts:
            self.names, self.notes = self.names[1:], (COUNTS_ROWS.format(path),)
        self.text = {name for name in self.names if kinds[name].is_text}
        self._in_words = {name for name in self.names if kinds[name].in_words}

    def batches(self) -> Iterator[Any]:
        """Batches of Arrow: numbers as float64, text and dates as text."""
        import pyarrow as pa

        for chunk in self._chunks(dtype=dict.fromkeys(self._in_words, str)):
            arrays = [
                pa.array(chunk[name], type=pa.large_string(), from_pandas=True)
                if name in self._in_words
                else pa.array(chunk[name].to_numpy(np.float64, na_value=np.nan), from_pandas=True)
                for name in self.names
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=self.names)

    def errors(self) -> AbstractContextManager[None]:
        """The rows themselves are told of where they are read."""
        return nullcontext()

    def _chunks(self, **how: Any) -> Iterator[Any]:
        how |= {"sep": self.separator, "low_memory": False, "chunksize": self.rows_at_a_time}
        with csv_errors(self.path), import_pandas().read_csv(self.path, **how) as chunks:
            yield from chunks


class _Kind:
    """What a column holds, of all rows seen so far, by the rules of pandas."""

    def __init__(self) -> None:
        self.found: set[str] = set()  # of "number", "truth" and "words"
        self.dates = True

    def see(self, series: Any) -> None:
        """Look at some more rows."""
        present = series.dropna()
        if len(present) == 0:
            return
        types = import_pandas().api.types
        if types.is_bool_dtype(series.dtype):
            self.found.add("truth")
        elif types.is_numeric_dtype(series.dtype):
            self.found.add("number")
        elif all(isinstance(value, bool) for value in present):  # and gaps between them
            self.found.add("truth")
        elif all(isinstance(value, int | float) for value in present):  # of too many digits
            self.found.add("number")
        else:
            self.found.add("words")
            self.dates = self.dates and iso_days(present.drop_duplicates()) is not None

    @property
    def in_words(self) -> bool:
        """Whether rows are read as they are written: "1" beside "True" is no number either."""
        return "words" in self.found or len(self.found) > 1

    @property
    def is_text(self) -> bool:
        """Whether that is no date."""
        return self.in_words and not (self.found == {"words"} and self.dates)


def _counts_on(chunk: Any, first: Any, before: int) -> bool:
    """Whether the first column goes on counting from ``first``, after so many rows."""
    values = chunk.iloc[:, 0].to_numpy() if chunk.shape[1] else np.empty(0)
    if values.dtype.kind not in "iu":
        return False
    return bool(np.array_equal(values, int(first) + before + np.arange(len(values))))


def csv_bytes(path: Path, most: float) -> float:
    """What a csv file takes as text or as a table of numbers, whichever is more.

    Rows are judged by the first ones. A compressed file is unpacked, without keeping anything,
    until ``most`` bytes came out of it: what it says of its size may be wrong.
    """
    with gzip.open(path) if path.name.lower().endswith(".gz") else open(path, "rb") as file:
        try:
            head = file.read(HEAD)
            size = len(head)
            if isinstance(file, gzip.GzipFile):
                while size <= most and (block := file.read(HEAD)):
                    size += len(block)
            else:
                size = path.stat().st_size
        except (OSError, EOFError, zlib.error):
            return 0.0  # it is damaged, and whoever reads it will say so
    names, _, rows = head.partition(b"\n")
    columns = 1 + max(names.count(separator) for separator in (b",", b";", b"\t"))
    return max(float(size), 8.0 * columns * max(1, rows.count(b"\n")) * size / max(1, len(head)))
