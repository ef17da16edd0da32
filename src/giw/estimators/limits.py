r"""What a model knows of its limits: rows unlike all that it was fitted on, and prediction sets.

Sets are split conformal [1]_ on left-out validation rows, which come from where the model will be
used. With the score :math:`s_j = 1 - p(y_j \mid x_j)` of m such rows, under a model that has not
seen them, the set of a new row is

.. math:: \{ y : 1 - p(y \mid x) \le s_{(k)} \}, \qquad k = \lceil (m + 1)\, {\rm level} \rceil ,

and always holds the likeliest class. Of numbers the score is :math:`|y_j - f(x_j)|`. For
:math:`k > m` no row can be left out of any set: then sets hold everything.

References
----------
.. [1] Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, Springer, 2005.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import callers_level
from giw.support import SupportSplitter
from giw.tables import Encoder, Table, as_table
from giw.tables.encoder import as_text

Vector = NDArray[np.float64]
KEPT = 2_000  # rows of either table that a model keeps; a megabyte for sixty columns


def conformal_quantile(score: Vector, level: float) -> float:
    """The score that a new one does not exceed with probability ``level``; infinite of too few.

    Parameters
    ----------
    score : array of shape (m,)
        Exchangeable with that of the new row; a larger one is farther off.
    level : float
        Wanted coverage; more of it makes sets larger.
    """
    k = int(np.ceil(level * (len(score) + 1) - 1e-9))
    return float(np.sort(score)[k - 1]) if k <= len(score) else np.inf


def class_sets(
    probability: Vector,  # (k, c)
    left_out: Vector,  # (m, c)
    y: NDArray[np.int64],  # (m,) columns of the labels
    level: float,
) -> NDArray[np.bool_]:  # (k, c)
    """Classes in the prediction set of each row."""
    likeliest = np.argmax(probability, axis=1)[:, None] == np.arange(probability.shape[1])
    limit = conformal_quantile(1 - left_out[np.arange(len(y)), y], level)
    return likeliest | (1 - probability <= limit)


def intervals(found: Vector, left_out: Vector, y: Vector, level: float) -> Vector:
    """Lower and upper ends, (k, 2), of predicted numbers (k,) by left-out ones (m,)."""
    limit = conformal_quantile(np.abs(y - left_out), level)
    return np.stack([found - limit, found + limit], axis=1)


@dataclass(frozen=True)
class Reference:
    """Rows of both tables that a model keeps, to know rows again that are unlike all of them.

    Attributes
    ----------
    encoder : Encoder
        Of both tables together.
    z : array of shape (r, d)
        Rows as numbers.
    counts : int array of shape (r, columns)
        Rows of both tables that have the same level.
    is_val : bool array of shape (r,)
        Which of them are validation rows.
    """

    encoder: Encoder
    z: NDArray[np.float32]
    counts: NDArray[np.int64]
    is_val: NDArray[np.bool_]

    @classmethod
    def of(
        cls, X: Any, X_val: Any, *, most: int = KEPT, categorical: Sequence[str] = ()
    ) -> Reference:
        """A fixed random sample of at most ``most`` rows of either table."""
        tables = as_table(X, "X"), as_table(X_val, "X_val")
        both = _pooled(*tables)
        encoder = Encoder(categorical=categorical).fit(both)
        start, kept = 0, []
        for table in tables:
            order = np.random.default_rng(0).permutation(len(table))
            kept.append(start + np.sort(order[:most]))
            start += len(table)
        rows = np.concatenate(kept)
        some = replace(both, columns={name: c[rows] for name, c in both.columns.items()})
        is_val = np.repeat([False, True], [len(kept[0]), len(kept[1])])
        z = encoder.transform(some).astype(np.float32)
        return cls(encoder, z, encoder.level_counts(some), is_val)

    def outside(self, X: Any, level: float = 0.05) -> NDArray[np.bool_]:
        """Rows unlike all that are kept, (n,), by the split of ``giw.SupportSplitter``.

        A row whose nearest kept row is a validation row is ranked among validation rows, which are
        few and farther from each other.
        """
        rows = {"numbers": self.z, "levels": self.counts}
        splitter = SupportSplitter(level=level, most_held_out=1_000, random_state=0)
        splitter.fit(rows, self.is_val.astype(np.int64))
        z, counts = self.encode(X)
        return ~np.asarray(splitter.split({"numbers": z, "levels": counts}).inside)

    def encode(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """New rows as the kept ones: numbers (n, d), and counts of levels (n, columns)."""
        table = as_table(X, "X")
        z = self.encoder.transform(table).astype(np.float32)
        return z, self.encoder.level_counts(table)


def _pooled(first: Table, second: Table) -> Table:
    """Rows of both; a column that is text in either is text."""
    second = second if second.names == first.names else _renamed(second, first)
    columns = {}
    for name, column in first.columns.items():
        sides = [column, second.columns[name]]
        if len({side.dtype == object for side in sides}) > 1:
            sides = [as_text(side) for side in sides]
        columns[name] = np.concatenate(sides)
    return replace(first, columns=columns)


def _renamed(table: Table, other: Table) -> Table:
    """Columns without names count by their place."""
    if not (table.unnamed or other.unnamed):
        return table
    return replace(table, columns=dict(zip(other.names, table.columns.values(), strict=True)))


class KnowsLimits:
    """Gives a stack the methods ``outside`` and ``predict_set``."""

    def outside(self, X: Any, *, level: float = 0.05) -> NDArray[np.bool_]:
        """Rows outside the support of all training and validation rows, (n,).

        What the model predicts for them is a guess: no row like them was there to learn from.

        Parameters
        ----------
        X : table
            With the columns of the fit; of a model that ``giw fit`` has saved, as in its files.
        level : float, default=0.05
            Share of rows like those of the fit that are marked all the same; more of it marks more.
        """
        reference = getattr(self, "reference_", None)
        if reference is None:
            raise ValueError(
                "this model keeps no rows to compare with: it was fitted without validation data; "
                "fit it again with X_val"
            )
        return np.asarray(reference.outside(X, level))

    def predict_set(self, X: Any, *, level: float = 0.9) -> NDArray[Any]:
        """Prediction sets that hold the label with probability ``level`` where validation is from.

        Parameters
        ----------
        X : table
            Rows as in ``predict``.
        level : float, default=0.9
            Wanted coverage; more of it makes sets larger. With m left-out validation rows the
            coverage lies between it and it plus 1 / (m + 1), on average over such rows.

        Returns
        -------
        bool array of shape (n, c)
            Of a classifier: which of ``classes_`` are in the set of each row, at least one.
        array of shape (n, 2)
            Of a regressor: the ends of an interval.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        left: Any = getattr(self, "left_out_", None)
        if left is None:
            raise ValueError(
                "sets are made from left-out validation rows, and this model has none; fit it "
                "with X_val and y_val"
            )
        found = self._predictions(X)  # type: ignore[attr-defined]
        few = int(np.ceil(level / (1 - level) - 1e-9))
        if len(left.y) < few:
            warnings.warn(
                f"{len(left.y)} left-out validation rows cannot hold a level of {level:g}: sets "
                f"hold everything; it takes {few} rows",
                stacklevel=callers_level(),
            )
        if found.ndim == 1:
            return intervals(found, left.mixed, left.y, level)
        code = np.asarray(np.searchsorted(self.classes_, left.y), np.int64)  # type: ignore[attr-defined]
        return class_sets(found, left.mixed, code, level)
