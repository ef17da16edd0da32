"""Tables from files: csv, parquet and npz, as columns of numbers and columns of text.

Nothing in a file is ever run: npz files with pickled objects are refused. Every complaint is one
line that names the file, what is wrong with it and the way out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from numbers import Number
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from giw.tables.npy_in_zip import check_npz

UNNAMED = "Unnamed: 0"  # as pandas calls it
COUNTS_ROWS = "{}: the first column has no name and counts the rows: left out"
MANY_NAMES = 8  # columns that an error message lists at most
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?$")
Column = NDArray[Any]  # (n,) float64 with NaN for missing, or objects: str and None for missing


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length.

    Parameters
    ----------
    columns : mapping from name to array of shape (n,)
        Numbers as float64, NaN where missing; everything else as text, None where missing.
    source : str
        What messages call the table: its path.
    notes : tuple of str
        What was done while reading that a person should know.
    unnamed : bool
        Whether columns came without names, as those of an array do, and count by their place.
    """

    columns: Mapping[str, Column]
    source: str = "table"
    notes: tuple[str, ...] = ()
    unnamed: bool = False

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    @property
    def names(self) -> list[str]:
        """The names of the columns in their order."""
        return list(self.columns)

    def without(self, name: str) -> Table:
        """The table less one column, whether it has it or not."""
        rest = {key: value for key, value in self.columns.items() if key != name}
        return replace(self, columns=rest)

    def labels(self, name: str) -> NDArray[Any]:
        """One column as labels: whole numbers as integers, text as strings; none may be missing."""
        if name not in self.columns:
            raise ValueError(
                f"{self.source} has no column {name!r}{did_you_mean(name, self.names)}"
            )
        column = self.columns[name]
        gone = missing_in(column)
        if gone.any():
            raise ValueError(
                f"{self.source}: {int(gone.sum())} of {len(column)} rows have no label in column "
                f"{name!r} (the first in row {int(np.flatnonzero(gone)[0])}); drop those rows"
            )
        if column.dtype == object:
            return column.astype(str)
        whole = np.abs(column) < 2**53
        if np.all(whole) and np.all(column == np.rint(column)):
            return column.astype(np.int64)
        return column


def missing_in(column: Column) -> NDArray[np.bool_]:
    """Where a column has no value, (n,)."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column)


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of an error message: the likeliest names, or those that there are."""
    lower = {other.lower(): other for other in known}
    close = get_close_matches(name.strip().lower(), lower, n=2, cutoff=0.7)
    if close:
        return f"; did you mean {' or '.join(repr(lower[key]) for key in close)}?"
    return f"; it has {listed(known)}"


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first few of many."""
    shown = ", ".join(repr(name) for name in names[:MANY_NAMES])
    return shown + (f" and {len(names) - MANY_NAMES} more" if len(names) > MANY_NAMES else "")


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a csv, tsv, parquet or npz file.

    In csv files the first line names the columns; commas, semicolons and tabs separate. In npz
    files a one-dimensional array is a column under its name and a two-dimensional array ``X`` the
    columns ``X[0]``, ``X[1]``, … Dates become days since 1970, booleans 0 and 1.

    Parameters
    ----------
    path : path
        The ending says what it is: .csv, .tsv (also .gz), .parquet, .pq or .npz.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; check the path")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a csv, parquet or npz file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes); write it again")
    name = path.name.lower()
    for endings, reader in READERS.items():
        if name.endswith(endings):
            columns, notes = reader(path)
            table = Table(columns, str(path), notes)
            if not columns or len(table) == 0:
                raise ValueError(f"{path} holds no rows; a table needs at least one")
            return table
    kinds = ", ".join(ending for endings in READERS for ending in endings)
    raise ValueError(f"{path}: cannot tell what it is; the name must end in one of {kinds}")


def table_from_frame(frame: Any, source: str = "table") -> Table:
    """A pandas data frame as a table."""
    columns, notes = _from_frame(frame, source)
    return Table(columns, source, notes)


def as_table(X: Any, name: str, *, column_names: Sequence[str] | None = None) -> Table:
    """Anything with rows and columns as a table.

    Parameters
    ----------
    X : Table, pandas, polars or pyarrow table, array, tensor or nested list
        One dimension is read as a single column; images and the like become rows of numbers.
    name : str
        What messages call it.
    column_names : sequence of str, optional
        For the columns of an array; ``x0``, ``x1``, … otherwise.
    """
    if isinstance(X, Table):
        return X
    if sparse.issparse(X):
        raise ValueError(f"{name} is sparse; pass {name}.toarray(), or reduce it with TruncatedSVD")
    if hasattr(X, "iloc"):
        return table_from_frame(X.to_frame() if X.ndim == 1 else X, name)
    if hasattr(X, "__arrow_c_stream__"):  # polars, pyarrow and their like
        import pyarrow as pa

        return table_from_frame(pa.table(X).to_pandas(), name)
    rows = _as_rows(X, name)
    names = [f"x{j}" for j in range(rows.shape[1])]
    if column_names is not None:
        names = [str(each) for each in column_names]
        if len(names) != rows.shape[1]:
            raise ValueError(f"need one feature name per column, {rows.shape[1]}, got {len(names)}")
        if len(set(names)) < len(names):
            raise ValueError(f"two columns of {name} have the same name; rename one")
    columns = {key: _plain_column(rows[:, j], key, name) for j, key in enumerate(names)}
    return Table(columns, name, unnamed=column_names is None)


def _as_rows(X: Any, name: str) -> NDArray[Any]:
    if isinstance(X, str | bytes | dict) or np.isscalar(X) or X is None:
        raise ValueError(f"{name} must be a table, got {type(X).__name__}")
    if hasattr(X, "detach"):  # a tensor, perhaps of a type that numpy does not have
        X = X.detach().cpu()
        X = (X.float() if "bfloat16" in str(X.dtype) else X).numpy()
    try:
        rows = np.asarray(X)
        if rows.dtype.kind in "US" and not hasattr(X, "shape"):  # numbers and text in one list
            rows = np.asarray(X, dtype=object)
    except ValueError:
        raise ValueError(f"the rows of {name} differ in length; a table needs equal ones") from None
    if rows.ndim == 0:
        raise ValueError(f"{name} must be a table, got {type(X).__name__}")
    if rows.dtype.kind == "c":
        raise ValueError(f"{name} holds complex numbers; pass real ones, for example {name}.real")
    return rows.reshape(len(rows), -1) if len(rows) else rows.reshape(0, rows[None].shape[-1])


def _plain_column(values: NDArray[Any], column: str, source: str) -> Column:
    """A column of an array: numbers where all values are numbers, text otherwise."""
    if values.dtype != object:
        return _column(values)
    return _from_series(import_pandas().Series(values), column, source)


def import_pandas() -> Any:
    """Pandas, or how to get it."""
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "csv and parquet files need pandas and pyarrow: pip install 'giw[tables]'; "
            "npz files need neither"
        ) from None
    return pandas


Read = tuple[dict[str, Column], tuple[str, ...]]


def _read_csv(path: Path) -> Read:
    with csv_errors(path):
        frame = import_pandas().read_csv(path, sep=csv_separator(path), low_memory=False)
    check_csv_names(path, [str(name) for name in frame.columns])
    return _from_frame(frame, str(path))


@contextmanager
def csv_errors(path: Path) -> Iterator[None]:
    """What is wrong with a csv file, in one line."""
    pd = import_pandas()
    try:
        yield
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty: there is no line of column names") from None
    except pd.errors.ParserError as error:
        raise ValueError(f"{path} is not a regular csv file: {_one_line(error)}") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    except Exception as error:  # a damaged file can raise nearly anything
        raise ValueError(f"{path} cannot be read: {_one_line(error)}") from None


def csv_separator(path: Path) -> str:
    """The one of comma, semicolon and tab that the line of names holds most of."""
    how = {"sep": "\0", "nrows": 1, "header": None, "dtype": str, "quoting": 3, "engine": "c"}
    head = import_pandas().read_csv(path, **how)
    line = str(head.iloc[0, 0]) if len(head) else ""
    return max(",;\t", key=line.count)


def check_csv_names(path: Path, names: Sequence[str]) -> None:
    """Refuse a csv file that begins with its first row."""
    counted = [str(number) for number in range(len(names))]
    if list(names) != counted and all(_is_number(name) for name in names):
        raise ValueError(
            f"{path}: the first line must name the columns, but it holds numbers "
            f"({', '.join(names[:3])}, …); add a line of names"
        )


def _read_parquet(path: Path) -> Read:
    pd = import_pandas()
    try:
        import pyarrow  # noqa: F401 - pandas would name other ways out
    except ImportError:
        raise ImportError("parquet files need pyarrow: pip install 'giw[tables]'") from None
    with parquet_errors(path):  # text is decoded only when it is looked at
        return _from_frame(pd.read_parquet(path), str(path))


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """What is wrong with a parquet file, in one line."""
    try:
        yield
    except Exception as error:  # a damaged file can raise nearly anything, in pandas too
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(
            f"{path} is not a whole parquet file: {_one_line(error)}; write or copy it again"
        ) from None


def _read_npz(path: Path) -> Read:
    arrays: dict[str, NDArray[Any]] = {}
    name = ""
    if not is_zipfile(path):  # numpy would take it for a single array or a pickle
        raise ValueError(
            f"{path} is not a whole npz file, and single arrays or pickled objects are not read; "
            "write it with numpy.savez"
        )
    try:
        check_npz(path)
        with np.load(path, allow_pickle=False) as file:
            for name in file.files:
                arrays[name] = file[name]
    except ValueError as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            where = f"array {name!r}" if name else "it"
            raise ValueError(
                f"{path}: {where} holds pickled objects, which could run code when read; save "
                "plain arrays instead, for example text as array.astype(str)"
            ) from None
        raise ValueError(f"{path} is not a whole npz file: {_one_line(error)}") from None
    except Exception as error:  # a damaged zip file or header can raise nearly anything
        raise ValueError(
            f"{path} is not a whole npz file: {_one_line(error)}; write or copy it again"
        ) from None
    return _from_arrays(arrays, str(path)), ()


READERS: dict[tuple[str, ...], Callable[[Path], Read]] = {
    (".csv", ".csv.gz", ".tsv", ".tsv.gz"): _read_csv,
    (".parquet", ".pq"): _read_parquet,
    (".npz",): _read_npz,
}


def _from_arrays(arrays: Mapping[str, NDArray[Any]], source: str) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    lengths = {name: len(a) if a.ndim else 0 for name, a in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{source}: all arrays need the same number of rows, got {lengths}")
    if 0 in lengths.values():  # such an array may still claim any number of columns
        raise ValueError(f"{source} holds no rows; a table needs at least one")
    for name, array in arrays.items():
        if array.ndim > 2:
            raise ValueError(
                f"{source}: array {name!r} has shape {array.shape}; a table has two dimensions: "
                "flatten it with reshape(len(a), -1), or use giw.GIWClassifier, which takes images"
            )
        if array.dtype.kind not in "biufUSMm":
            raise ValueError(
                f"{source}: array {name!r} has dtype {array.dtype}; need numbers, text or dates"
            )
        if array.ndim == 1:
            columns[name] = _column(array)
        else:
            columns |= {f"{name}[{j}]": _column(array[:, j]) for j in range(array.shape[1])}
    return columns


def _from_frame(frame: Any, source: str) -> Read:
    columns: dict[str, Column] = {}
    notes: list[str] = []
    for position, key in enumerate(frame.columns):
        name = str(key)
        series = frame.iloc[:, position]
        if position == 0 and name == UNNAMED and _counts_rows(series):
            notes.append(COUNTS_ROWS.format(source))
            continue
        if name in columns:
            raise ValueError(f"{source} has two columns called {name!r}; rename one")
        columns[name] = _from_series(series, name, source)
    return columns, tuple(notes)


def _from_series(series: Any, name: str, source: str) -> Column:
    types = import_pandas().api.types
    kind = str(series.dtype)
    if kind.startswith(("period", "interval")):
        way_out = "dt.to_timestamp()" if kind.startswith("period") else "map(lambda i: i.mid)"
        raise ValueError(
            f"{source}: column {name!r} holds {kind.split('[')[0]}s; make dates or numbers of "
            f"them, for example {source}[{name!r}].{way_out}"
        )
    gone = series.isna().to_numpy(dtype=bool)
    if types.is_datetime64_any_dtype(series.dtype):
        if getattr(series.dt, "tz", None) is not None:
            series = series.dt.tz_convert(None)
        return _column(series.to_numpy(dtype="datetime64[ns]"))
    if types.is_timedelta64_dtype(series.dtype):
        return _column(series.to_numpy(dtype="timedelta64[ns]"))
    if types.is_bool_dtype(series.dtype) or types.is_numeric_dtype(series.dtype):
        if types.is_complex_dtype(series.dtype):
            raise ValueError(f"{source}: column {name!r} holds complex numbers; split them in two")
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    values = series.to_numpy(dtype=object)
    present = values[~gone]
    if any(isinstance(value, list | dict | tuple | set | np.ndarray) for value in present):
        raise ValueError(
            f"{source}: column {name!r} holds lists or records; spread them over columns first"
        )
    if any(isinstance(value, complex) for value in present):
        raise ValueError(f"{source}: column {name!r} holds complex numbers; split them in two")
    if all(isinstance(value, Number | np.bool_) for value in present):  # or nothing at all
        numbers = np.full(len(values), np.nan)
        numbers[~gone] = [float(value) for value in present]
        return numbers
    text = np.empty(len(values), dtype=object)
    text[~gone] = [_text(value) for value in present]
    days = iso_days(series)  # csv has no dates
    return text if days is None else days


def iso_days(series: Any) -> Column | None:
    """Days since 1970 of text that is all dates such as 2020-01-31, gaps aside; None otherwise."""
    present = series.dropna()
    if len(present) == 0 or not all(ISO_DATE.match(_text(value)) for value in present):
        return None
    try:
        dates = import_pandas().to_datetime(series, format="ISO8601", utc=True).dt.tz_convert(None)
    except ValueError:  # the 31st of February
        return None
    return _column(dates.to_numpy(dtype="datetime64[ns]"))


def _column(array: NDArray[Any]) -> Column:
    """A plain array as a column."""
    if array.dtype.kind in "Mm":
        days = array.astype(f"{array.dtype.kind}8[ns]").astype(np.int64) / (86_400 * 10**9)
        return np.where(np.isnat(array), np.nan, days)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    text = np.empty(len(array), dtype=object)
    text[:] = [_text(value) for value in array]
    return text


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _counts_rows(series: Any) -> bool:
    values = series.to_numpy()
    return bool(values.dtype.kind in "iu" and np.all(np.diff(values) == 1))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
