"""Categories that training never has, and values missing where training has none missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from giw.support.combine import conformal_p


class Levels:
    """How rare an unseen level is where nothing shifts.

    A training row that is held out shows an unseen level where it alone has that level. Their
    share, column by column, is the score: a code with thousands of levels has many such rows, a
    column with three hospitals none.

    Parameters
    ----------
    counts : int array of shape (n, c)
        Training rows that have the same level as each training row, itself among them.
    """

    def __init__(self, counts: NDArray[np.int64]) -> None:
        lone = counts == 1
        self.lone_share = lone.mean(axis=0)  # (c,)
        self.score = self._score(lone)  # (n,) of held-out training rows

    def p_value(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of held-out training rows with an unseen level as rare as this one, or 1, (m,).

        ``counts`` of shape (m, c) says how many training rows have the same level.
        """
        score = self._score(counts == 0)
        return np.where(score > -1, conformal_p(score, self.score), 1.0)

    def flagged_share(self, level: float) -> float:
        """Share of held-out training rows whose p-value is at most ``level``."""
        p_value = conformal_p(self.score, self.score)
        return float(((self.score > -1) & (p_value <= level)).mean())

    def _score(self, unseen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Minus the share of the rarest kind of unseen level, or -1 without one."""
        return -np.where(unseen, self.lone_share, 1.0).min(axis=1)
