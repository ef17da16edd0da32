"""A table in memory: named columns of numbers and of text, whatever it was before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import to_numpy, valid_text

UNNAMED = "Unnamed: 0"  # as pandas calls it
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?$")
Column = NDArray[Any]  # (n,) float64 with NaN for missing, or objects: str and None for missing


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length."""

    columns: Mapping[str, Column]
    source: str = "table"  # what messages call it: its path
    notes: tuple[str, ...] = ()  # what was done while reading that a person should know
    unnamed: bool = False  # columns of an array have no names and count by their place
    dates: tuple[str, ...] = ()  # columns that held dates
    first_row: int = 0  # what messages call the first: 2 in a file, where names are in row 1
    # of a sample of a file:
    rows: NDArray[np.int64] | None = None  # their numbers in it, from 0
    total: int = 0  # rows in the file
    label_counts: Mapping[Any, int] | None = None  # how often each label occurs in all of it

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    @property
    def names(self) -> list[str]:
        """The names of the columns in their order."""
        return list(self.columns)

    def row_number(self, row: Any) -> int:
        """What messages call a row: its number in the file."""
        return self.first_row + int(row if self.rows is None else self.rows[row])

    def without(self, *names: str | None) -> Table:
        """The table less some columns, whether it has them or not."""
        rest = {key: value for key, value in self.columns.items() if key not in names}
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
                f"{name!r} (the first in row {self.row_number(gone.argmax())}); drop those rows"
            )
        if column.dtype == object:
            return column.astype(str)
        whole = np.all((np.abs(column) < 2**53) & (column == np.rint(column)))
        return column.astype(np.int64) if whole else column


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


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a message, the first few of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def table_from_frame(frame: Any, source: str = "table", *, unnamed: bool = False) -> Table:
    """A pandas data frame as a table."""
    columns: dict[str, Column] = {}
    dates: list[str] = []
    for key, series in frame.items():
        name = valid_text(key)
        if name in columns:
            raise ValueError(f"{source} has two columns called {name!r}; rename one")
        columns[name] = _from_series(series, name, source)
        was_date = isinstance(next(iter(series.dropna()), None), str | date)  # or a time stamp
        dates += [name] * (was_date and columns[name].dtype != object)
    table = Table(columns, source, unnamed=unnamed, dates=tuple(dates))
    return without_counter(table) if counts_rows(columns.get(UNNAMED, np.empty(0))) else table


def without_counter(table: Table) -> Table:
    """A table less its column without a name, which counts the rows."""
    note = f"{table.source}: the first column has no name and counts the rows: left out"
    return replace(table.without(UNNAMED), notes=(*table.notes, note))


def counts_rows(column: Column, first: float | None = None) -> bool:
    """Whether whole numbers go up by one, from ``first`` on where that is given."""
    if column.dtype == object or not len(column):
        return False
    start = float(column[0]) if first is None else first
    return start.is_integer() and np.array_equal(column, start + np.arange(len(column)))


def as_table(X: Any, name: str, *, column_names: Sequence[str] | None = None) -> Table:
    """A pandas, polars or pyarrow table, array, tensor or nested list as a table.

    One dimension is read as a single column; images and the like become rows of numbers. Columns of
    an array are called by ``column_names``, or ``x0``, ``x1``, …
    """
    if isinstance(X, Table):
        return X
    if hasattr(X, "iloc"):
        return table_from_frame(X.to_frame() if X.ndim == 1 else X, name)
    if hasattr(X, "__arrow_c_stream__"):  # polars, pyarrow and their like
        import pyarrow as pa

        return table_from_frame(pa.table(X).to_pandas(), name)
    rows = to_numpy(X, name)
    if rows.dtype.kind in "US" and not hasattr(X, "shape"):  # numbers and text in one list
        rows = np.asarray(X, dtype=object)
    if rows.ndim == 0:
        raise ValueError(f"{name} must be a table, got {type(X).__name__}")
    rows = rows.reshape(len(rows), -1) if len(rows) else rows.reshape(0, rows[None].shape[-1])
    unnamed = column_names is None
    names = [f"x{j}" for j in range(rows.shape[1])]
    if column_names is not None:
        names = [str(each) for each in column_names]
        if len(names) != rows.shape[1]:
            raise ValueError(f"need one feature name per column, {rows.shape[1]}, got {len(names)}")
        if len(set(names)) < len(names):
            raise ValueError(f"two columns of {name} have the same name; rename one")
    if rows.dtype.kind in "biuf":
        columns = dict(zip(names, rows.astype(np.float64).T, strict=True))
        return Table(columns, name, unnamed=unnamed)
    import pandas as pd

    return table_from_frame(pd.DataFrame(rows, columns=names), name, unnamed=unnamed)


def _from_series(series: Any, name: str, source: str) -> Column:
    """Numbers, dates as days since 1970, spans as days, text; what is none of them is refused."""
    where = f"{source}: column {name!r} holds"
    kind = str(series.dtype)
    if kind.startswith(("period", "interval")):
        way_out = "dt.to_timestamp()" if kind.startswith("period") else "map(lambda i: i.mid)"
        raise ValueError(
            f"{where} {kind.split('[')[0]}s; make dates or numbers of them, for example "
            f"{source}[{name!r}].{way_out}"
        )
    if series.dtype.kind in "Mm":
        return _days(series)
    if series.dtype.kind in "biuf":  # truth values, too
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    values, gone = series.to_numpy(dtype=object), series.isna().to_numpy(dtype=bool)
    present = values[~gone]
    if any(isinstance(value, list | dict | tuple | set | np.ndarray) for value in present):
        raise ValueError(f"{where} lists or records; spread them over columns first")
    if any(isinstance(value, complex) for value in present):
        raise ValueError(f"{where} complex numbers; split them in two")
    if all(isinstance(value, Number | np.bool_) for value in present):  # or nothing at all
        numbers = np.full(len(values), np.nan)
        numbers[~gone] = [float(value) for value in present]
        return numbers
    text = np.full(len(values), None)
    text[~gone] = [
        v.decode("utf-8", "replace") if isinstance(v, bytes) else valid_text(v) for v in present
    ]
    days = iso_days(text.tolist())  # csv has no dates
    return text if days is None else days


def _days(series: Any) -> Column:
    """Dates as days since 1970, spans as days."""
    if getattr(series.dt, "tz", None) is not None:
        series = series.dt.tz_convert(None)
    array = series.to_numpy()
    if array.dtype.kind == "M":
        array = array - np.datetime64(0, "D")
    days: Column = array / np.timedelta64(1, "D")
    return days


def iso_days(values: Sequence[str | None]) -> Column | None:
    """Days since 1970 of text that is all dates such as 2020-01-31, gaps aside; None otherwise."""
    present = [value for value in values if value is not None]
    if not present or not all(map(ISO_DATE.match, present)):
        return None
    import pandas as pd

    try:
        return _days(pd.to_datetime(pd.Series(values), format="ISO8601", utc=True))
    except ValueError:  # the 31st of February
        return None


def is_number(text: Any) -> bool:
    """Whether Python reads it as a number."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True
