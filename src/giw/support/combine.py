"""From scores to p-values, and from several p-values to one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

LARGEST = 0.9  # in the combination: one p-value near 1 must not outweigh another near 0
TIE = 1e-9  # scores that differ by less are equal: rounding must not break ties


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


def cauchy(p_values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    r"""Cauchy combination of several p-values of the same points [1]_.

    .. math:: p = \tfrac12 - \tfrac1\pi \arctan\Big(\frac1K \sum_k
              \tan\big((\tfrac12 - p_k)\,\pi\big)\Big)

    It keeps its level in the tail however the p-values depend on each other. p-values above 0.9
    count as 0.9: what looks ordinary in one representation may be strange in another.

    References
    ----------
    .. [1] Liu and Xie, Cauchy combination test, JASA 115:393-402, 2020.
    """
    if len(p_values) == 1:
        return next(iter(p_values.values()))
    each = np.clip(np.stack(list(p_values.values())), 1e-15, LARGEST)  # (K, m)
    return 0.5 - np.arctan(np.tan((0.5 - each) * np.pi).mean(axis=0)) / np.pi
