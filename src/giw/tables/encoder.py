"""Columns of a table as numbers that a model can learn from, fitted on training data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.tables.reading import Column, Table, did_you_mean, listed, missing_in

MOST_WORDS = 0.1  # share of words that a column of numbers holds by mistake
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
MOST_CATEGORIES = 30  # of a column that get a feature each; rarer ones share one
MISSING, UNSEEN, RARE = "(missing)", "(unseen)", "(rare)"


@dataclass(frozen=True)
class NumberColumn:
    """Numbers: missing ones become the training median, and an indicator says where."""

    name: str
    fill: float
    indicator: bool

    def features(self) -> list[str]:
        """Names of the features it becomes."""
        return [self.name] + [f"{self.name}={MISSING}"] * self.indicator

    def encode(self, column: Column) -> NDArray[np.float64]:
        """The features, (n, 1 or 2)."""
        gone = np.isnan(column)
        parts = [np.where(gone, self.fill, column)] + [gone.astype(np.float64)] * self.indicator
        return np.stack(parts, axis=1)


@dataclass(frozen=True)
class CategoryColumn:
    """Text: one feature per known category, one for rare ones, missing ones and unseen ones.

    "(unseen)" is zero throughout training. A validation row that has it differs from all training
    rows there, which is what it should do.
    """

    name: str
    categories: tuple[str, ...]
    rare: tuple[str, ...] = ()

    def features(self) -> list[str]:
        """Names of the features it becomes."""
        kinds = [*self.categories, *([RARE] if self.rare else []), MISSING, UNSEEN]
        return [f"{self.name}={kind}" for kind in kinds]

    def encode(self, column: Column) -> NDArray[np.float64]:
        """The features, (n, number of categories + 2 or 3)."""
        place: dict[Any, int] = {value: j for j, value in enumerate(self.categories)}
        place |= dict.fromkeys(self.rare, len(self.categories))
        width = len(self.features())
        place[None] = width - 2
        code = np.array([place.get(value, width - 1) for value in column], dtype=np.int64)
        return np.eye(width)[code]


@dataclass(frozen=True)
class TableEncoder:
    """Turns tables into matrices, the same way for every table; made by :meth:`fit`.

    Attributes
    ----------
    columns : tuple of NumberColumn and CategoryColumn
    notes : tuple of str
        Columns that were left out, and why.
    """

    columns: tuple[NumberColumn | CategoryColumn, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def fit(
        cls, train: Table, val: Table | None = None, *, categorical: Sequence[str] = ()
    ) -> TableEncoder:
        """Learn medians and categories from training rows.

        Parameters
        ----------
        train : Table
            Without the label.
        val : Table, optional
            Only asked which columns have missing values, so that these get an indicator.
        categorical : sequence of str
            Columns of numbers that are names, such as postal codes.
        """
        for name in categorical:
            if name not in train.columns:
                raise ValueError(
                    f"{train.source} has no column {name!r}{did_you_mean(name, train.names)}"
                )
        columns: list[NumberColumn | CategoryColumn] = []
        notes: list[str] = []
        for name, column in train.columns.items():
            gone = missing_in(column)
            if gone.all():
                notes.append(f"column {name!r} is empty in training and is left out")
            elif column.dtype == object or name in categorical:
                text = as_text(column)
                kinds, count = np.unique(text[~gone].astype(str), return_counts=True)
                if len(kinds) > max(100, 0.5 * (~gone).sum()):
                    is_number = name not in categorical and _numbers_as_text(
                        text, name, train.source
                    )
                    notes.append(
                        f"column {name!r} holds numbers written as text and is left out; convert "
                        "them if they measure something"
                        if is_number
                        else f"column {name!r} has another text in almost every row and is left out"
                    )
                    continue
                order = np.argsort(-count, kind="stable")
                known = sorted(kinds[order[:MOST_CATEGORIES]].tolist())
                rare = sorted(kinds[order[MOST_CATEGORIES:]].tolist())
                columns.append(CategoryColumn(name, tuple(known), tuple(rare)))
            else:
                also = val.columns.get(name) if val is not None else None
                indicator = bool(gone.any() or (also is not None and missing_in(also).any()))
                columns.append(
                    NumberColumn(name, float(np.median(column[~gone])), indicator=indicator)
                )
        if not columns:
            raise ValueError(
                "; ".join((f"{train.source} has no column to learn from besides the label", *notes))
            )
        kept = {column.name for column in columns}
        left_out = tuple(name for name in train.columns if name not in kept)
        return cls(tuple(columns), left_out, tuple(notes))

    @property
    def feature_names(self) -> list[str]:
        """A name for every feature, such as ``age`` or ``color=red``."""
        return [name for column in self.columns for name in column.features()]

    @property
    def feature_columns(self) -> list[str]:
        """The column that every feature was made from."""
        return [column.name for column in self.columns for _ in column.features()]

    def encode(self, table: Table, *, strict: bool = False) -> NDArray[np.float64]:
        """The features of a table, (n, d); columns are found by name, in any order.

        Parameters
        ----------
        table : Table
        strict : bool, default=False
            Refuse columns that training did not have.
        """
        self.check(table, strict=strict)
        parts = []
        for column in self.columns:
            values = table.columns[column.name]
            if isinstance(column, CategoryColumn):
                values = as_text(values)
            elif values.dtype == object:
                values = _no_text(values, column.name, table.source)
            elif np.isinf(values).any():
                raise ValueError(
                    f"{table.source}: column {column.name!r} holds infinite numbers (the first in "
                    f"row {int(np.flatnonzero(np.isinf(values))[0])}); leave them empty instead"
                )
            parts.append(column.encode(values))
        return np.concatenate(parts, axis=1)

    def check(self, table: Table, *, strict: bool = False) -> None:
        """Refuse a table that lacks columns, or with ``strict`` one that has others."""
        needed = [column.name for column in self.columns]
        lacking = [name for name in needed if name not in table.columns]
        known = {*needed, *self.left_out}
        extra = [name for name in table.names if name not in known] if strict else []
        if not lacking and not extra:
            return
        parts = [f"it lacks {listed(lacking)}"] * bool(lacking)
        parts += [f"it also has {listed(extra)}"] * bool(extra)
        raise ValueError(
            f"the columns of {table.source} differ from those of the training data: "
            f"{' and '.join(parts)}; rename, add or drop columns so that both files agree"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"columns": [_column_dict(c) for c in self.columns], "left_out": list(self.left_out)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TableEncoder:
        """Made again from :meth:`to_dict`."""
        return cls(tuple(map(_column_from, values["columns"])), tuple(values["left_out"]))


def as_text(column: Column) -> Column:
    """Numbers as text, whole ones without a point; text as it is."""
    if column.dtype == object:
        return column
    text = np.empty(len(column), dtype=object)
    text[:] = [
        None if v != v else f"{v:.0f}" if float(v).is_integer() else repr(float(v)) for v in column
    ]
    return text


def _numbers_as_text(text: Column, name: str, source: str) -> bool:
    """Whether all texts are numbers; measured numbers with a few words among them are refused."""
    if all(value is None or DECIMAL_COMMA.fullmatch(value) for value in text):
        row = next(j for j, value in enumerate(text) if value is not None)
        raise ValueError(
            f"{source}: column {name!r} holds numbers with decimal commas, such as "
            f"{text[row]!r} in row {row}; write them with decimal points"
        )
    words: list[int] = []
    measured, count = 0, 0
    for row, value in enumerate(text):
        if value is None:
            continue
        count += 1
        try:
            measured += not float(value).is_integer()
        except ValueError:
            words.append(row)
    if words and len(words) <= MOST_WORDS * count and measured > count / 2:
        raise ValueError(
            f"{source}: column {name!r} holds numbers but for {len(words)} of {count} rows, such "
            f"as {text[words[0]]!r} in row {words[0]}; leave missing values empty, or drop "
            "the column"
        )
    return not words


def _no_text(values: Column, name: str, source: str) -> Column:
    """A column of text where training has numbers is a mistake, unless it is all missing."""
    there = [j for j, value in enumerate(values) if value is not None]
    if not there:
        return np.full(len(values), np.nan)
    row = next((j for j in there if not _is_number(values[j])), there[0])
    raise ValueError(
        f"{source}: column {name!r} holds text ({values[row]!r} in row {row}) where the training "
        "data hold numbers; leave missing values empty, or fit again and name it with --categorical"
    )


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _column_dict(column: NumberColumn | CategoryColumn) -> dict[str, Any]:
    if isinstance(column, NumberColumn):
        return {"name": column.name, "fill": column.fill, "indicator": column.indicator}
    return {
        "name": column.name,
        "categories": list(column.categories),
        "rare": list(column.rare),
    }


def _column_from(values: Mapping[str, Any]) -> NumberColumn | CategoryColumn:
    if "categories" in values:
        return CategoryColumn(values["name"], tuple(values["categories"]), tuple(values["rare"]))
    return NumberColumn(values["name"], float(values["fill"]), bool(values["indicator"]))
