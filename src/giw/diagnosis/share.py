r"""What share of the test distribution lies inside the training support, and which case is this?

====== ========================== ==========================
case   validation outside training training outside validation
====== ========================== ==========================
(i)    no                         no
(ii)   no                         yes
(iii)  yes                        no
(iv)   yes                        yes
====== ========================== ==========================

"Yes" and "no" are claims about shares of distributions, above or below a materiality threshold.
That training has something which the test distribution has *never* cannot be proved by a sample,
only that the test distribution visits those cells at a negligible rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from giw.diagnosis.findings import Floats, Ints
from giw.judging.risk import binomial_interval
from giw.support import SupportSplit
from giw.support.scores import on_host

CASES = {(False, False): "i", (False, True): "ii", (True, False): "iii", (True, True): "iv"}
Bounds = tuple[float, float]


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


# Which case ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseVerdict:
    """What the bounds allow to say.

    Attributes
    ----------
    case : {"i", "ii", "iii", "iv", "cannot tell"}
    possible : tuple of str
        Cases that the bounds leave open.
    val_outside : tuple of two floats
        Lower and upper bound of the share of the test distribution outside the training support.
    train_outside : tuple of two floats
        Lower and upper bound of the share of the training distribution in cells that the test
        distribution visits at a negligible rate.
    materiality : float
        Shares below it count as none.
    points_needed : int or None
        About how many validation points would decide, if the next ones look like these; the
        present number where the case is decided, None where more of the same would not decide.
    """

    case: str
    possible: tuple[str, ...]
    val_outside: Bounds
    train_outside: Bounds
    materiality: float
    points_needed: int | None
    points: int


def which_case(
    split: SupportSplit,
    z_train: Floats,  # (n, d)
    z_val: Floats,  # (m, d)
    *,
    materiality: float = 0.1,  # shares below it count as none
    cells: int = 8,  # more of them see smaller parts and need more validation points
    ordinary: float = 0.2,  # p-values above it are hardly ever from outside
) -> CaseVerdict:
    """Bound both directions and name the case if the bounds allow it.

    The second direction is that of training rows in cells of k-means, and of how often validation
    points that lie inside visit each.
    """
    inside, p_value = np.asarray(split.inside), np.asarray(split.p_value)
    count = min(cells, len(np.unique(z_train[:1_000], axis=0)))
    some = np.random.default_rng(0).permutation(len(z_train))[:5_000]  # enough for centres
    means = KMeans(count, n_init=3, random_state=0).fit(z_train[some])
    share = np.bincount(means.predict(z_train), minlength=count) / len(z_train)  # (c,)
    visits = np.bincount(means.predict(z_val)[p_value > ordinary], minlength=count)  # (c,)

    def bounds(times: int) -> tuple[Bounds, Bounds]:
        """Both pairs of bounds, had every point been seen so many times."""
        more = SupportSplit(inside.repeat(times), p_value.repeat(times), split.p_values)
        low, high = support_share(more).interval
        return (1 - high, 1 - low), _unvisited(share, visits * times)

    def cases(found: tuple[Bounds, Bounds]) -> tuple[str, ...]:
        # whether a share is material: yes, no, or either
        val, train = (sorted({low >= materiality, high >= materiality}) for low, high in found)
        return tuple(CASES[a, b] for a in val for b in train)

    now, m = bounds(1), len(p_value)
    possible = cases(now)
    further = (a << k for k in range(8) for a in (2, 3))  # 2, 3, 4, 6, 8, 12 … 384
    decided = (times for times in (1, *further) if len(cases(bounds(times))) == 1)
    needed = next((m * times for times in decided), None)
    case = possible[0] if len(possible) == 1 else "cannot tell"
    return CaseVerdict(case, possible, *now, materiality, needed, m)


def _unvisited(
    share: Floats, visits: Ints, tail: float = 0.025, negligible: float = 0.1
) -> Bounds:  # (c,), (c,)
    """Bounds of the training share in cells that inside validation points hardly visit.

    Hardly is at less than ``negligible`` of the training rate.
    The least visited cells together, as many as their common rate allows, are surely unvisited;
    cells that are surely visited bound the rest. Each of the c bounds errs with ``tail`` / c.
    """
    m, tail = int(visits.sum()), tail / len(share)
    if m == 0:
        return 0.0, 1.0
    order = np.argsort(visits / np.maximum(share, 1e-12), kind="stable")
    together, part = np.cumsum(visits[order]), np.cumsum(share[order])
    rare = [binomial_interval(int(k), m, tail)[1] < negligible * p
            for k, p in zip(together, part, strict=True)]  # fmt: skip
    low = float(part[rare].max(initial=0.0))
    surely = [binomial_interval(int(k), m, tail)[0] >= negligible * p
              for k, p in zip(visits, share, strict=True)]  # fmt: skip
    return low, max(low, 1.0 - float(share[surely].sum()))
