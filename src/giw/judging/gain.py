"""What a stack gained over plain training, and what more labels would add, by left-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t
from sklearn.base import clone
from sklearn.utils.multiclass import type_of_target

from giw.checks import as_generator
from giw.estimators.inputs import rows_of
from giw.estimators.stack import folds_of
from giw.judging.risk import classifies, risk_from_losses
from giw.judging.selection import left_out_losses

FEWEST = 16  # labels of which a quarter still says something
NAMES = {"training": "plain", "both tables": "both tables", "stack": "stack"}


def difference(
    new: NDArray[Any], old: NDArray[Any], *, confidence: float = 0.95
) -> tuple[float, tuple[float, float]]:
    """Mean of ``new - old`` at the same rows, (m,) each, with a confidence interval.

    Of right and wrong answers the interval is that of Agresti and Min [1]_, which also holds where
    few rows differ; of other numbers it is Student's.

    References
    ----------
    .. [1] Agresti and Min, Statistics in Medicine 24(5):729-740, 2005.
    """
    apart, m = np.asarray(new, dtype=np.float64) - np.asarray(old, dtype=np.float64), len(new)
    level = 0.5 + confidence / 2
    most = np.inf
    if np.isin(apart, (-1.0, 0.0, 1.0)).all():
        most = 1.0  # a difference of shares
        better, worse = (apart > 0).sum() + 0.5, (apart < 0).sum() + 0.5
        middle = (better - worse) / (m + 2)
        error = np.sqrt(better + worse - (better - worse) ** 2 / (m + 2)) / (m + 2)
        half = float(norm.ppf(level) * error)
    else:
        middle = apart.mean()
        half = float(t.ppf(level, m - 1) * apart.std(ddof=1) / np.sqrt(m)) if m > 1 else np.inf
    return float(apart.mean()), (float(max(middle - half, -most)), float(min(middle + half, most)))


@dataclass(frozen=True)
class Gain:
    """Left-out scores of simple models and of the stack.

    Attributes
    ----------
    scores : dict of str to float
        Of "plain" training, "both tables" and the "stack": accuracy, or squared error.
    interval : tuple of two floats
        95 % interval of the stack's.
    gain : float
        What the stack is better by than plain training.
    gain_interval : tuple of two floats
        95 % interval of that.
    points : int
        Left-out validation rows.
    """

    scores: dict[str, float]
    interval: tuple[float, float]
    gain: float
    gain_interval: tuple[float, float]
    points: int

    @property
    def is_told(self) -> bool:
        """Whether the rows tell the stack from plain training, for better or worse."""
        return not self.gain_interval[0] <= 0 <= self.gain_interval[1]

    def summary(self) -> str:
        """Two sentences."""
        listed = ", ".join(f"{name} {value:.2f}" for name, value in self.scores.items())
        low, high = self.gain_interval
        by = f"{self.gain:+.3f} ({low:+.3f} to {high:+.3f})"
        told = f"Gained over plain training: {by}."
        if not self.is_told:
            told = f"Plain training is as good, as far as {self.points} rows can tell: {by}."
        elif self.gain < 0:
            told = f"Plain training is better; keep it: {by}."
        return (
            f"Left-out validation rows: {listed} ({self.interval[0]:.2f} to "
            f"{self.interval[1]:.2f}).\n{told}"
        )


def gained(model: Any) -> Gain | None:
    """What a fitted stack gained over plain training; None where nothing was left out.

    Parameters
    ----------
    model : giw.ReweightedClassifier or giw.ReweightedRegressor
        A fitted one.
    """
    each = left_out_losses(model)
    if each is None or "training" not in each or len(each["stack"]) < 2:
        return None
    sides = each["stack"], each["training"]
    gain, interval = difference(*(sides if classifies(model) else sides[::-1]))
    scores = {name: float(each[key].mean()) for key, name in NAMES.items() if key in each}
    risk = risk_from_losses(each["stack"])
    return Gain(scores, risk.interval, gain, interval, risk.points)


def expected_gain(
    model: Any, X: Any, y: Any, X_val: Any, y_val: Any, more: int, *, random_state: Any = 0
) -> tuple[float, tuple[float, float]] | None:
    r"""Accuracy that ``more`` random labels are expected to add, with a 95 % interval.

    Copies of the model are fitted with a quarter and with a half of the validation rows and judged
    on the other half. If accuracy with m labels is :math:`a - b / m`, then from m to m + n labels

    .. math:: b \Big(\frac1m - \frac1{m+n}\Big) = \tfrac12 \frac{n}{m + n} (A_{m/2} - A_{m/4}) .

    The interval is that of rows, or wider where both halves say different things: each half has
    one fit of either size, and fits vary too. None with fewer than 16 validation rows, or numbers.

    Parameters
    ----------
    model : giw.ReweightedClassifier
        Unfitted, or fitted; copied.
    X, y, X_val, y_val : training and validation data
    more : int
        Labels to come.
    random_state : int, numpy generator or None, default=0
        Which rows are in which quarter.
    """
    m = len(y_val)
    if m < FEWEST or type_of_target(y_val).startswith("continuous"):
        return None
    quarter = folds_of(np.asarray(y_val), 4, as_generator(random_state))
    right = np.zeros((2, m))
    for half in (0, 1):
        judged = quarter // 2 != half
        for j, seen in enumerate((quarter == 2 * half, ~judged)):
            rows = np.flatnonzero(seen)
            fitted = clone(model).fit(X, y, X_val=rows_of(X_val, rows), y_val=y_val[rows])
            right[j, judged] = fitted.predict(rows_of(X_val, judged)) == y_val[judged]
    gain, (low, high) = difference(right[1], right[0])
    halves = [float((right[1] - right[0])[quarter // 2 == half].mean()) for half in (0, 1)]
    error = max((high - low) / 2, 1.96 * abs(halves[0] - halves[1]) / 2)
    part = 0.5 * more / (m + more)
    return part * gain, (part * (gain - error), part * (gain + error))
