"""What share of the test distribution lies inside the training support? From p-values alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from giw.support import SupportSplit
from giw.support.scores import on_host


class SupportShare(NamedTuple):
    """A share of the test distribution and its interval."""

    share: float
    interval: tuple[float, float]

    def __str__(self) -> str:
        """Share and interval in one line."""
        low, high = self.interval
        return f"{self.share:.3f} of the test distribution inside, {low:.3f} to {high:.3f}"


def support_share(
    split: SupportSplit,
    *,
    confidence: float = 0.95,
    lower_from: float = 0.8,
    upper_from: float = 0.2,
    fdr: float = 0.1,
) -> SupportShare:
    r"""Share of the test distribution inside the training support, with an interval.

    p-values of inside points are evenly spread and those of outside points are small. So above any
    cut :math:`\lambda` lies at least a share :math:`\pi (1 - \lambda)` of all points, and hardly
    more where the cut is high:

    .. math:: \hat\pi = \frac{\#\{p > 1/2\}}{m / 2}, \qquad
              \pi \le \frac{u(\#\{p > \lambda_u\})}{1 - \lambda_u}, \qquad
              \pi \ge \frac{l(\#\{p > \lambda_l\})}{1 - \lambda_l}

    with l and u the exact binomial bounds. The upper bound holds whatever outside points look like.
    The lower one takes for granted that few of them look as ordinary as the most ordinary fifth of
    inside points; where representations see nothing it is too high.

    Parameters
    ----------
    split : SupportSplit
        From :class:`giw.SupportSplitter`.
    confidence : float, default=0.95
        Of the interval; more of it widens it.
    lower_from, upper_from : float, default=0.8 and 0.2
        The cuts :math:`\lambda_l` and :math:`\lambda_u`. With a higher one fewer
        outside points need a small p-value, and the interval is wider.
    fdr : float, default=0.1
        The estimate is at most what :func:`giw.diagnosis.outside_list` leaves, of which so much
        may be there by mistake.
    """
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence must lie between 0.5 and 1, got {confidence}")
    p_value = on_host(split.p_value)
    m, tail = len(p_value), (1 - confidence) / 2
    if not split.p_values:  # a split that was given rests on no p-values: only the draw is random
        inside = int(on_host(split.inside).sum())
        return SupportShare(inside / m, binomial_interval(inside, m, tail))
    low = binomial_interval(int((p_value > lower_from).sum()), m, tail)[0] / (1 - lower_from)
    high = binomial_interval(int((p_value > upper_from).sum()), m, tail)[1] / (1 - upper_from)
    # rows on the list of outside rows count, whatever all the others look like
    listed = len(outside_list(split, fdr))
    share = min(1.0 - (1 - fdr) * listed / m, 2 * float((p_value > 0.5).mean()))
    high = min(1.0, high)
    # were all outside rows listed, which rows were drawn would still be random; p-values that are
    # tied, as where few values differ, are larger than evenly spread ones, and low with them
    low = min(low, binomial_interval(m - listed, m, tail)[0])
    return SupportShare(share, (min(low, share, high), max(high, share)))


def binomial_interval(count: int, m: int, tail: float = 0.025) -> tuple[float, float]:
    """Clopper and Pearson's exact interval with so much probability left out on either side."""
    if not m:
        return 0.0, 1.0
    low = float(beta.ppf(tail, count, m - count + 1)) if count else 0.0
    return low, float(beta.ppf(1 - tail, count + 1, m - count)) if count < m else 1.0


def outside_list(split: SupportSplit, fdr: float = 0.1) -> np.ndarray:
    r"""Indices of outside points to show to people, the strangest first.

    With ordered p-values :math:`p_{(1)} \le \dots \le p_{(m)}` all up to the largest j with
    :math:`p_{(j)} \le j\, q / m` are listed [1]_; on average at most a share q of them, given as
    ``fdr``, lies inside.

    References
    ----------
    .. [1] Bates et al., Testing for outliers with conformal p-values, Annals of Statistics
       51:149-178, 2023.
    """
    if not 0 < fdr < 1:
        raise ValueError(f"fdr must lie between 0 and 1, got {fdr}")
    p_value = on_host(split.p_value)
    order = np.argsort(p_value, kind="stable")
    below = np.flatnonzero(p_value[order] <= fdr * (np.arange(len(order)) + 1) / len(order))
    return order[: below[-1] + 1 if len(below) else 0]
