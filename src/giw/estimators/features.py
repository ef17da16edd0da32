"""Both tables as numbers, and the support split of the second one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from giw.estimators.rows import rows_of
from giw.support import SupportSplit, SupportSplitter
from giw.tables import Encoder

Vector = NDArray[np.float64]
FEWEST_TRAINING_ROWS = 10  # fewer cannot tell inside from outside


@dataclass(frozen=True)
class Encoded:
    """Features of both tables and the split of the target rows; none by too few training rows."""

    encoder: Encoder
    z: Vector  # (n, d)
    z_target: Vector  # (k, d)
    split: SupportSplit | None

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Target rows inside the training support, (k,); all of them without a split."""
        if self.split is None:
            return np.ones(len(self.z_target), dtype=bool)
        return np.asarray(self.split.inside, dtype=bool)


def encode_and_split(
    X: Any,
    X_target: Any,
    generator: np.random.Generator,
    *,
    y: NDArray[Any] | None = None,
    y_target: NDArray[Any] | None = None,
    splitter: SupportSplitter | None = None,
    most: int = 10_000,
) -> Encoded:
    """Features of training and target rows, and which of the latter are inside.

    Parameters
    ----------
    y, y_target : arrays of shape (n,) and (k,), optional
        Class labels of both; the split compares points of a class with each other.
    splitter : SupportSplitter, optional
        The default one if not given.
    most : int, default=10000
        Training rows that the splitter sees; more of them take longer.
    """
    encoder = Encoder().fit(X, X_target)
    z, z_target = encoder.transform(X), encoder.transform(X_target)
    if len(z) < FEWEST_TRAINING_ROWS:
        return Encoded(encoder, z, z_target, None)
    rows = generator.permutation(len(z))[:most]
    fitted = fitted_splitter(
        z[rows], encoder.level_counts(rows_of(X, rows)), None if y is None else y[rows],
        splitter=splitter, random_state=int(generator.integers(2**31)),
    )  # fmt: skip
    split = fitted.split(representations(z_target, encoder.level_counts(X_target)), y_target)
    return Encoded(encoder, z, z_target, split)


def fitted_splitter(
    z: Vector,
    levels: NDArray[np.int64],
    y: NDArray[Any] | None = None,
    *,
    splitter: SupportSplitter | None = None,
    random_state: Any = 0,
) -> SupportSplitter:
    """The splitter of a table, for fits, diagnoses and judging alike.

    Parameters
    ----------
    z, levels : arrays of shape (n, d) and (n, columns)
        From :meth:`giw.tables.Encoder.transform` and ``level_counts``. Other rows are split as
        :func:`representations` of theirs.
    y : array of shape (n,), optional
        Class labels.
    splitter : SupportSplitter, optional
        One with settings of its own, which is copied; ``random_state`` is that of the default one.
    """
    if splitter is None:
        level = max(0.05, 1.5 / len(z))
        splitter = SupportSplitter(level=level, most_held_out=1_000, random_state=random_state)
    return clone(splitter).fit(representations(z, levels), y)


def representations(z: Vector, levels: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """What the splitter of a table compares."""
    return {"numbers": z.astype(np.float32), "levels": levels}
