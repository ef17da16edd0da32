"""Tables as numbers in comparable units: the one featuriser of splits, weights and diagnosis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from giw.tables.table import Column, Table, as_table, did_you_mean, is_number, listed, missing_in

MOST_WORDS = 0.1  # share of words that a column of numbers holds by mistake
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
FARTHEST = 1e9  # units; the square of a larger number of them may not fit into float32
REACH = 5.0  # interquartile ranges from the quartiles; what is farther does not widen a unit
TINY = np.finfo(np.float64).tiny
MISSING, UNSEEN, RARE = "(missing)", "(unseen)", "(rare)"
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class NumberColumn:
    """Numbers: missing ones become the training median, and an indicator says where.

    A column that is empty in training makes no feature, and every value in it is new.
    """

    name: str
    fill: float  # the median
    indicator: bool  # whether a feature says where numbers are missing
    rows: int = 1  # of training, with a number
    gaps: int = 1  # and without one

    def features(self) -> list[str]:
        """Names of the features it becomes."""
        names = [self.name, f"{self.name}={MISSING}"]
        return names[: 1 + self.indicator] if self.rows else []

    def encode(self, column: Column) -> Matrix:
        """The features, (n, 0, 1 or 2)."""
        gone = np.isnan(column)
        parts = [np.where(gone, self.fill, column), gone.astype(np.float64)]
        return np.stack(parts, axis=1)[:, : len(self.features())]

    def counts(self, column: Column) -> NDArray[np.int64]:
        """Training rows that have a number, or that have none, like each row here, (n,)."""
        return np.where(np.isnan(column), self.gaps, self.rows)


@dataclass(frozen=True)
class CategoryColumn:
    """Text: one feature per known category, one for missing ones, one for rare and unseen ones.

    Where there are rare categories a new one is no news: it counts as one of them. Elsewhere
    "(unseen)" is zero throughout training, so that a row that has it differs from all of these.
    """

    name: str
    categories: Sequence[str]  # with a feature each
    rare: Sequence[str] = ()  # with one together
    rows: Sequence[int] = ()  # of training, in each category, the rare ones last
    gaps: int = 1  # of training, without a category

    def features(self) -> list[str]:
        """Names of the features it becomes."""
        kinds = [*self.categories, *([RARE, MISSING] if self.rare else [MISSING, UNSEEN])]
        return [f"{self.name}={kind}" for kind in kinds]

    def encode(self, column: Column) -> Matrix:
        """The features, (n, number of categories + 2)."""
        code, known = self._codes(column), len(self.categories)
        if self.rare:  # the last but one of the features is theirs, the last for missing ones
            code = np.select([code == -1, code == -2], [known, known + 1], code.clip(max=known))
        return np.eye(known + 2)[code]

    def counts(self, column: Column) -> NDArray[np.int64]:
        """Training rows that have the same category as each row here, (n,)."""
        return np.array([*self.rows, self.gaps, 0], dtype=np.int64)[self._codes(column)]

    def _codes(self, column: Column) -> NDArray[np.int64]:
        """Place among the categories, -2 for missing and -1 for unseen ones, (n,)."""
        place: dict[Any, int] = {v: j for j, v in enumerate([*self.categories, *self.rare])}
        place[None] = -2
        return np.array([place.get(value, -1) for value in column], dtype=np.int64)


class Encoder(BaseEstimator):
    """Any table as a matrix of finite numbers, in units of the training rows.

    Numbers are centred and divided by their spread over training rows, where numbers beyond five
    interquartile ranges from the quartiles count as that far: a few values of 999999 do not make
    all others look alike. Missing numbers become the training median, with an indicator
    beside. Text becomes one indicator per category, centred and divided by its spread like a
    number. What is constant in training keeps its unit. Nothing depends on the order of rows, and
    columns are found by their names.

    ``X`` may be a pandas, polars or pyarrow table, an array, a tensor, nested lists or a
    :class:`giw.tables.Table`; :func:`giw.tables.as_table` gives it the name that errors mention.

    Parameters
    ----------
    max_categories : int, default=30
        Categories of a column that get a feature each; with more of them, rarer ones count as
        different too.
    categorical : sequence of str, default=()
        Columns of numbers that are names, such as postal codes.

    Attributes
    ----------
    columns_ : list of str
        All columns of training, in the order of :meth:`level_counts`.
    notes_ : tuple of str
        Columns that were left out, and why.
    center_, unit_ : arrays of shape (d,)
        What was taken off each feature, and what it was divided by then.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0], [2.0], [3.0]])
    >>> Encoder().fit(x).transform(x).round(2).ravel().tolist()
    [-1.22, 0.0, 1.22]
    """

    def __init__(self, *, max_categories: int = 30, categorical: Sequence[str] = ()) -> None:
        self.max_categories = max_categories
        self.categorical = categorical

    def fit(self, X: Any, X_val: Any = None) -> Encoder:
        """Learn medians, categories and units from training rows, (n, columns).

        Validation rows, (m, columns), must have the same columns, in any order. They are only asked
        which columns of numbers have missing values, so that these get an indicator.
        """
        train = as_table(X, "X")
        for name in set(self.categorical) - set(train.columns):
            raise ValueError(
                f"{train.source} has no column {name!r}{did_you_mean(name, train.names)}"
            )
        if train.columns and not len(train):
            raise ValueError(f"{train.source} has no rows; units need at least one")
        self.columns_, self.named_, self.n_samples_ = train.names, not train.unnamed, len(train)
        self.encoded_: list[NumberColumn | CategoryColumn] = []
        notes = [self._fit_column(name, train) for name in train.names]
        self.notes_ = tuple(note for note in notes if note)
        if not self.feature_names_:
            words = f"{train.source} has no column to learn from besides the label"
            raise ValueError("; ".join((words, *self.notes_)))
        if X_val is not None:
            val = self._matched(X_val, "X_val", strict=True)
            for j, column in enumerate(self.encoded_):
                if isinstance(column, NumberColumn) and column.rows and not column.indicator:
                    gaps = bool(missing_in(val.columns[column.name]).any())
                    self.encoded_[j] = replace(column, indicator=gaps)
        self.center_, self.unit_ = units(self.numbers(train))
        return self

    def _fit_column(self, name: str, train: Table) -> str:
        """Learn one column, or give the reason why it is left out."""
        column = train.columns[name]
        gone = missing_in(column)
        there, gaps = column[~gone], int(gone.sum())
        if not len(there):
            self.encoded_.append(NumberColumn(name, 0.0, False, 0, gaps))
            return f"column {name!r} is empty in training and is left out"
        if column.dtype != object and name not in self.categorical:
            _finite(column, name, train)
            fill = float(np.median(0.5 * there) * 2)  # the mean of two large ones may be infinite
            self.encoded_.append(NumberColumn(name, fill, gaps > 0, len(there), gaps))
            return ""
        kinds, count = np.unique(as_text(there).astype(str), return_counts=True)
        many = len(kinds) > 0.5 * len(there)  # for a category
        numbers = many and name not in self.categorical and _numbers_as_text(column, name, train)
        if many and len(kinds) > 100:
            if numbers:
                return (
                    f"column {name!r} holds numbers written as text and is left out; convert "
                    "them if they measure something"
                )
            return f"column {name!r} has another text in almost every row and is left out"
        cut, order = self.max_categories, np.argsort(-count, kind="stable")
        order = np.concatenate([np.sort(order[:cut]), np.sort(order[cut:])])
        known, rows = kinds[order].tolist(), count[order].tolist()
        self.encoded_.append(CategoryColumn(name, known[:cut], known[cut:], rows, gaps))
        return ""

    def transform(self, X: Any) -> Matrix:
        """The features in training units, (n, d), none beyond 10⁹."""
        z = self.numbers(X)
        z *= 0.25  # a quarter of the largest float less a quarter of the least one still is a float
        z -= 0.25 * self.center_
        with np.errstate(over="ignore"):
            z /= 0.25 * self.unit_
        return np.clip(z, -FARTHEST, FARTHEST, out=z)

    def numbers(self, X: Any) -> Matrix:
        """The same features as they came, neither centred nor divided, (n, d)."""
        table = self._matched(X)
        parts = [c.encode(self._values(c, table)) for c in self.encoded_ if c.features()]
        return np.concatenate(parts, axis=1)

    def level_counts(self, X: Any) -> NDArray[np.int64]:
        """How many training rows have the same level as each value, (m, columns).

        Levels are the categories of text, "there is a number" and "there is none". Zero is a level
        that training never has; a training row that is counted as 1 has a level that no other
        training row has. Columns in which nearly every row has another text count as known.
        """
        table = self._matched(X)
        place = {name: j for j, name in enumerate(self.columns_)}
        counts = np.full((len(table), len(self.columns_)), self.n_samples_)
        for column in self.encoded_:
            if column.name in table.columns:  # an empty one need not be there
                counts[:, place[column.name]] = column.counts(self._values(column, table))
        return counts

    @property
    def feature_names_(self) -> list[str]:
        """A name for every feature, such as ``age`` or ``town=Rome``."""
        return [name for column in self.encoded_ for name in column.features()]

    @property
    def feature_columns_(self) -> list[str]:
        """The column that every feature was made from."""
        return [column.name for column in self.encoded_ for _ in column.features()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "columns": [asdict(column) for column in self.encoded_],
            "order": self.columns_,
            "rows": self.n_samples_,
            "center": self.center_.tolist(),
            "unit": self.unit_.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Encoder:
        """Made again from :meth:`to_dict`."""
        encoder = cls()
        encoder.encoded_ = [
            CategoryColumn(**column) if "categories" in column else NumberColumn(**column)
            for column in values["columns"]
        ]
        encoder.named_, encoder.notes_, encoder.n_samples_ = True, (), values["rows"]
        encoder.columns_ = values["order"]
        encoder.center_, encoder.unit_ = np.array(values["center"]), np.array(values["unit"])
        return encoder

    def _matched(self, X: Any, name: str = "X", *, strict: bool = False) -> Table:
        """A table that has all columns in use, and with ``strict`` no others, named as in training.

        Columns without names count by their place, as in scikit-learn.
        """
        table = as_table(X, name)
        if (table.unnamed or not self.named_) and table.names != self.columns_:
            if len(table.columns) != len(self.columns_):
                raise ValueError(
                    f"{table.source} has {len(table.columns)} columns and the training data "
                    f"{len(self.columns_)}; both need the same columns in the same order"
                )
            columns = dict(zip(self.columns_, table.columns.values(), strict=True))
            table = replace(table, columns=columns)
        needed = [column.name for column in self.encoded_ if column.features()]
        lacking = [name for name in needed if name not in table.columns]
        extra = sorted(set(table.names) - set(self.columns_), key=table.names.index)
        parts = [f"it lacks {listed(lacking)}"] * bool(lacking)
        parts += [f"it also has {listed(extra)}"] * (strict and bool(extra))
        if parts:
            raise ValueError(
                f"the columns of {table.source} differ from those of the training data: "
                f"{' and '.join(parts)}; rename, add or drop columns so that both agree"
            )
        return table

    def _values(self, column: NumberColumn | CategoryColumn, table: Table) -> Column:
        """A column as training has it: text where that holds text, finite numbers otherwise."""
        values = table.columns[column.name]
        if isinstance(column, CategoryColumn):
            return as_text(values)
        if not column.rows:
            return np.where(missing_in(values), np.nan, 0.0)
        return _finite(values, column.name, table)


def units(x: Matrix) -> tuple[Matrix, Matrix]:
    """Centre and spread of every column, (d,) each; the spread of a constant is one.

    Both are the mean and the standard deviation of numbers moved to within five interquartile
    ranges of the quartiles; where the quartiles are equal, of all numbers.
    """
    center, unit = np.empty(x.shape[1]), np.empty(x.shape[1])
    for j in range(x.shape[1]):
        # sorted, so that sums come out the same in any order of rows; a quarter of each number, so
        # that a difference of two is no infinity
        column = np.sort(0.25 * x[:, j])
        low, middle, high = column[[len(column) // 4, len(column) // 2, (3 * len(column)) // 4]]
        away = column - middle
        if high > low:
            with np.errstate(over="ignore"):
                span = REACH * (high - low)
                away = np.clip(away, low - middle - span, high - middle + span)
        largest = max(float(np.abs(away[[0, -1]]).max()), TINY)
        share = away / largest  # squares of huge and tiny numbers are none
        spread = largest * share.std()
        noise = 8 * np.finfo(np.float64).eps * np.abs(column[[0, -1]]).max()  # 0.1 + 0.2 and 0.3
        unit[j] = 4 * spread if spread > noise else 1.0
        center[j] = 4 * (middle + largest * share.mean())
    return center, unit


def as_text(column: Column) -> Column:
    """Numbers as text, whole ones without a point; text as it is."""
    if column.dtype == object:
        return column
    numbers = column.astype(np.float64).tolist()
    text = [None if v != v else f"{v:.0f}" if v.is_integer() else repr(v) for v in numbers]
    return np.array(text, dtype=object)


def _numbers_as_text(text: Column, name: str, table: Table) -> bool:
    """Whether all texts are numbers; measured numbers with a few words among them are refused."""
    where = f"{table.source}: column {name!r} holds numbers"
    there = [(table.row_number(j), value) for j, value in enumerate(text) if value is not None]
    words = [(row, value) for row, value in there if not is_number(value)]
    if all(DECIMAL_COMMA.fullmatch(value) for _, value in there):
        row, value = there[0]
        raise ValueError(
            f"{where} with decimal commas, such as {value!r} in row {row}; write them with decimal "
            "points"
        )
    measured = sum(is_number(value) and not float(value).is_integer() for _, value in there)
    if words and len(words) <= MOST_WORDS * len(there) and measured > len(there) / 2:
        row, value = words[0]
        raise ValueError(
            f"{where} but for {len(words)} of {len(there)} rows, such as {value!r} in row {row}; "
            "leave missing values empty, or drop the column"
        )
    return not words


def _finite(values: Column, name: str, table: Table) -> Column:
    """Numbers of a column that may be all missing; text and infinite numbers are refused."""
    where = f"{table.source}: column {name!r} holds"
    if values.dtype != object:
        infinite = np.flatnonzero(np.isinf(values))
        if not len(infinite):
            return values
        first = table.row_number(infinite[0])
        raise ValueError(
            f"{where} infinite numbers (the first in row {first}); leave them empty instead"
        )
    there = np.flatnonzero(~missing_in(values))
    if not len(there):
        return np.full(len(values), np.nan)
    row = next((j for j in there if not is_number(values[j])), there[0])
    raise ValueError(
        f"{where} text ({values[row]!r} in row {table.row_number(row)}) where the training data "
        "hold numbers; leave missing values empty, or fit again and name it with --categorical"
    )
