"""Both tables and their labels in the forms that a diagnosis asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_labels
from giw.diagnosis.facts import facts
from giw.diagnosis.findings import UNSEEN, Finding, some
from giw.tables import Encoder, Table, TableSample, as_table
from giw.tables.encoder import as_text

BY_CHANCE = (*UNSEEN, "range", "duplicates")  # facts that dealing the rows at random may explain
MOST_CLASSES, MOST_NUMBERS = 200, 20  # different labels that are classes whatever their share
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labels:
    """Classes of both sides as codes, None where there are no labels, and how often they occur."""

    train: Ints | None = None
    val: Ints | None = None
    names: tuple[str, ...] = ()
    train_counts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    val_counts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def both(self) -> bool:
        """Whether both sides have labels."""
        return self.train is not None and self.val is not None

    def shares(self) -> tuple[tuple[str, float, float], ...]:
        """Class, its share in training, its share in validation."""
        if not self.both:
            return ()
        train, val = (side / side.sum() for side in (self.train_counts, self.val_counts))
        return tuple(zip(self.names, train.tolist(), val.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Data:
    """Training and validation rows as tables and as numbers.

    Attributes
    ----------
    train, val : Table
        The columns that are compared; validation in the units of training.
    z_train, z_val : arrays of shape (n, d) and (m, d)
        From :meth:`giw.tables.Encoder.transform`.
    levels_train, levels_val : arrays of shape (n, c) and (m, c)
        From :meth:`giw.tables.Encoder.level_counts`, in the order of ``level_columns``.
    columns : list of str
        The column of the table that each feature was made from.
    labels : Labels
    names : list of str
        All columns of training, also those that were left out.
    facts : tuple of Finding
        Of the tables as they came.
    notes : tuple of str
    """

    train: Table
    val: Table
    z_train: Floats
    z_val: Floats
    levels_train: Ints
    levels_val: Ints
    level_columns: list[str]
    columns: list[str]
    labels: Labels
    names: list[str]
    facts: tuple[Finding, ...]
    notes: tuple[str, ...]

    def together(self, train_rows: Ints, val_rows: Ints) -> tuple[Floats, Floats, list[str]]:
        """Some rows of both sides by an encoder of both, and the column of each feature.

        An encoder of training rows alone gives itself away: no training row has a category that it
        does not know, and a model that tells the sides apart would learn that.
        """
        sides = [rows_of(self.train, train_rows), rows_of(self.val, val_rows)]
        both = {name: np.concatenate([s.columns[name] for s in sides]) for name in sides[0].columns}
        encoder = Encoder().fit(Table(both))
        return encoder.transform(sides[0]), encoder.transform(sides[1]), encoder.feature_columns_


def rows_of(table: Table, rows: Ints) -> Table:
    """Some rows of a table."""
    columns = {name: column[rows] for name, column in table.columns.items()}
    return Table(columns, table.source, dates=table.dates)


def read(
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    feature_names: Sequence[str] | None = None,
    groups: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None),
) -> Data:
    """Numbers from whatever came; facts are told of it, and what can be repaired is.

    Columns that cannot be compared, or that tell every row or moment apart, are left out; a column
    of another unit is converted to that of training.
    """
    samples = [side if isinstance(side, TableSample) else None for side in (X, X_val)]
    train, val = (
        as_table(value, name, column_names=feature_names)
        for value, name in ((X, "X"), (X_val, "X_val"))
    )
    if not len(val):
        raise ValueError(f"{val.source} has no rows; a comparison needs at least one")
    values = _label_values(y, y_val, len(train), len(val))
    known: tuple[Finding, ...] = ()
    names = train.names
    if not (train.unnamed and val.unnamed and len(train.names) != len(val.names)):
        known = facts(train, val, *values)  # else the encoder says what is wrong
        if any(names is not None for names in groups):
            known = _by_groups(known, (train, val), values, groups)
        lost = {f.column for f in known if f.aside}
        if not set(train.names) - lost:
            why = " ".join(some((f.text for f in known if f.aside), 3))
            raise ValueError(
                f"{train.source} and {val.source} have no column that can be compared. {why}"
            )
        by = {f.column: f.factor for f in known if f.kind == "unit"}
        train, val = (
            replace(table, columns={k: v for k, v in table.columns.items() if k not in lost})
            for table in (train, val)
        )
        codes = {k for k, column in train.columns.items() if column.dtype == object}
        val = replace(val, columns={
            k: as_text(v) if k in codes else v / by[k] if k in by else v
            for k, v in val.columns.items()
        })  # fmt: skip
    encoder = Encoder().fit(train, val)
    return Data(
        train, val,
        encoder.transform(train), encoder.transform(val),
        encoder.level_counts(train), encoder.level_counts(val), encoder.columns_,
        encoder.feature_columns_,
        _as_classes(*values, samples),
        names,
        known,
        (*train.notes, *val.notes, *encoder.notes_),
    )  # fmt: skip


def _by_groups(
    known: tuple[Finding, ...],
    tables: tuple[Table, Table],
    values: tuple[Any, Any],
    groups: tuple[NDArray[Any] | None, NDArray[Any] | None],
) -> tuple[Finding, ...]:
    """Facts of all rows with the p-values of one row of each group: rows of a group are alike."""
    firsts = [
        np.arange(len(table)) if names is None else np.sort(np.unique(names, return_index=True)[1])
        for names, table in zip(groups, tables, strict=True)
    ]
    train, val = (rows_of(table, rows) for table, rows in zip(tables, firsts, strict=True))
    y, y_val = (v if v is None else v[rows] for v, rows in zip(values, firsts, strict=True))
    few = {(f.kind, f.column): f for f in facts(train, val, y, y_val)}
    told = []
    for fact in known:
        same = few.get((fact.kind, fact.column))
        if fact.kind in BY_CHANCE and same is not None:
            told.append(replace(fact, p_value=same.p_value, found=same.found))
        elif fact.kind in UNSEEN and not fact.aside:
            told.append(replace(fact, p_value=1.0, found=False))
        elif fact.kind not in BY_CHANCE:
            told.append(fact)
    return tuple(sorted(told, key=lambda fact: not fact.found))


def _label_values(y: Any, y_val: Any, n: int, m: int) -> tuple[Any, Any]:
    """Labels of both sides as they came, checked."""
    if y is None and y_val is not None:
        raise ValueError("y_val came without y; pass the training labels too")
    train: Any = None if y is None else as_labels(y, n, "y")
    val: Any = None if y_val is None else as_labels(y_val, m, "y_val")
    if val is not None and (train.dtype.kind in "USO") != (val.dtype.kind in "USO"):
        raise ValueError(
            f"y holds {train.dtype} and y_val {val.dtype}: the same class must have the same label "
            "in both; convert one of them"
        )
    return train, val


def _as_classes(train: Any, val: Any, samples: Sequence[TableSample | None]) -> Labels:
    """Codes and counts of labels; counts are those of the whole file where a sample was read."""
    if train is None:
        return Labels()
    both = train if val is None else np.concatenate([train, val])
    classes, code = np.unique(both, return_inverse=True)
    most = MOST_NUMBERS if both.dtype.kind in "iuf" else MOST_CLASSES
    if len(classes) > max(most, 0.2 * len(both)):
        raise ValueError(
            f"the label has {len(classes)} different values in {len(both)} rows: that is a number "
            "and not a class; group it first, for example with pandas.cut"
        )
    sides = np.split(code.reshape(-1).astype(np.int64), [len(train)])
    counts = [
        np.bincount(side, minlength=len(classes))
        if sample is None or sample.label_counts is None
        else np.array([sample.label_counts.get(value, 0) for value in classes.tolist()])
        for side, sample in zip(sides, samples, strict=True)
    ]
    names = tuple(map(str, classes.tolist()))
    return Labels(sides[0], None if val is None else sides[1], names, *counts)
