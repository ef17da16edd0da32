"""A list of outside points to show to people, with few false ones in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def benjamini_hochberg(p_value: NDArray[np.float64], *, fdr: float = 0.1) -> NDArray[np.int64]:
    r"""Indices of the points called outside at a false discovery rate, the strangest first.

    With ordered p-values :math:`p_{(1)} \le \dots \le p_{(m)}`, all up to the largest j with
    :math:`p_{(j)} \le j\, q / m` are listed; on average at most a share q of them lies inside.
    Conformal p-values share their calibration rows and keep the guarantee [1]_. For lists only:
    training has more to fear from outside points called inside, against which the rate is no guard.

    Parameters
    ----------
    p_value : array of shape (m,)
    fdr : float, default=0.1
        The rate q; more of it makes the list longer and less pure.

    References
    ----------
    .. [1] Bates, Candès, Lei, Romano and Sesia, Testing for outliers with conformal p-values,
       Annals of Statistics 51:149-178, 2023.
    """
    if not 0 < fdr < 1:
        raise ValueError(f"fdr must lie between 0 and 1, got {fdr}")
    order = np.argsort(p_value, kind="stable")
    line = fdr * (np.arange(len(order)) + 1) / len(order)
    below = np.flatnonzero(p_value[order] <= line)
    return order[: below[-1] + 1 if len(below) else 0]
