"""From scores and from unseen levels to p-values, and from several p-values to one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TIE = 1e-9  # scores that differ by less are equal: rounding must not break ties
MOST = 10.0  # times the median weight: a representation that hardly varies must not decide alone
TINY = 1e-12  # where held-out scores are equal, any other is far out
FARTHEST = 600.0  # times the mean excess, before numbers are too large


def conformal_p(
    score: NDArray[np.float64],  # (m,)
    held_out: NDArray[np.float64],  # (r,)
) -> NDArray[np.float64]:  # (m,)
    r"""Rank of each score among those of held-out training rows; a larger score is stranger.

    .. math:: p = \frac{1 + \#\{i : s_i \ge s\}}{1 + r}

    Ties count against strangeness, so that :math:`P(p \le u) \le u` for a point that is
    exchangeable with the held-out rows.
    """
    order = np.sort(held_out)
    return (1 + len(order) - np.searchsorted(order, score - TIE)) / (1 + len(order))


def evidence(
    score: NDArray[np.float64],  # (m,)
    held_out: NDArray[np.float64],  # (r,)
) -> NDArray[np.float64]:  # (m,)
    r"""Evidence of each score against "inside": the e-value :math:`1 / (2 \sqrt p)`.

    Beyond the largest held-out score, p goes on as an exponential tail with the mean excess of the
    :math:`\sqrt r` largest ones, so that a point which is far out in one representation outweighs
    all others. (Scores are logarithms of distances, and this is Hill's estimator.)
    """
    order, k = np.sort(held_out), math.ceil(math.sqrt(len(held_out)))
    excess = (order[-k:] - order[max(len(order) - k - 1, 0)]).mean() + TINY
    beyond = np.clip((score - order[-1]) / excess, 0, FARTHEST)
    return np.asarray(0.5 / np.sqrt(conformal_p(score, held_out) * np.exp(-beyond)))


def mean_evidence(
    each: Sequence[NDArray[np.float64]],  # K of shape (m,)
    variance: Sequence[float],  # (K,)
) -> NDArray[np.float64]:  # (m,)
    r"""Mean evidence of several representations, by inverse variance.

    .. math:: E = \sum_k v_k E_k, \qquad v_k \propto 1 / \sigma_k^2

    A mean of e-values is an e-value, however they depend on each other [1]_. One that is very large
    is enough, and many that are rather large are too. :math:`\sigma_k^2` is the variance of
    logarithms of distances: where they vary little, a point that is farther away by some factor
    says more.

    References
    ----------
    .. [1] Vovk and Wang, E-values: calibration, combination and applications, Annals of Statistics
       49:1736-1754, 2021.
    """
    spread = np.maximum(variance, np.median(variance) / MOST) + TINY
    share = spread.min() / spread
    return np.asarray(share / share.sum() @ np.stack(each))


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
        self.lone_share = (counts == 1).mean(axis=0)  # (c,)
        self.score = self._score(counts == 1)  # (n,) of held-out training rows

    def p_value(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of held-out training rows with an unseen level as rare as this one, or 1, (m,).

        ``counts`` of shape (m, c) says how many training rows have the same level.
        """
        score = self._score(counts == 0)
        return np.where(score > -1, conformal_p(score, self.score), 1.0)

    def put_first(
        self, p_value: NDArray[np.float64], others: NDArray[np.float64], level: float
    ) -> NDArray[np.float64]:
        """Points with a rare unseen level come first, and others share what they leave of p, (m,).

        A point is flagged where its ``p_value`` is at most ``level``. Among held-out rows that is a
        share f, so that f + (1 - f) p is a p-value for the others. Flags that are more common than
        ``level`` say nothing.
        """
        flagged = (self.score > -1) & (conformal_p(self.score, self.score) <= level)
        share = float(flagged.mean())
        rest = share + (1 - share) * others
        return np.where(p_value <= level, np.minimum(p_value, others), rest)

    def _score(self, unseen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Minus the share of the rarest kind of unseen level, or -1 without one."""
        return -np.where(unseen, self.lone_share, 1.0).min(axis=1)
