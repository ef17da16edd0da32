"""Both tables and their labels in the forms that a diagnosis asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from giw.checks import as_labels, refuse_many_classes
from giw.diagnosis.facts import facts
from giw.diagnosis.findings import UNSEEN, Finding, Floats, Ints, some
from giw.support.scores import MANY_VALUES
from giw.tables import Encoder, Table, as_table
from giw.tables.encoder import as_text

BY_CHANCE = (*UNSEEN, "range", "duplicates")  # facts that dealing the rows at random may explain


@dataclass(frozen=True, eq=False)
class Side:
    """Rows of one table."""

    table: Table  # the columns that are compared; those of validation in the units of training
    z: Floats  # (n, d) from Encoder.transform
    levels: Ints  # (n, columns) from Encoder.level_counts
    y: Ints | None  # (n,) labels as places in Data.classes
    group: NDArray[Any] | None  # (n,)
    row: Ints  # (n,) where the rows are in the user's table or file

    def __len__(self) -> int:
        return len(self.row)

    @property
    def split_by(self) -> dict[str, NDArray[Any]]:
        """What the splitter sees."""
        return {"numbers": self.z.astype(np.float32), "levels": self.levels}

    def at(self, rows: Any) -> Side:
        """Some of the rows."""
        y, group = (None if of is None else of[rows] for of in (self.y, self.group))
        table = rows_of(self.table, rows)
        return Side(table, self.z[rows], self.levels[rows], y, group, self.row[rows])


@dataclass(frozen=True, eq=False)
class Data:
    """Both sides, and what is known of them."""

    train: Side
    val: Side
    total: tuple[int, int]  # rows of both tables, or of the files that they are samples of
    classes: tuple[str, ...]
    counts: Ints  # (2, c) how often each class occurs, of samples in the whole file
    encoder: Encoder  # of training rows
    names: list[str]  # all columns of training, also those that were left out
    facts: tuple[Finding, ...]  # of the tables as they came, with rows as the user counts them
    notes: tuple[str, ...]


def rows_of(table: Table, rows: Any) -> Table:
    """Some rows of a table."""
    columns = {name: column[rows] for name, column in table.columns.items()}
    return Table(columns, table.source, dates=table.dates)


def encoded_together(train: Table, val: Table) -> tuple[Floats, Floats, list[str]]:
    """Both tables by an encoder of both, and the column of each feature.

    An encoder of training rows alone gives itself away: no training row has a category that it
    does not know, and a model that tells the sides apart would learn that.
    """
    both = {k: np.concatenate([c, val.columns[k]]) for k, c in train.columns.items()}
    encoder = Encoder().fit(Table(both))
    return encoder.transform(train), encoder.transform(val), encoder.feature_columns_


def read(
    X: Any, y: Any, X_val: Any, y_val: Any, feature_names: Sequence[str] | None = None,
    groups: Any = None, groups_val: Any = None,
) -> Data:  # fmt: skip
    """Numbers from whatever came; facts are told of it, and what can be repaired is.

    Columns that cannot be compared, or that tell every row or moment apart, are left out; a column
    of another unit is converted to that of training.
    """
    train, val = (
        as_table(t, n, column_names=feature_names) for t, n in ((X, "X"), (X_val, "X_val"))
    )
    if not len(val):
        raise ValueError(f"{val.source} has no rows; a comparison needs at least one")
    if y is None and y_val is not None:
        raise ValueError("y_val came without y; pass the training labels too")
    labels = [
        None if side is None else as_labels(side, len(table), name)
        for side, table, name in ((y, train, "y"), (y_val, val, "y_val"))
    ]
    group = [
        None if of is None else _names(of, len(table), name)
        for of, table, name in ((groups, train, "groups"), (groups_val, val, "groups_val"))
    ]
    known: tuple[Finding, ...] = ()
    names = train.names
    if not (train.unnamed and val.unnamed and len(train.names) != len(val.names)):
        known = _known(train, val, labels, group)  # else the encoder says what is wrong
        train, val = _comparable(train, val, known)
    encoder = Encoder().fit(train, val)
    codes, classes, counts = _as_classes(labels, (train, val))
    sides, total = [], []
    for table, y_of, of in zip((train, val), codes, group, strict=True):
        row = np.arange(len(table)) if table.rows is None else table.rows
        z, levels = encoder.transform(table), encoder.level_counts(table)
        sides.append(Side(table, z, levels, y_of, of, row))
        total.append(table.total or len(table))
    rows = sides[1].row
    return Data(
        sides[0], sides[1], (total[0], total[1]), classes, counts, encoder, names,
        tuple(replace(f, rows=tuple(rows[list(f.rows)].tolist())) for f in known),
        (*train.notes, *val.notes, *encoder.notes_),
    )  # fmt: skip


def _names(groups: Any, n: int, name: str) -> NDArray[Any]:
    """Names of groups, checked."""
    names = np.asarray(groups).astype(str)
    if names.shape != (n,):
        raise ValueError(f"need one group per row, got shape {names.shape} for {n} rows in {name}")
    return names


def _known(train: Table, val: Table, labels: list[Any], groups: list[Any]) -> tuple[Finding, ...]:
    """Facts of all rows; rows of a group are alike, and copies: chance is asked of one of each."""
    sides, whole = zip((train, val), groups, strict=True), train if groups[0] is None else None
    one, one_val = (once(_keys(t) if of is None else of) for t, of in sides)
    if len(one) < len(train) and groups[0] is None:  # facts of validation rows stay the same
        train, y = rows_of(train, one), labels[0]
        labels, one = [y if y is None else y[one], labels[1]], np.arange(len(one))
    known = facts(train, val, *labels, whole=whole)
    if (len(one), len(one_val)) == (len(train), len(val)):
        return known
    y, y_val = (y if y is None else y[rows] for y, rows in zip(labels, (one, one_val), strict=True))
    few = facts(rows_of(train, one), rows_of(val, one_val), y, y_val, whole=whole)
    same = {(fact.kind, fact.column): fact for fact in few}
    told = []
    for fact in known:
        if fact.kind in BY_CHANCE and not fact.aside:
            alike = same.get((fact.kind, fact.column), Finding(fact.kind, p_value=1.0))
            fact = replace(fact, p_value=alike.p_value, found=alike.found)
        if fact.found or fact.kind in UNSEEN:
            told.append(fact)
    return tuple(sorted(told, key=lambda fact: not fact.found))


def once(keys: NDArray[Any]) -> Ints:
    """The first row of each key, in order."""
    return np.sort(np.unique(keys, return_index=True)[1])


def _keys(table: Table) -> NDArray[Any]:
    """The same for equal rows, (n,); another for each where rows repeat by nature."""
    frame = pd.DataFrame(dict(enumerate(table.columns.values())))
    if frame.empty or frame.nunique().max() <= MANY_VALUES:
        return np.arange(len(table))
    return pd.util.hash_pandas_object(frame, index=False).to_numpy()


def _comparable(train: Table, val: Table, known: Sequence[Finding]) -> tuple[Table, Table]:
    """Both tables without columns that cannot be compared, validation in units of training."""
    lost = {f.column for f in known if f.aside}
    if not set(train.names) - lost:
        why = " ".join(some((f.text for f in known if f.aside), 3))
        raise ValueError(
            f"{train.source} and {val.source} have no column that can be compared. {why}"
        )
    factor = {f.column: f.factor for f in known}
    kept, others = {}, {}
    for name in (name for name in train.names if name not in lost):
        kept[name], others[name] = train.columns[name], val.columns[name]
        if object in (kept[name].dtype, others[name].dtype):  # one of them may be empty
            kept[name], others[name] = as_text(kept[name]), as_text(others[name])
        elif factor.get(name, 1.0) != 1:
            others[name] = others[name] / factor[name]
    return replace(train, columns=kept), replace(val, columns=others)


def _as_classes(
    labels: list[Any], tables: Sequence[Table]
) -> tuple[list[Ints | None], tuple[str, ...], Ints]:
    """Codes, names and counts of labels; counts are those of the whole file where it is known."""
    train, val = labels
    if train is None:
        return [None, None], (), np.zeros((2, 0), dtype=np.int64)
    both = train
    if val is not None:
        if (train.dtype.kind in "USO") != (val.dtype.kind in "USO"):
            raise ValueError(
                f"y holds {train.dtype} and y_val {val.dtype}: the same class must have the same "
                "label in both; convert one of them"
            )
        both = np.concatenate([train, val])
    classes, code = np.unique(both, return_inverse=True)
    refuse_many_classes(both, len(classes))
    sides = np.split(code.reshape(-1).astype(np.int64), [len(train)])
    counts = [
        np.bincount(side, minlength=len(classes))
        if table.label_counts is None
        else np.array([table.label_counts.get(value, 0) for value in classes.tolist()])
        for side, table in zip(sides, tables, strict=True)
    ]
    codes = [sides[0], None if val is None else sides[1]]
    return codes, tuple(map(str, classes.tolist())), np.stack(counts)
