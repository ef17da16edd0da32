"""Tables from files: csv, parquet and npz, whole or some rows at a time.

Nothing in a file is ever run: npz files with pickled objects are refused. Every complaint is one
line that names the file, what is wrong with it and the way out.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import itertools
import math
import os
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from giw.tables.table import (
    UNNAMED,
    Column,
    Table,
    as_table,
    counts_rows,
    is_number,
    iso_days,
    table_from_frame,
    without_counter,
)

CSV, PARQUET, NPZ = (".csv", ".csv.gz", ".tsv", ".tsv.gz"), (".parquet", ".pq"), (".npz",)
MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "<NA>"]
MISSING += ["1.#QNAN", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]  # as in pandas
FIRST_ROW = 2  # of a file, as a spreadsheet counts them; names are in row 1
TEXT = re.compile("^(dictionary<values=)?(large_)?string")  # types of Arrow


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a csv, tsv, parquet or npz file; the ending of its name says which it is.

    In csv files the first line names the columns; commas, semicolons and tabs separate. In npz
    files a one-dimensional array is a column under its name and a two-dimensional array ``X`` the
    columns ``X[0]``, ``X[1]``, … Dates become days since 1970, booleans 0 and 1.
    """
    path = checked_path(path)
    if path.name.lower().endswith(NPZ):
        return _read_npz(path)
    file = TableFile(path)
    return file.table(list(file.batches()))


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path of a file that may hold a table, by its name and size."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; check the path")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a csv, parquet or npz file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes); write it again")
    if not path.name.lower().endswith(CSV + PARQUET + NPZ):
        raise ValueError(
            f"{path}: cannot tell what it is; the name must end in one of "
            f"{', '.join(CSV + PARQUET + NPZ)}"
        )
    return path


@contextmanager
def told_in_one_line(path: Path, kind: str) -> Iterator[None]:
    """What is wrong with a file; a damaged one can raise nearly anything."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        said = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, UnicodeDecodeError) or "UTF8" in said:
            raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
        raise ValueError(f"{path} is not a {kind} file: {said}; write or copy it again") from None


class TableFile:
    """Rows of a csv or parquet file, some at a time, with the types of the whole file.

    A column of numbers with one word in its last row is a column of text, and so is one of dates.
    Cells of a csv file, and text in a parquet file, are therefore looked at in all rows first.
    ``block_bytes`` are read at a time: no row may be longer, and about fifty times as much is in
    memory. Where all rows, at eight bytes a cell or what their text takes, have room in
    ``most_bytes``, they are kept, and the file is read once.
    """

    def __init__(
        self, path: Path, block_bytes: int = 2**20, *, most_bytes: float = math.inf
    ) -> None:
        self.path, self.total = path, 0  # rows
        self._parquet = path.name.lower().endswith(PARQUET)
        with self._told():
            found = (_open_parquet if self._parquet else _open_csv)(path)
        self.names: list[str] = found[0]
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise ValueError(f"{path} has two columns called {twice[0]!r}; rename one")
        self._kinds: dict[str, Sequence[str]] = found[1]
        self._batches = functools.partial(found[2], block_bytes)
        self.kept: list[Any] | None = None  # all batches, where there is room
        kept: list[Any] = []
        size = 0
        for batch in self.batches():
            size += max(batch.nbytes, 8 * len(batch) * len(self.names))
            if size > most_bytes:
                kept.clear()
                break
            kept.append(batch)
        else:
            self.kept = kept
        self._counts, first = self.names[:1] == [UNNAMED], 0.0
        with self._told():  # damaged text is found when it is looked at
            for batch in self.batches([*self._kinds, *[UNNAMED] * self._counts]):
                for name, kinds in self._kinds.items():
                    cells = batch.column(name).cast("string").drop_null().unique()
                    if len(cells):
                        self._kinds[name] = [k for k in kinds if KINDS[k](cells) is not None]
                if self._counts and len(batch):
                    numbers = _numbers(batch.column(UNNAMED).cast("string"))
                    first = numbers[0] if numbers is not None and not self.total else first
                    self._counts = numbers is not None and counts_rows(numbers, first + self.total)
                self.total += len(batch)
        if self.total == 0:
            raise ValueError(f"{path} holds no rows; a table needs at least one")

    def batches(self, columns: list[str] | None = None) -> Iterator[Any]:
        """Batches of Arrow, all rows in their order; some columns, or all."""
        with self._told():
            yield from self._batches(columns) if self.kept is None else self.kept

    def table(self, batches: Sequence[Any]) -> Table:
        """Rows of :meth:`batches` as numbers, dates as days, and words."""
        import pyarrow as pa

        with self._told():  # damaged text is found when it is looked at
            rows = pa.Table.from_batches(batches)
            others = [name for name in self.names if name not in self._kinds]
            frame = rows.select(others).to_pandas(ignore_metadata=True)
            table = table_from_frame(frame, str(self.path))
            columns: dict[str, Any] = dict(table.columns)
            dates = (*table.dates, *(k for k, v in self._kinds.items() if v[0] == "dates"))
            for name, kinds in self._kinds.items():
                columns[name] = KINDS[kinds[0]](rows[name].combine_chunks().cast("string"))
        # a few rows may count where the whole file does not, and the other way round
        columns = {name: columns[name] for name in self.names if name in columns}
        table = Table(columns, str(self.path), dates=dates, first_row=FIRST_ROW)
        return without_counter(table) if self._counts else table

    def _told(self) -> Any:
        return told_in_one_line(self.path, "whole parquet" if self._parquet else "regular csv")


Walk = Callable[[int, list[str] | None], Iterable[Any]]


def _open_parquet(path: Path) -> tuple[list[str], dict[str, Sequence[str]], Walk]:
    """Names of the columns, what those of text may hold, and a walk through the rows."""
    import pyarrow.parquet

    # without a read-ahead of whole row groups, which may be as large as the file
    file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
    text = {field.name for field in file.schema_arrow if TEXT.search(str(field.type))}
    index = file.schema_arrow.pandas_metadata or {}
    hidden = {name for name in index.get("index_columns", ()) if isinstance(name, str)}
    names = [name for name in file.schema_arrow.names if name not in hidden]

    def walk(block_bytes: int, columns: list[str] | None) -> Iterable[Any]:
        rows = max(1, block_bytes // (8 * max(1, len(names))))
        return file.iter_batches(rows, columns=columns, use_threads=False)

    return names, {name: ("dates", "words") for name in names if name in text}, walk


def _open_csv(path: Path) -> tuple[list[str], dict[str, Sequence[str]], Walk]:
    """The same of a csv file, of which every cell is read as text."""
    import pyarrow as pa
    import pyarrow.csv

    names, separator, lines = header(path)

    def walk(block_bytes: int, columns: list[str] | None) -> Iterable[Any]:
        return pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, column_names=names, skip_rows=lines,
                block_size=max(block_bytes, 32 * len(names)),  # a row of a wide table
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                null_values=MISSING, strings_can_be_null=True,
                column_types={name: pa.string() for name in names},
            ),
        )  # fmt: skip

    return names, {name: list(KINDS) for name in names}, walk


def _numbers(cells: Any) -> Column | None:
    """Text as numbers, NaN where missing; None where some of it is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(cells), r"^\+", "")
    try:
        numbers: Column = pc.cast(plain, "float64").to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return numbers


def _truth(cells: Any) -> Column | None:
    truth = np.array([WORDS_OF_TRUTH.get(text, np.inf) for text in cells.to_pylist()])
    return None if np.isinf(truth).any() else truth


def _dates(cells: Any) -> Column | None:
    gone = cells.null_count == len(cells)
    return np.full(len(cells), np.nan) if gone else iso_days(cells.to_pylist())


def _words(cells: Any) -> Column:
    return np.array(cells.to_pylist(), dtype=object)


WORDS_OF_TRUTH = dict.fromkeys(("True", "TRUE", "true"), 1.0) | {None: np.nan}
WORDS_OF_TRUTH |= dict.fromkeys(("False", "FALSE", "false"), 0.0)
# what a column of text may hold: the first that all its cells are
KINDS: dict[str, Callable[[Any], Column | None]] = {
    "numbers": _numbers, "truth": _truth, "dates": _dates, "words": _words,
}  # fmt: skip


def header(path: Path) -> tuple[list[str], str, int]:
    """Names of the columns, what separates them, and the number of lines up to their end."""
    unpacked = gzip.open if path.name.lower().endswith(".gz") else open
    with unpacked(path, "rt", encoding="utf-8-sig", newline="") as lines:
        empty, line = 0, lines.readline(2**20)
        while line and not line.strip():
            empty, line = empty + 1, lines.readline(2**20)
        if not line:
            raise ValueError(f"{path} is empty: there is no line of column names")
        separator = max(",;\t", key=line.count)
        reader = csv.reader(itertools.chain([line], lines), delimiter=separator)
        names = [name or f"Unnamed: {j}" for j, name in enumerate(next(reader))]
    if names != [str(j) for j in range(len(names))] and all(map(is_number, names)):
        raise ValueError(
            f"{path}: the first line must name the columns, but it holds numbers "
            f"({' '.join(', '.join(names[:3]).split())}, …); add a line of names"
        )
    return names, separator, empty + reader.line_num


def _read_npz(path: Path) -> Table:
    if not zipfile.is_zipfile(path):  # numpy would take it for a single array or a pickle
        raise ValueError(
            f"{path} is not a whole npz file, and single arrays or pickled objects are not read; "
            "write it with numpy.savez"
        )
    with told_in_one_line(path, "whole npz"):
        arrays = npz_arrays(path)
    if not arrays or any(array.size == 0 for array in arrays.values()):  # of any number of rows
        raise ValueError(f"{path} holds no rows; a table needs at least one")
    columns: dict[str, Column] = {}
    for name, array in arrays.items():
        if array.ndim > 2:
            raise ValueError(
                f"{path}: array {name!r} has shape {array.shape}; a table has two dimensions: "
                "flatten it with reshape(len(a), -1), or use giw.GIWClassifier, which takes images"
            )
        if array.dtype.kind not in "biufUSMm" or not array.itemsize:
            raise ValueError(
                f"{path}: array {name!r} has dtype {array.dtype}; need numbers, text or dates"
            )
        array = np.atleast_1d(array)
        names = [name] if array.ndim == 1 else [f"{name}[{j}]" for j in range(array.shape[1])]
        with told_in_one_line(path, "whole npz"):  # times without a unit
            columns |= as_table(array, str(path), column_names=names).columns
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{path}: all arrays need the same number of rows, got {lengths}")
    return Table(columns, str(path), first_row=FIRST_ROW)


def npz_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """Arrays of an npz file by name; only bytes that are there take memory, and no code runs."""
    arrays = {}
    with zipfile.ZipFile(file) as members:
        for member in members.infolist():
            # other ways to compress may ask for gigabytes before a byte is read
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("it is compressed in a way that numpy.savez does not have")
            content, name = members.read(member), member.filename.removesuffix(".npy")
            stream = io.BytesIO(content)
            version = npy.read_magic(stream)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, by_columns, dtype = header(stream)
            if dtype.hasobject:
                raise ValueError(
                    f"{file}: array {name!r} holds pickled objects, which could run code when "
                    "read; save plain arrays instead, for example text as array.astype(str)"
                )
            size = math.prod(shape)
            if size * dtype.itemsize > len(content):
                raise ValueError(f"array {name!r} claims shape {shape}, more than its bytes")
            values = np.frombuffer(content, dtype, count=size, offset=stream.tell())
            if dtype.kind == "U" and size and dtype.itemsize:
                codes = values.view(np.dtype("u4").newbyteorder(dtype.byteorder))
                if codes.max() > sys.maxunicode:
                    raise ValueError(f"array {name!r} holds text of characters that there are not")
            arrays[name] = values.reshape(shape, order="F" if by_columns else "C").copy()
    return arrays
