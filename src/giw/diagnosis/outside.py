"""Which columns put validation rows outside the training support?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from giw.diagnosis.data import Data, Side
from giw.diagnosis.findings import Floats, Ints, ListedRow, short
from giw.support import nearest
from giw.tables.table import Column, missing_in


def unusual_distance(
    z_train: Floats,  # (n, d)
    z: Floats,  # (m, d)
    generator: np.random.Generator,
    neighbours: int = 5,
    baseline: int = 1_000,  # training rows that say what distance is ordinary
) -> Floats:  # (m, d)
    r"""Squared distance to the nearest training rows, by feature, beyond what is ordinary.

    .. math:: e_{jf} = \Big( \frac1k \sum_{i \in N(j)} (z_{jf} - z_{if})^2 - b_f \Big)_+

    where :math:`b_f` is the 95 % quantile of the same over training rows and *their* nearest
    neighbours. Without it, noisy features that differ between any two rows would be blamed.
    """

    def gaps(points: Floats, near: Ints) -> Floats:
        return np.mean([np.square(points - z_train[rows]) for rows in near.T], axis=0)

    some = z_train[generator.permutation(len(z_train))[:baseline]]
    k = min(neighbours, max(1, len(z_train) - 1))
    own = nearest(some, z_train, k + 1)[1][:, 1:]  # itself comes first
    ordinary = np.quantile(gaps(some, own), 0.95, axis=0)  # (d,)
    return np.maximum(gaps(z, nearest(z, z_train, k)[1]) - ordinary, 0)


def by_column(excess: Floats, columns: Sequence[str]) -> tuple[list[str], Floats]:
    """Columns in their order, and the share of each in every row's total, (m, number of columns).

    A row without any excess has shares of zero.
    """
    names = list(dict.fromkeys(columns))
    total = np.stack([excess[:, np.array(columns) == name].sum(axis=1) for name in names], axis=1)
    whole = total.sum(axis=1, keepdims=True)
    return names, np.divide(total, whole, out=np.zeros_like(total), where=whole > 0)


def explain_outside(
    data: Data,
    train: Side,
    outside: Side,  # validation rows to explain, strangest first
    p_value: Floats,  # one for each of them
    label_unseen: NDArray[np.bool_],
    generator: np.random.Generator,
    least: float = 0.1,  # of a row's unusual distance that makes a column a reason
) -> tuple[tuple[ListedRow, ...], tuple[tuple[str, float], ...]]:
    """The rows with their reasons, and the mean share of every column over all of them."""
    if not len(outside):
        return (), ()
    excess = unusual_distance(train.z, outside.z, generator)  # (q, d)
    names, share = by_column(excess, data.encoder.feature_columns_)
    mean = share[~label_unseen].mean(axis=0) if (~label_unseen).any() else share.mean(axis=0)
    order = np.argsort(-mean, kind="stable")
    blamed = tuple((names[j], float(mean[j])) for j in order if mean[j] > 0)
    usual = {name: _usual(column) for name, column in train.table.columns.items()}
    listed = []
    for q, row in enumerate(outside.row.tolist()):
        strongest = [j for j in np.argsort(-share[q], kind="stable") if share[q, j] > least]
        columns = [f.column for f in data.facts if f.is_news and f.column and row in f.rows]
        columns = list(dict.fromkeys([*columns, *(names[j] for j in strongest)]))[:3]
        label = None if outside.y is None else data.classes[outside.y[q]]
        reasons = {"(label)": (str(label), "not in training")} if label_unseen[q] else {}
        for name in columns:
            known = bool(outside.levels[q, data.encoder.columns_.index(name)])
            reasons[name] = _reason(outside.table.columns[name][q], usual[name], known)
        said = "; ".join(
            f"{'label' if name == '(label)' else name} {why}" for name, (_, why) in reasons.items()
        )
        first, (value, _) = next(iter(reasons.items()), ("", ("", "")))
        text = said or "an unusual combination of ordinary values"
        of_row = ("validation", row, row + 2, float(p_value[q]), first, value, label, None, None)
        listed.append(ListedRow(*of_row, text, tuple(columns)))
    return tuple(listed), blamed


def _usual(column: Column) -> str:
    """Where 98 % of the training rows lie, of a column of numbers."""
    if column.dtype == object or missing_in(column).all():
        return ""
    low, high = np.nanquantile(column, [0.01, 0.99])
    return f" (usually {short(low)} to {short(high)})"


def _reason(value: str | float | None, usual: str, known: bool) -> tuple[str, str]:
    """What stands there, exactly, and as a reason: ``93 (usually 18 to 65)``."""
    if value is None or value != value:
        return "missing", "missing"
    if usual:
        return repr(float(value)).removesuffix(".0"), f"{short(float(value))}{usual}"
    return str(value), str(value) if known else "not in training"
