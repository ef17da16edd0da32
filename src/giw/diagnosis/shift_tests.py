r"""What has shifted: the features, the class shares, or rows that training does not have?

Effects are on one scale, a lower bound of a total variation distance: the share of rows that would
have to be exchanged before the difference could no longer be seen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom, norm, rankdata

from giw.diagnosis.findings import Finding, a_test
from giw.diagnosis.membership import BLOCKS, judged_by_the_past

FEWEST = 8  # validation rows below which nothing is tested
DRAWS = 2_000  # of the permutation tests
AT_A_TIME = 100  # dealings of the rows to the sides that are held in memory
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def features_test(
    z_train: Floats,
    z_val: Floats,
    generator: np.random.Generator,
    *,
    strata: tuple[Ints, Ints] | None = None,
    single: Floats | None = None,
) -> Finding | None:
    r"""Two-sample test by single features and by a classifier, within strata where they are given.

    Single features are compared by :func:`largest_gaps`, unless its p-values are given as
    ``single``. Scores of a classifier are ranked among those of training rows of the same block
    and stratum: with area :math:`A_k` under the ROC curve of block k,
    :math:`\sum_k m_k (A_k - \tfrac12)` has mean zero and a known variance if nothing has shifted.
    The p-value is twice the lesser of the two.

    The effect is the rate at which the classifier calls validation rows "validation" less the
    rate at which it calls training rows so, at most the total variation distance.

    Returns None where too few rows can be compared.
    """
    z = np.concatenate([z_train, z_val])
    is_val = np.repeat([False, True], [len(z_train), len(z_val)])
    stratum = np.zeros(len(z), dtype=np.int64) if strata is None else np.concatenate(strata)
    comparable = np.isin(stratum, np.intersect1d(stratum[is_val], stratum[~is_val]))
    z, is_val, stratum = z[comparable], is_val[comparable], stratum[comparable]
    sizes = int((~is_val).sum()), int(is_val.sum())
    if min(sizes) < FEWEST:
        return None
    gaps = largest_gaps(z, is_val, stratum, generator) if single is None else single
    blocks = min(BLOCKS, sizes[1] // 4)
    cells = []
    for rows, score in judged_by_the_past(z, is_val, stratum, blocks=blocks, generator=generator):
        for value in np.unique(stratum[rows]):
            here = stratum[rows] == value
            sides = score[here & is_val[rows]], score[here & ~is_val[rows]]
            if len(sides[0]) and len(sides[1]):
                cells.append(_compared(*sides))
    if not cells:
        return None
    total, spread, gap, gap_spread, count = np.sum(cells, axis=0)
    p_value = 2 * min(float(gaps.min()), float(norm.sf(total / np.sqrt(spread))))
    kind = "covariate" if strata is None else "within class"
    return a_test(kind, gap / count, np.sqrt(gap_spread) / count, p_value, rows=sizes)


def _compared(val: Floats, train: Floats) -> list[float]:
    """Excess rank of validation scores with its variance, and excess of calls with theirs."""
    m, n = len(val), len(train)
    area = (rankdata(np.concatenate([val, train]))[:m].sum() - m * (m + 1) / 2) / (m * n)
    hit, alarm = np.mean(val > 0.5), np.mean(train > 0.5)
    gap = m * (hit - alarm)
    # one more of each outcome, so that a perfect score has a spread too
    hit, alarm = (m * hit + 1) / (m + 2), (n * alarm + 1) / (n + 2)
    spread = m**2 * (hit * (1 - hit) / m + alarm * (1 - alarm) / n)
    return [m * (area - 0.5), m**2 * (n + m + 1) / (12 * n * m), gap, spread, m]


def single_p_values(z: Floats, z_val: Floats, generator: np.random.Generator) -> Floats | None:
    """:func:`largest_gaps` of both sides, (d,), or None of too few rows."""
    n, m = len(z), len(z_val)
    if min(n, m) < FEWEST:
        return None
    is_val = np.repeat([False, True], [n, m])
    both = np.concatenate([z, z_val])
    return largest_gaps(both, is_val, np.zeros(n + m, dtype=np.int64), generator)


def largest_gaps(
    z: Floats,
    is_val: Bools,
    strata: Ints,
    generator: np.random.Generator,
    *,
    draws: int = 1_000,
    pseudo: float = 1.0,
) -> Floats:
    r"""P-values of single features, corrected for their number by permutation, (d,).

    Rows are ranked within their stratum. Feature by feature the statistic is the sum of the
    validation rows' ranks (where?), and of their distances from the middle rank (how spread?),
    over its standard deviation if sides are dealt at random. The corrected p-value is the share of
    dealings whose largest statistic over all features is at least as large [1]_: exact, and no
    more cautious than correlated features ask for.

    ``pseudo`` is added to every variance, so that features that hardly vary do not own the largest
    statistic.

    References
    ----------
    .. [1] Westfall and Young, Resampling-based multiple testing, 1993.
    """
    ranks = np.zeros((len(z), 2 * z.shape[1]), dtype=np.float32)  # (N, 2 d)
    variance = np.full(ranks.shape[1], pseudo)
    groups = [np.flatnonzero(strata == value) for value in np.unique(strata)]
    for rows in groups:
        n, m = len(rows), int(is_val[rows].sum())
        rank = (rankdata(z[rows], axis=0) - (n + 1) / 2) * np.sqrt(12) / n
        both = np.concatenate([rank, np.abs(rank)], axis=1)
        ranks[rows] = both = both - both.mean(axis=0)
        variance += m * (n - m) / (n * max(n - 1, 1)) * np.square(both).sum(axis=0)
    ranks /= np.sqrt(variance)
    largest = np.empty(draws)
    for start in range(0, draws, AT_A_TIME):
        dealt = np.zeros((min(AT_A_TIME, draws - start), len(z)), dtype=np.float32)
        for rows in groups:
            m = int(is_val[rows].sum())
            key = generator.random((len(dealt), len(rows)), dtype=np.float32)
            first = np.argsort(key, axis=1)[:, :m]
            np.put_along_axis(dealt, rows[first], 1.0, axis=1)
        largest[start : start + len(dealt)] = np.abs(dealt @ ranks).max(axis=1)
    seen = np.abs(is_val.astype(np.float32) @ ranks).reshape(2, -1).max(axis=0)  # (d,)
    at_least = len(largest) - np.searchsorted(np.sort(largest), seen - 1e-4)
    return np.asarray((1 + at_least) / (1 + draws))


def outside_test(p_value: Floats, n: int, interval: tuple[float, float], listed: int) -> Finding:
    r"""Do more rows look strange than training rows do?

    Of n held-out training rows r score above some cut, and k of m validation rows. If all
    are of one distribution, the chance that k or more of the r + k highest are validation rows
    is hypergeometric. The cuts are the highest held-out score, 1 % and 5 % of them; the p-value is
    three times the least.
    """
    m = len(p_value)
    chance = []
    for r in (0, n // 100, n // 20):
        k = int((p_value <= (r + 1 + 1e-9) / (n + 1)).sum())
        chance.append(float(hypergeom.sf(k - 1, n + m, m, r + k)))
    return a_test("outside", listed / m, 0.0, 3 * min(chance), rows=(n, m), interval=interval)


def class_count_test(
    train: Ints,  # (c,) rows of each class
    val: Ints,  # (c,)
    generator: np.random.Generator,
) -> Finding | None:
    r"""Permutation test of the class shares by the likelihood ratio.

    The effect is :math:`\tfrac12 \sum_c |\hat q_c - \hat p_c|` less its mean under permutation,
    which is what sampling alone would show.
    """
    n, m = int(train.sum()), int(val.sum())
    if m < FEWEST:
        return None
    drawn = generator.multivariate_hypergeometric(train + val, m, size=DRAWS)  # (draws, c)
    seen = _likelihood_ratio(train, val)
    null = _likelihood_ratio(train + val - drawn, drawn)
    p_value = (1 + int((null >= seen - 1e-9).sum())) / (1 + DRAWS)
    chance = float(_distance((train + val - drawn) / n, drawn / m).mean())
    again = (generator.multinomial(size, counts / size, size=500) / size
             for size, counts in ((n, train), (m, val)))  # fmt: skip
    error, effect = float(_distance(*again).std()), float(_distance(train / n, val / m)) - chance
    return a_test("class prior", effect, error, p_value, rows=(n, m))


def _distance(p: Floats, q: Floats) -> Floats:
    """Total variation distance over the last dimension."""
    return 0.5 * np.abs(p - q).sum(axis=-1)


def _likelihood_ratio(train: Ints, val: Ints) -> Floats:
    """G statistic of a table of counts, over the last dimension."""
    both = train + val
    result = np.zeros(np.broadcast_shapes(train.shape, val.shape)[:-1])
    for side in (train, val):
        size = side.sum(axis=-1, keepdims=True)
        expected = both * size / both.sum(axis=-1, keepdims=True)
        ratio = np.divide(side, expected, out=np.ones(expected.shape), where=side > 0)
        result = result + 2 * (side * np.log(ratio)).sum(axis=-1)
    return result
