"""What differs between two tables for certain: counted and compared, before any statistics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.stats import binom, ks_2samp

from giw.diagnosis.findings import FACTS, Bools, Finding
from giw.estimators.inputs import repeated_rows
from giw.tables.encoder import as_text
from giw.tables.table import Column, Table, is_number, missing_in

NAMES = "Column {!r} has another {} row: it names rows and says nothing of new ones."
LATER = "later rows will have others than training"
DATES = {
    "2024-12-31": r"\d{4}-\d\d?-\d\d?([T ].*)?",
    "31.12.2024": r"\d\d?\.\d\d?\.\d{4}.*",
    "12/31/2024": r"\d\d?/\d\d?/\d{4}.*",
    "20241231": r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])",
}
Labels = NDArray[Any] | None


def facts(
    train: Table, val: Table, y: Labels = None, y_val: Labels = None, *, level: float = 0.01,
    whole: Table | None = None,
) -> tuple[Finding, ...]:  # fmt: skip
    """Differences in kinds of values, the gravest first; those that chance explains come last.

    Chance finds each kind of fact in fewer than a share ``level`` of tables, over all columns. New
    categories and missing values are always told, and called what chance leads one to expect where
    they are. ``whole`` has the training rows with their copies, where these are left out.
    """
    shared = [name for name in train.names if name in val.columns]
    each = level / max(len(shared), 1)
    found = [*_missing_columns(train, val, each), *_new_classes(y, y_val)]
    for name in shared:
        dates = name in train.dates, name in val.dates
        found += _of_column(name, train.columns[name], val.columns[name], each, dates)
    found += _duplicates(train if whole is None else whole, val, shared, level)
    questions = dict.fromkeys(("newly missing", "constant"), len(shared)) | {"new class": 1}
    questions["new category"] = sum(train.columns[name].dtype == object for name in shared)
    found = [replace(f, found=f.p_value * questions.get(f.kind, 0) <= level) for f in found]
    found.sort(key=lambda f: (
        not f.found, not (f.to_repair or f.is_news), FACTS.index(f.kind), -len(f.rows)
    ))  # fmt: skip
    return tuple(found)


def all_by_chance(k: int, n: int, m: int) -> float:
    """Chance that k of n + m rows are all among the m, (m choose k) / (n + m choose k)."""
    i = np.arange(k)
    return float(np.prod((m - i) / (n + m - i)))


def new_by_chance(train: Sequence[Any], val: Sequence[Any]) -> tuple[float, float]:
    r"""How many validation rows have a level that training lacks: expected, and the p-value.

    Of the levels that occur c times in both tables together, a share
    :math:`p_c = \binom{m}{c} / \binom{n+m}{c}` is in validation alone where rows are dealt to the
    tables at random. The number of such rows is a sum of independent binomials, nearly; levels
    that occur once say how many to expect, as in Good and Turing's estimate.
    """
    n, m = len(train), len(val)
    old, new = Counter(train), Counter(val)
    seen = sum(count for level, count in new.items() if level not in old)
    levels = Counter(count for count in (old + new).values() if count <= m)
    expected, chance = 0.0, np.ones(1)
    for count, many in levels.items():
        p = all_by_chance(count, n, m)
        expected += count * many * p
        times = np.arange((seen - 1) // count + 1)
        part = np.zeros(max(seen, 1))
        part[times * count] = binom.pmf(times, many, p)
        chance = fftconvolve(chance, part)[: max(seen, 1)]
    return expected, float(np.clip(1 - chance.sum(), 0, 1)) if seen else 1.0


def _of_rows(
    kind: str, column: str | None, text: str, rows: Bools, p_value: float = 0.0,
    expected: float = 0.0, aside: bool = False,
) -> Finding:  # fmt: skip
    """A fact of some validation rows, with what chance has to do with it.

    ``…`` in the text becomes how many rows these are.
    """
    text = text.replace("…", f"{int(rows.sum()):,} of {len(rows):,} validation rows")
    if expected >= 0.1:
        text += f"; as rare values go, about {expected:.1f} such rows are to be expected"
    share, places = float(rows.mean()), tuple(np.flatnonzero(rows).tolist())
    return Finding(kind, column, f"{text}.", p_value, effect=share, rows=places, aside=aside)


def _missing_columns(train: Table, val: Table, level: float) -> Iterator[Finding]:
    """Columns that one table has not, or in which it has no value though the other has many."""
    tables, sides = (train, val), ("training", "validation")
    for name in dict.fromkeys([*train.names, *val.names]):
        has = [name in table.columns for table in tables]
        what = "empty" if all(has) else "not"
        if all(has):
            there = [int((~missing_in(table.columns[name])).sum()) for table in tables]
            has, sizes = [count > 0 for count in there], (len(train), len(val))
            at = int(there[1] == 0)
            if all(has) or all_by_chance(sum(there), sizes[at], sizes[1 - at]) > level:
                continue
        here, gone = sides if has[0] else sides[::-1]
        text = f"Column {name!r} is in the {here} table and {what} in the {gone} table."
        yield Finding("missing column", name, text, aside=True)


def _new_classes(y: Labels, y_val: Labels) -> Iterator[Finding]:
    if y is None or y_val is None:
        return
    expected, p_value = new_by_chance(y.tolist(), y_val.tolist())
    for label in pd.Series(y_val[~np.isin(y_val, y)]).value_counts().index.tolist():
        text = f"Label {label!r} is in … and in no training row"
        yield _of_rows("new class", None, text, y_val == label, p_value, expected)


def _of_column(
    name: str, train: Column, val: Column, level: float, dates: tuple[bool, bool]
) -> Iterator[Finding]:
    gone, val_gone = missing_in(train), missing_in(val)
    there, val_there = train[~gone], val[~val_gone]
    infinite = any(c.dtype != object and np.isinf(c).any() for c in (there, val_there))
    if not len(there) or not len(val_there) or infinite:
        return  # of infinite numbers the encoder says what is wrong
    column = f"Column {name!r}"
    if val_gone.any() and not gone.any():
        p_value = all_by_chance(int(val_gone.sum()), len(train), len(val))
        text = f"{column} is missing in … and in no training row"
        yield _of_rows("newly missing", name, text, val_gone, p_value)
    formats = [
        "2024-12-31" if is_date else date_format(side) if side.dtype == object else ""
        for side, is_date in zip((there, val_there), dates, strict=True)
    ]
    # numbers in validation may be codes that training writes as text, among other words
    mixed = (train.dtype == object) != (val.dtype == object)
    codes = mixed and val.dtype != object and not {*there}.isdisjoint(as_text(val_there).tolist())
    if all(formats) and formats[0] != formats[1]:
        text = f"Dates in column {name!r} are written like {formats[0]} in training and like "
        yield Finding("date format", name, f"{text}{formats[1]} in validation.", aside=True)
    elif mixed and not codes:
        words, number = ("training", "validation")[:: 1 if train.dtype == object else -1]
        text = f"{column} holds text in the {words} table and numbers in the {number} table"
        yield Finding("type", name, f"{text}, and is compared no further.", aside=True)
    elif codes:
        yield from _of_column(name, train, as_text(val), level, dates)
    elif len(set(there.tolist())) == 1 and (val_there != there[0]).any():
        rows = ~val_gone & (val != there[0])
        value = there[0] if train.dtype == object else f"{there[0]:g}"
        p_value = all_by_chance(int(rows.sum()), len(there), len(val_there))
        text = f"{column} is {value} in every training row and differs in …"
        # where it tells the two tables apart, nothing else could be compared
        yield _of_rows("constant", name, text, rows, p_value, aside=bool(rows.all()))
    elif train.dtype == object and formats[0]:
        yield Finding("timestamp", name, f"{column} holds dates: {LATER}.", aside=True)
    elif train.dtype == object:
        yield from _of_text(name, there.astype(str), val, val_gone)
    else:
        yield from _of_numbers(name, there, val, val_gone, level, all(dates))


def date_format(words: NDArray[Any]) -> str:
    """The way of writing dates that nine values in ten follow, or nothing."""
    some = words[:: max(1, len(words) // 1000)]
    for example, pattern in DATES.items():
        hits = sum(bool(re.fullmatch(pattern, str(word).strip())) for word in some)
        if hits >= 0.9 * len(some) and not (example.isdigit() and not is_number(str(some[0]))):
            return example
    return ""


def _of_text(name: str, train: NDArray[Any], val: Column, val_gone: Bools) -> Iterator[Finding]:
    known = set(train.tolist())
    if len(known) == len(train) >= 20:
        yield Finding("identifier", name, NAMES.format(name, "text in every training"), aside=True)
        return
    fresh = ~val_gone & ~np.isin(val.astype(str), list(known))
    if fresh.any():
        new = [word for word, _ in Counter(val[fresh].tolist()).most_common()]
        shown = ", ".join(map(repr, new[:3])) + " and others" * (len(new) > 3)
        what = f"Category {shown} of column {name!r} is"
        if len(new) > 1:
            what = f"{len(new)} categories ({shown}) of column {name!r} are"
        expected, p_value = new_by_chance(train.tolist(), val[~val_gone].tolist())
        text = f"{what} in … and in no training row"
        yield _of_rows("new category", name, text, fresh, p_value, expected)


def _of_numbers(
    name: str, train: Column, val: Column, val_gone: Bools, level: float, dates: bool
) -> Iterator[Finding]:
    there, column = val[~val_gone], f"Column {name!r}"
    both = np.concatenate([train, there])
    whole, span = len(train) >= 20 and bool(np.all(both == np.rint(both))), float(np.ptp(both))
    seconds = any(unit < both.min() and both.max() < 2 * unit for unit in (1e9, 1e12))
    digits = both.max() < 1e18 and date_format(train.astype(np.int64).astype(str))
    out, chance = _beyond(train, val, level)
    # whole numbers at random would repeat: that n do not has a chance of exp(-n² / 2 span)
    names = all(len(np.unique(side)) == len(side) for side in (train, there))
    names &= np.exp(-(len(train) ** 2 + len(there) ** 2) / 2 / max(span, 1)) < level
    if dates or (whole and (seconds or digits)):
        told = "… have others than training can have" if out.any() else LATER
        text = f"{column} holds {'dates' if dates else 'moments in time'}: {told}"
        yield _of_rows("timestamp", name, text, out, aside=bool(out.any()))
    elif whole and names:
        yield Finding("identifier", name, NAMES.format(name, "whole number in every"), aside=True)
    elif power := _power_of_ten(train, there, level):
        text = f"{column} is {10 ** abs(power):,} times {'larger' if power > 0 else 'smaller'} in "
        text += "validation than in training, and alike otherwise: another unit"
        text += ", or percent and shares" * (abs(power) == 2)
        yield Finding("unit", name, f"{text}.", factor=10.0**power)
    elif out.any():
        text = f"{column} lies outside the range of training ({train.min():g} to {train.max():g})"
        yield _of_rows("range", name, f"{text} in …", out, chance)


def _power_of_ten(train: Column, val: Column, level: float) -> int:
    """The power of ten that makes two unlike columns alike, or 0."""
    raw = ks_2samp(train, val, method="asymp")  # the exact one warns where it gives up
    if raw.pvalue > level or raw.statistic < 0.5 or len(np.unique(train)) < 5:
        return 0
    scaled = {k: ks_2samp(train * 10.0**k, val, method="asymp") for k in (1, -1, 2, -2, 3, -3)}
    best = min(scaled, key=lambda power: scaled[power].statistic)
    alike = scaled[best].statistic <= 0.5 * raw.statistic and scaled[best].pvalue >= level
    return best if alike else 0


def _beyond(train: Column, val: Column, level: float) -> tuple[Bools, float]:
    """Rows beyond the training rows' least and largest, where chance does not explain them."""
    n, m = len(train), int((~missing_in(val)).sum())
    out, chance = np.zeros(len(val), dtype=bool), [1.0]
    for side in (val < train.min(), val > train.max()):  # a missing value is neither
        p_value = all_by_chance(int(side.sum()), n, m)
        if p_value < level / 2:
            out |= side
            chance.append(p_value)
    return out, min(chance)


def _duplicates(train: Table, val: Table, names: list[str], level: float) -> Iterator[Finding]:
    both = {
        j: np.concatenate([t.columns[name] for t in (train, val)]) for j, name in enumerate(names)
    }
    rows, n = pd.DataFrame(both), len(train)
    also, p_value = repeated_rows(rows[:n], rows[n:])
    if p_value < level:
        text = "… are training rows too (all columns are equal): they say nothing of new rows"
        yield _of_rows("duplicates", None, text, also, p_value)
