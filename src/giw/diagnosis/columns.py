"""Every column of both tables: how far apart, by chance or not, and a small histogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from giw.diagnosis.findings import short
from giw.tables import Table
from giw.tables.table import Column, missing_in

Shares = tuple[tuple[str, float, float], ...]  # bin, share in training, share in validation


@dataclass(frozen=True)
class ColumnDrift:
    """One column in training and validation.

    ``distance`` is at most 1, and 0 where both tables are alike: of numbers the statistic of
    Kolmogorov and Smirnov, of text the total variation. ``p_value`` is corrected for the number of
    columns, and None where nothing was tested. ``behind_outside`` is the column's mean share of
    what makes the rows listed as outside unusual. ``shares`` has the two histograms.
    """

    column: str
    distance: float
    p_value: float | None
    behind_outside: float
    shares: Shares

    @property
    def words(self) -> str:
        """Both histograms for those who do not see them."""
        told = (f"{name} {100 * p:.0f} % and {100 * q:.0f} %" for name, p, q in self.shares)
        return f"{self.column} in training and in validation: {', '.join(told)}."


def compare_columns(
    train: Table, val: Table, p_value: Mapping[str, float], behind: Mapping[str, float],
    classes: Sequence[tuple[str, float, float]], prior: float | None,
) -> tuple[ColumnDrift, ...]:  # fmt: skip
    """All columns, the most surely and most strongly shifted first.

    Classes with their shares, and their p-value ``prior``, lead as column "(label)".
    """
    found = []
    for name, old in train.columns.items():
        told = (_categories if old.dtype == object else _numbers)(old, val.columns[name])
        found.append(ColumnDrift(name, told[0], p_value.get(name), behind.get(name, 0.0), told[1]))
    found.sort(key=lambda c: (1.0 if c.p_value is None else c.p_value, -c.distance))
    if classes:
        distance, shares = _common(classes)
        found.insert(0, ColumnDrift("(label)", distance, prior, 0.0, shares))
    return tuple(found)


def _common(shares: Sequence[tuple[str, float, float]], most: int = 8) -> tuple[float, Shares]:
    """Total variation, and the most frequent categories with all others in one."""
    order = sorted(shares, key=lambda s: -max(s[1:]))
    rest = order[most:]
    other = [("(other)", sum(s[1] for s in rest), sum(s[2] for s in rest))] if rest else []
    return sum(abs(p - q) for _, p, q in shares) / 2, (*order[:most], *other)


def _categories(train: Column, val: Column) -> tuple[float, Shares]:
    sides = [pd.Series(side, dtype=object).fillna("(missing)") for side in (train, val)]
    counts = [side.value_counts(normalize=True) for side in sides]
    both = pd.concat(counts, axis=1).fillna(0.0).sort_index()
    return _common(list(both.itertuples(name=None)))


def _numbers(train: Column, val: Column, bins: int = 12) -> tuple[float, Shares]:
    there = [side[~missing_in(side)] for side in (train, val)]
    gone = [1 - len(some) / len(side) for some, side in zip(there, (train, val), strict=True)]
    low, high = np.quantile(np.concatenate(there), [0.01, 0.99]) if sum(map(len, there)) else (0, 1)
    inner = np.unique(np.linspace(low, high, bins + 1)[1:-1])
    between = [f"{short(a)} to {short(b)}" for a, b in pairwise(inner)]
    names = [f"under {short(inner[0])}", *between, f"from {short(inner[-1])}"]
    shares = []
    for some, side in zip(there, (train, val), strict=True):
        count = np.bincount(np.searchsorted(inner, some, "right"), minlength=len(inner) + 1)
        shares.append((count / len(side)).tolist())
    told = list(zip(names, *shares, strict=True))
    distance = abs(gone[0] - gone[1])
    if all(map(len, there)):
        distance = max(distance, float(ks_2samp(*there, method="asymp").statistic))
    return distance, (*told, *[("(missing)", *gone)] * any(gone))
