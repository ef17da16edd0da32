"""From scores to p-values, and from several p-values to one."""

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
