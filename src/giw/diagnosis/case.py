r"""Which case of support shift is this? Bounds in both directions, and a verdict if they allow one.

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

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from giw.diagnosis.share import binomial_interval, support_share
from giw.support import SupportSplit

MATERIALITY = 0.1  # shares below it count as none
NEGLIGIBLE = 0.1  # of the training rate, below which the test distribution is absent from cells
CELLS = 8  # more of them see smaller parts and need more validation points
ORDINARY = 0.2  # p-values above this are hardly ever from outside
FURTHER = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
CASES = {(False, False): "i", (False, True): "ii", (True, False): "iii", (True, True): "iv"}
Bounds = tuple[float, float]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


def which_case(split: SupportSplit, z_train: Floats, z_val: Floats) -> CaseVerdict:
    """Bound both directions and name the case if the bounds allow it.

    The second direction is that of training rows, (n, d), in cells of k-means, and of how often
    validation points, (m, d), that lie inside visit each.
    """
    inside, p_value = np.asarray(split.inside), np.asarray(split.p_value)
    count = min(CELLS, len(np.unique(z_train[:1_000], axis=0)))
    some = np.random.default_rng(0).permutation(len(z_train))[:5_000]  # enough for centres
    cells = KMeans(count, n_init=3, random_state=0).fit(z_train[some])
    share = np.bincount(cells.predict(z_train), minlength=count) / len(z_train)  # (c,)
    visits = np.bincount(cells.predict(z_val)[p_value > ORDINARY], minlength=count)  # (c,)

    def bounds(times: int) -> tuple[Bounds, Bounds]:
        """Both pairs of bounds, had every point been seen so many times."""
        more = SupportSplit(inside.repeat(times), p_value.repeat(times), split.p_values)
        low, high = support_share(more).interval
        return (1 - high, 1 - low), _unvisited(share, visits * times)

    def cases(found: tuple[Bounds, Bounds]) -> tuple[str, ...]:
        val, train = map(_answers, found)
        return tuple(CASES[a, b] for a in val for b in train)

    now, m = bounds(1), len(p_value)
    possible = cases(now)
    decided = (times for times in (1, *FURTHER) if len(cases(bounds(times))) == 1)
    needed = next((m * times for times in decided), None)
    case = possible[0] if len(possible) == 1 else "cannot tell"
    return CaseVerdict(case, possible, *now, MATERIALITY, needed, m)


def _answers(bound: Bounds) -> list[bool]:
    """Whether a share is material: yes, no, or either."""
    low, high = bound
    return [True] if low >= MATERIALITY else [False] if high < MATERIALITY else [False, True]


def _unvisited(share: Floats, visits: Ints, tail: float = 0.025) -> Bounds:  # (c,), (c,)
    """Bounds of the training share in cells that inside validation points hardly visit.

    The least visited cells together, as many as their common rate allows, are surely unvisited;
    cells that are surely visited bound the rest. Each of the c bounds errs with ``tail`` / c.
    """
    m, tail = int(visits.sum()), tail / len(share)
    if m == 0:
        return 0.0, 1.0
    order = np.argsort(visits / np.maximum(share, 1e-12), kind="stable")
    together, part = np.cumsum(visits[order]), np.cumsum(share[order])
    rare = [binomial_interval(int(k), m, tail)[1] < NEGLIGIBLE * p
            for k, p in zip(together, part, strict=True)]  # fmt: skip
    low = float(part[rare].max(initial=0.0))
    surely = [binomial_interval(int(k), m, tail)[0] >= NEGLIGIBLE * p
              for k, p in zip(visits, share, strict=True)]  # fmt: skip
    return low, max(low, 1.0 - float(share[surely].sum()))
