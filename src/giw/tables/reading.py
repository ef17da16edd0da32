"""Tables from files: csv, parquet and npz.

Nothing in a file is ever run: npz files with pickled objects are refused. Every complaint is one
line that names the file, what is wrong with it and the way out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from giw.tables.csv_files import read_csv
from giw.tables.npy_in_zip import check_npz
from giw.tables.table import Column, Table, one_line, plain_column, table_from_frame

CSV, PARQUET = (".csv", ".csv.gz", ".tsv", ".tsv.gz"), (".parquet", ".pq")


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
            table = reader(path)
            if len(table) == 0:
                raise ValueError(f"{path} holds no rows; a table needs at least one")
            return table
    kinds = ", ".join(ending for endings in READERS for ending in endings)
    raise ValueError(f"{path}: cannot tell what it is; the name must end in one of {kinds}")


def _read_parquet(path: Path) -> Table:
    import pandas as pd

    with parquet_errors(path):  # text is decoded only when it is looked at
        return table_from_frame(pd.read_parquet(path), str(path))


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """What is wrong with a parquet file, in one line."""
    try:
        yield
    except Exception as error:  # a damaged file can raise nearly anything, in pandas too
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(
            f"{path} is not a whole parquet file: {one_line(error)}; write or copy it again"
        ) from None


def _read_npz(path: Path) -> Table:
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
        raise ValueError(f"{path} is not a whole npz file: {one_line(error)}") from None
    except Exception as error:  # a damaged zip file or header can raise nearly anything
        raise ValueError(
            f"{path} is not a whole npz file: {one_line(error)}; write or copy it again"
        ) from None
    return Table(_from_arrays(arrays, str(path)), str(path))


READERS: dict[tuple[str, ...], Callable[[Path], Table]] = {
    CSV: read_csv,
    PARQUET: _read_parquet,
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
            columns[name] = plain_column(array)
        else:
            columns |= {f"{name}[{j}]": plain_column(array[:, j]) for j in range(array.shape[1])}
    return columns
