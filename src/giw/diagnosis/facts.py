"""What differs between two tables for certain: counted and compared, before any statistics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import hypergeom, ks_2samp

from giw.tables.table import Column, Table, is_number, missing_in

FACTORS = tuple(sign * power for power in (1, 2, 3) for sign in (1, -1))  # of ten
UNSEEN = ("new class", "new category")  # kinds that put their rows outside
DATES = {
    "2024-12-31": r"\d{4}-\d\d?-\d\d?([T ].*)?",
    "31.12.2024": r"\d\d?\.\d\d?\.\d{4}.*",
    "12/31/2024": r"\d\d?/\d\d?/\d{4}.*",
    "20241231": r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])",
}


@dataclass(frozen=True)
class Fact:
    """One difference that needs no test.

    Attributes
    ----------
    kind : str
        "new class", "new category", "type", "unit", "date format", "newly missing", "constant",
        "range", "duplicates", "identifier" or "timestamp".
    column : str or None
        The column it is about; None for the label and for whole rows.
    text : str
        One sentence.
    val_rows, train_rows : int
        Rows of each side that show it.
    rows : tuple of int
        The validation rows, from 0.
    """

    kind: str
    column: str | None
    text: str
    val_rows: int = 0
    train_rows: int = 0
    rows: tuple[int, ...] = ()


def facts(
    train: Table,
    val: Table,
    y: NDArray[Any] | None = None,
    y_val: NDArray[Any] | None = None,
    *,
    level: float = 0.01,
) -> tuple[Fact, ...]:
    """Differences in kinds of values, the gravest first.

    Parameters
    ----------
    train, val : Table
        With the same columns.
    y, y_val : array of shape (n,) and (m,), optional
        Labels.
    level : float, default=0.01
        A range that validation rows leave, and a unit, are told where chance does so in fewer
        than this share of tables, over all columns.
    """
    found = list(_new_classes(y, y_val))
    shared = [name for name in train.names if name in val.columns]
    level = level / max(len(shared), 1)
    for name in shared:
        found += _of_column(name, train.columns[name], val.columns[name], level)
    found += _duplicates(train, val, level)
    order = ("new class", "new category", "type", "unit", "date format", "newly missing",
             "constant", "range", "duplicates", "timestamp", "identifier")  # fmt: skip
    return tuple(sorted(found, key=lambda fact: (order.index(fact.kind), -fact.val_rows)))


def _of_column(name: str, train: Column, val: Column, level: float) -> Iterator[Fact]:
    gone, val_gone = missing_in(train), missing_in(val)
    if val_gone.any() and not gone.any():
        yield Fact(
            "newly missing", name,
            f"Column {name!r} is missing in {_of(val_gone, val)} validation rows and in no "
            "training row.",
            int(val_gone.sum()), 0, _rows(val_gone),
        )  # fmt: skip
    there, val_there = train[~gone], val[~val_gone]
    if not len(there) or not len(val_there):
        return
    if (train.dtype == object) != (val.dtype == object):
        text, number = ("training", "validation")[:: 1 if train.dtype == object else -1]
        yield Fact(
            "type", name, f"Column {name!r} holds text in the {text} and numbers in the {number} "
            "table.", len(val), len(train),
        )  # fmt: skip
        return
    yield from _constant(name, there, val_there)
    if train.dtype == object:
        yield from _of_text(name, there.astype(str), val, val_gone)
        return
    unit = _unit(name, there, val_there, level)
    if unit is not None:
        yield unit
    else:
        yield from _range(name, there, val, val_gone, level)
    yield from _counter(name, there, val_there)


def _new_classes(y: NDArray[Any] | None, y_val: NDArray[Any] | None) -> Iterator[Fact]:
    if y is None or y_val is None:
        return
    known = set(np.unique(y).tolist())
    for label, count in Counter(y_val.tolist()).most_common():
        if label not in known:
            rows = y_val == label
            yield Fact(
                "new class", None,
                f"Label {label!r} is in {_of(rows, y_val)} validation rows and in no training row.",
                count, 0, _rows(rows),
            )  # fmt: skip


def _of_text(
    name: str, train: NDArray[Any], val: Column, val_gone: NDArray[np.bool_]
) -> Iterator[Fact]:
    words = val[~val_gone].astype(str)
    formats = [_date_format(side) for side in (train, words)]
    if any(formats):
        if all(formats) and formats[0] != formats[1]:
            yield Fact(
                "date format", name,
                f"Dates in column {name!r} are written like {formats[0]} in training and like "
                f"{formats[1]} in validation.", len(words), len(train),
            )  # fmt: skip
        yield Fact(
            "timestamp", name,
            f"Column {name!r} holds dates: later rows have values that training cannot have. "
            "Derive what repeats, such as the weekday, or leave it out.", len(words), len(train),
        )  # fmt: skip
        return
    kinds, count = np.unique(train, return_counts=True)
    if len(kinds) == len(train) > 1 and len(train) >= 20:
        yield Fact(
            "identifier", name,
            f"Column {name!r} has another text in every training row: it names rows and says "
            "nothing of new ones. Leave it out.", len(words), len(train),
        )  # fmt: skip
        return
    # a level that one training row in so many has alone is no news in validation either
    alone = float((count == 1).sum()) / len(train)
    known = set(kinds.tolist())
    fresh = np.array([not gone and str(word) not in known
                      for word, gone in zip(val, val_gone, strict=True)])  # fmt: skip
    if not fresh.any() or fresh.mean() <= 2 * alone:
        return
    new = Counter(val[fresh].astype(str).tolist()).most_common()
    shown = ", ".join(repr(word) for word, _ in new[:3]) + (", …" if len(new) > 3 else "")
    noun = f"Category {shown}" if len(new) == 1 else f"{len(new)} categories ({shown})"
    verb = "is" if len(new) == 1 else "are"
    yield Fact(
        "new category", name,
        f"{noun} of column {name!r} {verb} in {_of(fresh, val)} validation rows and in no training "
        "row.", int(fresh.sum()), 0, _rows(fresh),
    )  # fmt: skip


def _constant(name: str, train: Column, val: Column) -> Iterator[Fact]:
    if len(np.unique(train.astype(str))) == 1 and len(np.unique(val.astype(str))) > 1:
        yield Fact(
            "constant", name, f"Column {name!r} is {train[0]!s} in every training row and varies "
            "in validation.", len(val), len(train),
        )  # fmt: skip


def _unit(name: str, train: Column, val: Column, level: float) -> Fact | None:
    """The factor of ten that makes two unlike columns alike, if one does."""
    raw = ks_2samp(train, val)
    if raw.pvalue > level or raw.statistic < 0.5 or len(np.unique(train)) < 5:
        return None
    scaled = [(ks_2samp(train * 10.0**power, val).statistic, power) for power in FACTORS]
    distance, power = min(scaled)
    if distance > 0.5 * raw.statistic or ks_2samp(train * 10.0**power, val).pvalue < level:
        return None
    factor = f"{10 ** abs(power):,}"
    return Fact(
        "unit", name,
        f"Column {name!r} is {factor} times {'larger' if power > 0 else 'smaller'} in validation "
        "than in training, and alike otherwise: another unit"
        f"{', or percent and shares' if abs(power) == 2 else ''}.", len(val), len(train),
    )  # fmt: skip


def _range(
    name: str, train: Column, val: Column, val_gone: NDArray[np.bool_], level: float
) -> Iterator[Fact]:
    r"""Values beyond the training rows' least and largest, where chance does not explain them.

    The k largest of n + m exchangeable values are all of the m with probability
    :math:`\prod_{i<k} (m - i) / (n + m - i)`.
    """
    n, m = len(train), int((~val_gone).sum())
    below, above = (~val_gone & (val < train.min())), (~val_gone & (val > train.max()))
    chance = [
        float(np.prod([(m - i) / (n + m - i) for i in range(int(side.sum()))]))
        for side in (below, above)
    ]
    out = (below & (chance[0] < level / 2)) | (above & (chance[1] < level / 2))
    if out.any():
        yield Fact(
            "range", name,
            f"Column {name!r} lies outside the range of training ({train.min():g} to "
            f"{train.max():g}) in {_of(out, val)} validation rows.",
            int(out.sum()), 0, _rows(out),
        )  # fmt: skip


def _counter(name: str, train: Column, val: Column) -> Iterator[Fact]:
    """Whole numbers that number rows or are moments in time."""
    both = np.concatenate([train, val])
    if len(train) < 20 or np.any(both != np.rint(both)):
        return
    dated = _date_format(train.astype(np.int64).astype(str)) if np.all(abs(both) < 1e18) else ""
    if (
        dated
        or (both.min() > 1e9 and both.max() < 2e9)
        or (both.min() > 1e12 and both.max() < 2e12)
    ):
        yield Fact(
            "timestamp", name,
            f"Column {name!r} holds moments in time: later rows have values that training cannot "
            "have. Derive what repeats, such as the hour, or leave it out.", len(val), len(train),
        )  # fmt: skip
    elif len(np.unique(both)) == len(both) and both.max() - both.min() < 10 * len(both):
        yield Fact(
            "identifier", name,
            f"Column {name!r} is another whole number in every row: it numbers rows and says "
            "nothing of new ones. Leave it out.", len(val), len(train),
        )  # fmt: skip


def _duplicates(train: Table, val: Table, level: float) -> Iterator[Fact]:
    shared = [name for name in train.names if name in val.columns]
    keys = [_row_keys(table, shared) for table in (train, val)]
    also = np.isin(keys[1], keys[0])
    # where few values differ rows repeat by nature, and training rows have copies of each other
    _, place, count = np.unique(keys[0], return_inverse=True, return_counts=True)
    twins, k, n, m = (
        int((count[place.reshape(-1)] > 1).sum()),
        int(also.sum()),
        len(train),
        len(val),
    )
    if k and hypergeom.sf(k - 1, n + m, k + twins, m) < level:  # Fisher's exact test
        yield Fact(
            "duplicates", None,
            f"{_of(also, also)} validation rows are training rows too (all columns are equal): "
            "they say nothing of new rows.",
            int(also.sum()), int(np.isin(keys[0], keys[1]).sum()), _rows(also),
        )  # fmt: skip


def _row_keys(table: Table, names: Sequence[str]) -> NDArray[np.uint64]:
    """One number for each row, equal for equal rows."""
    frame = pd.DataFrame({j: table.columns[name] for j, name in enumerate(names)})
    for j in [j for j in frame.columns if not pd.api.types.is_numeric_dtype(frame[j])]:
        frame[j] = frame[j].map(lambda value: "\0" if value is None else str(value))
    return np.asarray(pd.util.hash_pandas_object(frame, index=False).to_numpy(), dtype=np.uint64)


def _date_format(words: NDArray[Any]) -> str:
    """The way of writing dates that nine values in ten follow, or nothing."""
    some = words[:: max(1, len(words) // 1000)]
    for example, pattern in DATES.items():
        hits = sum(bool(re.fullmatch(pattern, str(word).strip())) for word in some)
        if hits >= 0.9 * len(some) and not (example.isdigit() and not is_number(str(some[0]))):
            return example
    return ""


def _of(rows: NDArray[np.bool_], all_rows: NDArray[Any]) -> str:
    return f"{int(rows.sum()):,} of {len(all_rows):,}"


def _rows(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())
