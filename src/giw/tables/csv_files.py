"""Csv files, whole or some rows at a time, with the types of the whole file either way.

A csv file does not say what its columns hold. A column of numbers with one word in its last row is
a column of text. So every cell is read as text first, all rows are looked at, and numbers are made
of it then.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.tables.table import (
    Column,
    Table,
    counts_rows,
    is_number,
    iso_days,
    one_line,
    without_counter,
)

MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "<NA>"]
MISSING += ["1.#QNAN", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]  # as in pandas
TRUE, FALSE = ("True", "TRUE", "true"), ("False", "FALSE", "false")
NUMBERS = ("int64", "double")
NO_NUMBER = re.compile(r"In CSV column #(\d+): .*conversion error to double")
HEAD = 2**20  # bytes by which the number of rows is judged


class CsvFile:
    """Rows of a csv file, some at a time, as often as one likes; all of them have been looked at.

    Parameters
    ----------
    path : Path
    block_bytes : int
        What is read at a time; no row may be longer. About fifty times as much is in memory.
    keep : bool, default=False
        Keep all rows in memory, so that the file is read once.

    Attributes
    ----------
    names : list of str
        Columns.
    total : int
        Rows.
    words : set of str
        Columns of text.
    """

    def __init__(self, path: Path, block_bytes: int, *, keep: bool = False) -> None:
        import pyarrow as pa

        self.path, self._kept = path, None
        with csv_errors(path):
            self.names, self._separator, self._lines = _header(path)
            self.block_bytes = max(block_bytes, 32 * len(self.names))  # a row of a wide table
            with self._reader(None) as reader:
                first = zip(self.names, reader.schema.types, strict=True)
            self._cells = {
                name: pa.float64() if pa.types.is_null(t) or str(t) in NUMBERS else pa.string()
                for name, t in first
            }
        while not self._looked_at(keep):
            pass
        if self.total == 0:
            raise ValueError(f"{path} holds no rows; a table needs at least one")
        self.words = {name for name, kind in self._kinds.items() if kind.name == "words"}

    def batches(self) -> Iterator[Any]:
        """Batches of Arrow, all rows in their order: numbers, and everything else as text."""
        if self._kept is not None:
            yield from self._kept
            return
        with csv_errors(self.path), self._reader(self._cells) as reader:
            yield from reader

    def table(self, rows: Any) -> Table:
        """Some rows and columns of :meth:`batches`, with the types of the whole file."""
        columns = {
            name: self._kinds[name].convert(cells.combine_chunks())
            for name, cells in zip(rows.column_names, rows.columns, strict=True)
        }
        return without_counter(columns, str(self.path), self._kinds[self.names[0]].counts)

    def _looked_at(self, keep: bool) -> bool:
        """Look at all rows; give up where a column of numbers turns out to hold something else."""
        import pyarrow as pa

        self.total, self._kinds = 0, {name: _Kind() for name in self.names}
        kept = []
        try:
            for batch in self.batches():
                for kind, cells in zip(self._kinds.values(), batch.columns, strict=True):
                    kind.see(cells)
                self.total += len(batch)
                kept += [batch] if keep else []
        except ValueError as error:
            other = NO_NUMBER.search(str(error))
            if other is None:
                raise
            self._cells[self.names[int(other[1])]] = pa.string()
            return False
        self._kept = kept if keep else None
        return True

    def _reader(self, cells: dict[str, Any] | None) -> Any:
        import pyarrow.csv

        return pyarrow.csv.open_csv(
            self.path,
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=self.block_bytes, column_names=self.names,
                skip_rows=self._lines,
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._separator, newlines_in_values=True
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                null_values=MISSING, strings_can_be_null=True, column_types=cells
            ),
        )  # fmt: skip


class _Kind:
    """What a column holds, of all rows seen so far."""

    def __init__(self) -> None:
        self.numbers = self.truth = self.dates = self.counts = True
        self.rows, self.first = 0, 0.0  # number of a column that counts

    @property
    def name(self) -> str:
        """One of "numbers", "truth", "dates" and "words"; the first where all cells are empty."""
        found = [kind for kind in ("numbers", "truth", "dates") if getattr(self, kind)]
        return found[0] if found else "words"

    def see(self, cells: Any) -> None:
        """Look at some more rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.counts:
            numbers = _as_numbers(cells)
            self.first = float(numbers[0]) if numbers is not None and not self.rows else self.first
            self.counts = numbers is not None and counts_rows(numbers, self.first + self.rows)
        self.rows += len(cells)
        if self.name == "words" or pa.types.is_floating(cells.type):
            return
        there = cells.drop_null().unique()
        self.numbers = self.numbers and _as_numbers(there) is not None
        self.truth = self.truth and pc.all(_among(there, TRUE + FALSE), min_count=0).as_py()
        self.dates = self.dates and (not len(there) or iso_days(there.to_pylist()) is not None)

    def convert(self, cells: Any) -> Column:
        """Numbers as float64, dates as days, words as text."""
        if self.name == "words":
            return np.array(cells.to_pylist(), dtype=object)
        if self.name == "dates":
            days = iso_days(cells.to_pylist())
            return np.full(len(cells), np.nan) if days is None else days
        numbers = _as_numbers(cells) if self.name == "numbers" else None
        if numbers is not None:
            return numbers
        gone, true = (
            mask.to_numpy(zero_copy_only=False) for mask in (cells.is_null(), _among(cells, TRUE))
        )
        return np.where(gone, np.nan, true.astype(np.float64))


def read_csv(path: Path, block_bytes: int = 2**22) -> Table:
    """A whole csv file."""
    import pyarrow as pa

    file = CsvFile(path, block_bytes, keep=True)
    return file.table(pa.Table.from_batches(list(file.batches())))


@contextmanager
def csv_errors(path: Path) -> Iterator[None]:
    """What is wrong with a csv file, in one line."""
    from pyarrow import ArrowInvalid

    try:
        yield
    except ArrowInvalid as error:
        if "UTF8" in str(error):
            raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
        raise ValueError(f"{path} is not a regular csv file: {one_line(error)}") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    except Exception as error:  # a damaged file can raise nearly anything
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} cannot be read: {one_line(error)}") from None


def _opened(path: Path) -> Any:
    return gzip.open(path) if path.name.lower().endswith(".gz") else open(path, "rb")


def _header(path: Path) -> tuple[list[str], str, int]:
    """Names of the columns, what separates them, and the number of lines up to their end."""
    with _opened(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as lines:
        empty, line = 0, lines.readline(HEAD)
        while line and not line.strip():
            empty, line = empty + 1, lines.readline(HEAD)
        if not line:
            raise ValueError(f"{path} is empty: there is no line of column names")
        separator = max(",;\t", key=line.count)
        reader = csv.reader(itertools.chain([line], lines), delimiter=separator)
        names = [name or f"Unnamed: {j}" for j, name in enumerate(next(reader))]
    if names != [str(j) for j in range(len(names))] and all(map(is_number, names)):
        raise ValueError(
            f"{path}: the first line must name the columns, but it holds numbers "
            f"({', '.join(names[:3])}, …); add a line of names"
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{path} has two columns called {twice[0]!r}; rename one")
    return names, separator, empty + reader.line_num


def _as_numbers(cells: Any) -> NDArray[np.float64] | None:
    """Text as numbers, NaN where missing; None where some of it is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(cells.type):
        return cells.to_numpy(zero_copy_only=False)
    plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(cells), r"^\+", "")
    try:
        numbers = pc.cast(plain, "float64")
    except pa.ArrowInvalid:
        return None
    return numbers.to_numpy(zero_copy_only=False)


def _among(cells: Any, words: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(cells, pa.array(words))


def csv_bytes(path: Path, most: float) -> float:
    """What a csv file takes as text or as a table of numbers, whichever is more.

    Rows are judged by the first ones. A compressed file is unpacked, without keeping anything,
    until ``most`` bytes came out of it: what it says of its size may be wrong.
    """
    with _opened(path) as file:
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
