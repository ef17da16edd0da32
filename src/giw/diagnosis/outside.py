"""Which validation rows lie outside the training support, and which columns put them there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giw.diagnosis.features import Features
from giw.support import nearest
from giw.tables.encoder import UNSEEN

NEIGHBOURS = 5
BASELINE_ROWS = 1_000  # training rows that say what distance is ordinary
MOST_REASONS = 3
LEAST_SHARE = 0.1  # of a row's unusual distance that makes a column a reason
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Reason:
    """One column that makes a row strange.

    Attributes
    ----------
    column : str
    share : float
        Part of the row's unusual squared distance that lies in this column.
    words : str
        The value and what training holds there.
    """

    column: str
    share: float
    words: str


@dataclass(frozen=True)
class OutsideRow:
    """A validation row outside the training support.

    Attributes
    ----------
    row : int
        Its place in the validation data, from 0.
    p_value : float
        How often a training row is as far from the others as this one.
    label : str or None
    label_unseen : bool
        Whether the label alone puts it outside.
    reasons : tuple of Reason
        The columns that make it strange, the strongest first.
    """

    row: int
    p_value: float
    label: str | None
    label_unseen: bool
    reasons: tuple[Reason, ...]


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
    some = generator.permutation(len(z_train))[:BASELINE_ROWS]
    k = min(NEIGHBOURS, max(1, len(z_train) - 1))
    own = nearest(z_train[some], z_train, k + 1)[1][:, 1:]  # itself comes first
    near = nearest(z, z_train, k)[1]  # (m, k)
    ordinary = np.quantile(_gaps(z_train[some], z_train, own), 0.95, axis=0)  # (d,)
    return np.maximum(_gaps(z, z_train, near) - ordinary, 0)


def _gaps(z: Floats, z_train: Floats, near: Ints) -> Floats:
    """Mean squared difference to the neighbours, by feature, (m, d)."""
    total = np.zeros_like(z)
    for rows in near.T:
        total += np.square(z - z_train[rows])
    return total / near.shape[1]


def by_column(excess: Floats, columns: Sequence[str]) -> tuple[list[str], Floats]:
    """Columns in their order, and the share of each in every row's total, (m, number of columns).

    A row without any excess has shares of zero.
    """
    names = list(dict.fromkeys(columns))
    place = {name: j for j, name in enumerate(names)}
    total = np.zeros((len(excess), len(names)))
    for f, column in enumerate(columns):
        total[:, place[column]] += excess[:, f]
    whole = total.sum(axis=1, keepdims=True)
    return names, np.divide(total, whole, out=np.zeros_like(total), where=whole > 0)


def explain_outside(
    features: Features,
    *,
    train_rows: Ints,  # training rows in use
    val_rows: Ints,  # validation rows to explain, strangest first
    p_value: Floats,  # one per row to explain
    label: Sequence[str] | None,
    label_unseen: NDArray[np.bool_],
    most: int,
    generator: np.random.Generator,
) -> tuple[tuple[OutsideRow, ...], tuple[tuple[str, float], ...]]:
    """The rows with their reasons, and the mean share of every column over all of them."""
    if not len(val_rows):
        return (), ()
    excess = unusual_distance(
        features.z_train[train_rows], features.z_val[val_rows], generator
    )  # (q, d)
    names, share = by_column(excess, features.columns)
    mean = share[~label_unseen].mean(axis=0) if (~label_unseen).any() else share.mean(axis=0)
    blamed = tuple(
        (names[j], float(mean[j])) for j in np.argsort(-mean, kind="stable") if mean[j] > 0
    )
    low, high = np.quantile(features.raw_train[train_rows], [0.01, 0.99], axis=0)
    members = {name: [f for f, c in enumerate(features.columns) if c == name] for name in names}
    shown = []
    for q, row in enumerate(val_rows[:most]):
        strongest = [j for j in np.argsort(-share[q], kind="stable") if share[q, j] > LEAST_SHARE]
        reasons = tuple(
            Reason(
                names[j],
                float(share[q, j]),
                _in_words(features, int(row), members[names[j]], low, high),
            )
            for j in strongest[:MOST_REASONS]
        )
        shown.append(
            OutsideRow(
                int(row),
                float(p_value[q]),
                None if label is None else label[q],
                bool(label_unseen[q]),
                reasons,
            )
        )
    return tuple(shown), blamed


def _in_words(features: Features, row: int, members: list[int], low: Floats, high: Floats) -> str:
    """``age 93 (usually 18 to 65)`` or ``town not in training``."""
    column = features.columns[members[0]]
    values = features.raw_val[row, members]
    kinds = [features.names[f].removeprefix(f"{column}=") for f in members]
    if features.names[members[0]] == column:  # a number, perhaps with an indicator
        if len(members) > 1 and values[1]:
            return f"{column} missing"
        span = f"{_short(low[members[0]])} to {_short(high[members[0]])}"
        return f"{column} {_short(values[0])} (usually {span})"
    kind = kinds[int(values.argmax())]
    return f"{column} not in training" if kind == UNSEEN else f"{column} {kind.strip('()')}"


def _short(value: float) -> str:
    """Three digits, and no powers of ten where a person would not write them."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"
