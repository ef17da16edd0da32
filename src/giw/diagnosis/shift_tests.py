r"""What has shifted: the features, the class shares, or rows that training does not have?

Effects are on one scale, a lower bound of a total variation distance: the share of rows that would
have to be exchanged before the difference could no longer be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom, norm, power_divergence, rankdata
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from giw.diagnosis.findings import FEWEST, Bools, Finding, Floats, Ints, a_test


def together(train: NDArray[Any], val: NDArray[Any]) -> tuple[NDArray[Any], Bools]:
    """Rows of both sides, and which are validation rows."""
    return np.concatenate([train, val]), np.repeat([False, True], [len(train), len(val)])


# Features, one by one and by a model that tells the sides apart -----------------------------------


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
    z, is_val = together(z_train, z_val)
    stratum = np.zeros(len(z), dtype=np.int64) if strata is None else np.concatenate(strata)
    comparable = np.isin(stratum, np.intersect1d(stratum[is_val], stratum[~is_val]))
    z, is_val, stratum = z[comparable], is_val[comparable], stratum[comparable]
    m = int(is_val.sum())
    if min(m, len(z) - m) < FEWEST:
        return None
    gaps = largest_gaps(z, is_val, stratum, generator) if single is None else single
    blocks = min(5, m // 4)
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
    return a_test(kind, p_value, gap / count, np.sqrt(gap_spread) / count)


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


def largest_gaps(
    z: Floats,
    is_val: Bools,
    strata: Ints,
    generator: np.random.Generator,
    *,
    draws: int = 1_000,
) -> Floats:
    r"""P-values of single features, corrected for their number by permutation, (d,).

    Rows are ranked within their stratum. Feature by feature the statistic is the sum of the
    validation rows' ranks (where?), and of their distances from the middle rank (how spread?),
    over its standard deviation if sides are dealt at random. The corrected p-value is the share of
    dealings whose largest statistic over all features is at least as large [1]_: exact, and no
    more cautious than correlated features ask for.

    References
    ----------
    .. [1] Westfall and Young, Resampling-based multiple testing, 1993.
    """
    ranks = np.zeros((len(z), 2 * z.shape[1]), dtype=np.float32)  # (N, 2 d)
    variance = np.ones(ranks.shape[1])  # of features that hardly vary not so small as to lead
    groups = [np.flatnonzero(strata == value) for value in np.unique(strata)]
    for rows in groups:
        n, m = len(rows), int(is_val[rows].sum())
        rank = (rankdata(z[rows], axis=0) - (n + 1) / 2) * np.sqrt(12) / n
        both = np.concatenate([rank, np.abs(rank)], axis=1)
        ranks[rows] = both = both - both.mean(axis=0)
        variance += m * (n - m) / (n * max(n - 1, 1)) * np.square(both).sum(axis=0)
    ranks /= np.sqrt(variance)
    largest: list[float] = []
    while len(largest) < draws:
        dealt = np.zeros((min(100, draws - len(largest)), len(z)), dtype=np.float32)
        for rows in groups:
            m = int(is_val[rows].sum())
            key = generator.random((len(dealt), len(rows)), dtype=np.float32)
            first = np.argsort(key, axis=1)[:, :m]
            np.put_along_axis(dealt, rows[first], 1.0, axis=1)
        largest += np.abs(dealt @ ranks).max(axis=1).tolist()
    seen = np.abs(is_val.astype(np.float32) @ ranks).reshape(2, -1).max(axis=0)  # (d,)
    at_least = draws - np.searchsorted(np.sort(largest), seen - 1e-4)
    return np.asarray((1 + at_least) / (1 + draws))


def fit_membership(
    z: Floats, is_val: Bools, stratum: Ints, generator: np.random.Generator
) -> Callable[[Floats], Floats]:
    """A rule for the probability of being a validation row, both sides taken as equally frequent.

    The mean of a linear model and a forest: the first finds small shifts of many features from
    few rows, the second anything else. Both sides get equal weight within every stratum, so that
    its share tells nothing.
    """
    weight = np.zeros(len(z))
    for value in np.unique(stratum):
        sides = [(stratum == value) & is_val, (stratum == value) & ~is_val]
        if all(side.any() for side in sides):
            for side in sides:
                weight[side] = (sides[0] | sides[1]).sum() / side.sum()
    used, seed = weight > 0, int(generator.integers(2**31))
    z, target, weight = z[used], is_val[used], weight[used] / weight[used].mean()
    forest = ExtraTreesClassifier(30, min_samples_split=8, max_depth=14, random_state=seed)
    forest.fit(z, target, sample_weight=weight)
    linear = LogisticRegression(C=0.1, max_iter=200)
    linear.fit(np.clip(z, -5, 5), target, sample_weight=weight)  # far outliers would own it

    def probability(points: Floats) -> Floats:
        tame = np.clip(points, -5, 5)
        return (forest.predict_proba(points)[:, 1] + linear.predict_proba(tame)[:, 1]) / 2

    return probability


def in_blocks(is_val: Bools, blocks: int, generator: np.random.Generator) -> Ints:
    """A block for every row, at random, each side spread evenly over the blocks, (n,)."""
    block = np.empty(len(is_val), dtype=np.int64)
    for side in (is_val, ~is_val):
        rows = generator.permutation(np.flatnonzero(side))
        block[rows] = np.arange(len(rows)) % blocks
    return block


def judged_by_the_past(
    z: Floats, is_val: Bools, stratum: Ints, *, blocks: int, generator: np.random.Generator
) -> Iterator[tuple[Ints, Floats]]:
    """Rows of every block but the first with their probability of being a validation row.

    Each block is judged by a model that has seen the blocks before it only. Given the past, its
    labels are exchangeable where the two samples have one distribution, so that sums over blocks
    are a martingale and ordinary standard errors hold; cross-fitting has no such guarantee.
    """
    block = in_blocks(is_val, blocks, generator)
    for number in range(1, blocks):
        past, rows = block < number, np.flatnonzero(block == number)
        yield rows, fit_membership(z[past], is_val[past], stratum[past], generator)(z[rows])


def odds_of_membership(
    z_train: Floats, z_val: Floats, generator: np.random.Generator, *, blocks: int = 5
) -> tuple[Floats, Floats]:  # (n,), (m,)
    """Cross-fitted odds of being a validation row, both sides taken as equally frequent.

    At a training row they estimate p_val / p_train. All are one with fewer than two validation
    rows.
    """
    z, is_val = together(z_train, z_val)
    odds = np.ones(len(z))
    if len(z_val) >= 2:
        block = in_blocks(is_val, min(blocks, max(2, len(z_val) // 4)), generator)
        for number in np.unique(block):
            rest, rows = block != number, block == number
            none = np.zeros(rest.sum(), dtype=np.int64)
            rule = fit_membership(z[rest], is_val[rest], none, generator)
            probability = np.clip(rule(z[rows]), 0.01, 0.99)
            odds[rows] = probability / (1 - probability)
    return odds[~is_val], odds[is_val]


# Rows outside, and class shares -------------------------------------------------------------------


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
    return a_test("outside", 3 * min(chance), listed / m, interval=interval)


def class_count_test(
    train: Ints,  # (c,) rows of each class
    val: Ints,  # (c,)
    generator: np.random.Generator,
    *,
    draws: int = 2_000,
) -> Finding | None:
    r"""Permutation test of the class shares by the likelihood ratio.

    The effect is :math:`\tfrac12 \sum_c |\hat q_c - \hat p_c|` less its mean under permutation,
    which is what sampling alone would show.
    """
    n, m = int(train.sum()), int(val.sum())
    if m < FEWEST:
        return None
    both = train + val
    hoped = [both * size / (n + m) for size in (n, m)]

    def distances(p: Ints, q: Ints) -> tuple[Floats, Floats]:
        """Likelihood ratio and total variation of counts, over the last dimension."""
        ratio = [power_divergence(side, part, axis=-1, lambda_="log-likelihood").statistic
                 for side, part in zip((p, q), hoped, strict=True)]  # fmt: skip
        return sum(ratio), 0.5 * np.abs(p / n - q / m).sum(axis=-1)

    drawn = generator.multivariate_hypergeometric(both, m, size=draws)  # (draws, c)
    (seen, effect), (null, chance) = distances(train, val), distances(both - drawn, drawn)
    p_value = (1 + int((null >= seen - 1e-9).sum())) / (1 + draws)
    again = [generator.multinomial(k, side / k, size=500) / k for k, side in ((n, train), (m, val))]
    error = float((0.5 * np.abs(again[0] - again[1]).sum(axis=-1)).std())
    return a_test("class prior", p_value, float(effect - chance.mean()), error)
