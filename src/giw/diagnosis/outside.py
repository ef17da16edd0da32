"""Which validation rows lie outside the training support, and which columns put them there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from giw.diagnosis.data import Data
from giw.diagnosis.findings import short
from giw.diagnosis.labels import ListedRow
from giw.support import nearest
from giw.tables.table import missing_in

NEIGHBOURS = 5
BASELINE_ROWS = 1_000  # training rows that say what distance is ordinary
MOST_REASONS = 3
LEAST_SHARE = 0.1  # of a row's unusual distance that makes a column a reason
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def unusual_distance(
    z_train: Floats,  # (n, d)
    z: Floats,  # (m, d)
    generator: np.random.Generator,
) -> Floats:  # (m, d)
    r"""Squared distance to the nearest training rows, by feature, beyond what is ordinary.

    .. math:: e_{jf} = \Big( \frac1k \sum_{i \in N(j)} (z_{jf} - z_{if})^2 - b_f \Big)_+

    where :math:`b_f` is the 95 % quantile of the same over training rows and *their* nearest
    neighbours. Without it, noisy features that differ between any two rows would be blamed.
    """

    def gaps(points: Floats, near: Ints) -> Floats:
        total = np.zeros_like(points)
        for rows in near.T:
            total += np.square(points - z_train[rows])
        return total / near.shape[1]

    some = z_train[generator.permutation(len(z_train))[:BASELINE_ROWS]]
    k = min(NEIGHBOURS, max(1, len(z_train) - 1))
    own = nearest(some, z_train, k + 1)[1][:, 1:]  # itself comes first
    ordinary = np.quantile(gaps(some, own), 0.95, axis=0)  # (d,)
    return np.maximum(gaps(z, nearest(z, z_train, k)[1]) - ordinary, 0)


def by_column(excess: Floats, columns: Sequence[str]) -> tuple[list[str], Floats]:
    """Columns in their order, and the share of each in every row's total, (m, number of columns).

    A row without any excess has shares of zero.
    """
    names = list(dict.fromkeys(columns))
    total = np.zeros((len(excess), len(names)))
    for f, column in enumerate(columns):
        total[:, names.index(column)] += excess[:, f]
    whole = total.sum(axis=1, keepdims=True)
    return names, np.divide(total, whole, out=np.zeros_like(total), where=whole > 0)


def explain_outside(
    data: Data,
    *,
    train_rows: Ints,  # training rows in use
    val_rows: Ints,  # validation rows to explain, strangest first
    p_value: Floats,  # one per row to explain
    label_unseen: NDArray[np.bool_],
    numbers: Ints,  # of all validation rows, as the user counts them
    generator: np.random.Generator,
) -> tuple[tuple[ListedRow, ...], tuple[tuple[str, float], ...]]:
    """The rows with their reasons, and the mean share of every column over all of them."""
    if not len(val_rows):
        return (), ()
    excess = unusual_distance(data.z_train[train_rows], data.z_val[val_rows], generator)  # (q, d)
    names, share = by_column(excess, data.columns)
    mean = share[~label_unseen].mean(axis=0) if (~label_unseen).any() else share.mean(axis=0)
    order = np.argsort(-mean, kind="stable")
    blamed = tuple((names[j], float(mean[j])) for j in order if mean[j] > 0)
    labels = data.labels
    usual = {name: _usual(data, name, train_rows) for name in names}
    listed = []
    for q, row in enumerate(val_rows):
        strongest = [j for j in np.argsort(-share[q], kind="stable") if share[q, j] > LEAST_SHARE]
        columns = [f.column for f in data.facts if f.is_news and f.column and row in f.rows]
        columns = list(dict.fromkeys([*columns, *(names[j] for j in strongest)]))[:MOST_REASONS]
        label = None if labels.val is None else labels.names[labels.val[row]]
        reasons = ["label not in training"] * bool(label_unseen[q])
        reasons += [f"{name} {_in_words(data, int(row), name, usual[name])}" for name in columns]
        first = "(label)" if label_unseen[q] or not columns else columns[0]
        value = str(label) if label_unseen[q] else _value(data, int(row), first) if columns else ""
        text = "; ".join(reasons) or "an unusual combination of ordinary values"
        number = int(numbers[row])
        listed.append(
            ListedRow("validation", number, number + 2, float(p_value[q]),
                      first if reasons else "", value, label, None, None, text, tuple(columns))
        )  # fmt: skip
    return tuple(listed), blamed


def _usual(data: Data, name: str, rows: Ints) -> str:
    """Where 98 % of the training rows lie, of a column of numbers."""
    column = data.train.columns[name]
    if column.dtype == object:
        return ""
    low, high = np.nanquantile(column[rows], [0.01, 0.99])
    return f"{short(low)} to {short(high)}"


def _value(data: Data, row: int, name: str) -> str:
    """What stands there, exactly."""
    value = data.val.columns[name][row]
    if missing_in(data.val.columns[name][row : row + 1])[0]:
        return "missing"
    return value if isinstance(value, str) else repr(float(value)).removesuffix(".0")


def _in_words(data: Data, row: int, name: str, usual: str) -> str:
    """``93 (usually 18 to 65)`` or ``not in training``."""
    value = _value(data, row, name)
    if value == "missing":
        return value
    if usual:
        return f"{short(float(value))} (usually {usual})"
    known = data.levels_val[row, data.level_columns.index(name)]
    return value if known else "not in training"
