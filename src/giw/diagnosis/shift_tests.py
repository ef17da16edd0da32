r"""What has shifted: the features, the class shares, the features within a class, or the labels?

All four effects are on one scale, a lower bound of a total variation distance: the share of rows
that would have to be exchanged before the difference could no longer be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom, norm, rankdata

from giw.diagnosis.facts import UNSEEN, Fact
from giw.diagnosis.membership import BLOCKS, judged_by_the_past
from giw.diagnosis.share import binomial_interval

FEWEST = 8  # validation rows below which nothing is tested
DRAWS = 2_000  # of the permutation tests
AT_A_TIME = 100  # dealings of the rows to the sides that are held in memory
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# shares of the joint error: few rows of an unseen category are a sharp finding, and rows outside
# show in the features too
WEIGHTS = {"unseen": 2.0, "outside": 0.5}


@dataclass(frozen=True)
class ShiftTest:
    """One question, answered.

    Attributes
    ----------
    kind : {"covariate", "class prior", "within class", "label", "outside", "unseen"}
    question : str
        What was asked, in words.
    effect : float
        At least about this share of rows would have to be exchanged (for labels: relabelled).
    interval : tuple of two floats
        95 % interval of ``effect``.
    p_value : float
        Of "nothing has shifted here".
    found : bool
        Whether it is below 5 % after Holm's correction for all questions that were asked. For
        features within a class, which tell one kind of shift from another: below 1 %.
    """

    kind: str
    question: str
    effect: float
    interval: tuple[float, float]
    p_value: float
    found: bool = False


QUESTIONS = {
    "covariate": "do the features look different?",
    "class prior": "are the classes more or less frequent?",
    "within class": "do the features look different within a class?",
    "label": "do equal features get other labels?",
    "outside": "does any row lie where training has none?",
    "unseen": "are more classes or categories unseen in training than chance explains?",
}


def holm(tests: Sequence[ShiftTest], *, level: float = 0.05) -> tuple[ShiftTest, ...]:
    """Mark what is found, at a joint error of ``level`` (Holm's step-down procedure, weighted)."""
    weight = np.array([WEIGHTS.get(test.kind, 1.0) for test in tests])
    left = weight.sum()
    result = list(tests)
    for j in np.argsort([test.p_value for test in tests] / weight, kind="stable"):
        if tests[j].p_value > level * weight[j] / left:
            break
        result[j] = replace(tests[j], found=True)
        left -= weight[j]
    return tuple(result)


def features_test(
    z_train: Floats,
    z_val: Floats,
    generator: np.random.Generator,
    *,
    stratum_train: Ints | None = None,
    stratum_val: Ints | None = None,
) -> ShiftTest | None:
    r"""Two-sample test by single features and by a classifier, within strata where they are given.

    Single features are compared by :func:`largest_gaps`. Scores of a classifier are ranked among
    those of training rows of the same block and stratum: with area :math:`A_k` under the ROC curve
    of block k, :math:`\sum_k m_k (A_k - \tfrac12)` has mean zero and a known variance if nothing
    has shifted. The p-value is twice the lesser of the two.

    The effect is the rate at which the classifier calls validation rows "validation" less the
    rate at which it calls training rows so, at most the total variation distance.

    Returns None where too few rows can be compared.
    """
    z = np.concatenate([z_train, z_val])
    is_val = np.repeat([False, True], [len(z_train), len(z_val)])
    strata = np.zeros(len(z), dtype=np.int64)
    if stratum_train is not None and stratum_val is not None:
        strata = np.concatenate([stratum_train, stratum_val])
    comparable = np.isin(strata, np.intersect1d(strata[is_val], strata[~is_val]))
    z, is_val, strata = z[comparable], is_val[comparable], strata[comparable]
    blocks = min(BLOCKS, int(is_val.sum()) // 4)
    if is_val.sum() < FEWEST or (~is_val).sum() < FEWEST:
        return None
    single = float(largest_gaps(z, is_val, strata, generator).min())
    total, spread = 0.0, 0.0
    gap, gap_spread, count = 0.0, 0.0, 0
    for rows, score in judged_by_the_past(z, is_val, strata, blocks=blocks, generator=generator):
        for value in np.unique(strata[rows]):
            here = strata[rows] == value
            s_val, s_train = score[here & is_val[rows]], score[here & ~is_val[rows]]
            m, n = len(s_val), len(s_train)
            if m == 0 or n == 0:
                continue
            rank = rankdata(np.concatenate([s_val, s_train]))[:m]
            area = (rank.sum() - m * (m + 1) / 2) / (m * n)
            total += m * (area - 0.5)
            spread += m**2 * (n + m + 1) / (12 * n * m)
            hit, alarm = np.mean(s_val > 0.5), np.mean(s_train > 0.5)
            gap += m * (hit - alarm)
            # one more of each outcome, so that a perfect score has a spread too
            hit, alarm = (m * hit + 1) / (m + 2), (n * alarm + 1) / (n + 2)
            gap_spread += m**2 * (hit * (1 - hit) / m + alarm * (1 - alarm) / n)
            count += m
    if count == 0:
        return None
    kind = "covariate" if stratum_train is None else "within class"
    p_value = 2 * min(single, float(norm.sf(total / np.sqrt(spread))))
    return as_test(kind, gap / count, np.sqrt(gap_spread) / count, p_value)


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

    Parameters
    ----------
    z : array of shape (N, d)
    is_val : bool array of shape (N,)
    strata : int array of shape (N,)
    generator : numpy generator
    draws : int, default=1000
        More of them allow smaller p-values.
    pseudo : float, default=1
        Added to every variance, so that features that hardly vary do not own the largest one.

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


def outside_test(
    p_value: Floats, n: int, *, interval: tuple[float, float], listed: int
) -> ShiftTest:
    r"""Do more rows look strange than training rows do?

    Of n held-out training rows r are stranger than some cut, and k of m validation rows. If all
    are of one distribution, the chance that k or more of the r + k strangest are validation rows
    is hypergeometric. The cuts are the strangest held-out row, 1 % and 5 % of them; the p-value is
    three times the least.
    """
    m = len(p_value)
    chance = []
    for r in (0, n // 100, n // 20):
        k = int((p_value <= (r + 1 + 1e-9) / (n + 1)).sum())
        chance.append(float(hypergeom.sf(k - 1, n + m, m, r + k)))
    return ShiftTest(
        "outside", QUESTIONS["outside"], listed / m, interval, min(3 * min(chance), 1.0)
    )


def unseen_test(known: Sequence[Fact], m: int, questions: int) -> ShiftTest:
    """Are there more rows of unseen classes or categories than chance puts there?

    The least p-value of :class:`Fact` times the number of columns of text and labels.
    """
    p_value = min([1.0, *(questions * f.p_value for f in known if f.kind in UNSEEN)])
    k = len({row for f in known if f.kind in UNSEEN for row in f.rows})
    return ShiftTest("unseen", QUESTIONS["unseen"], k / m, binomial_interval(k, m), p_value)


def class_share_test(
    label_train: Ints, label_val: Ints, generator: np.random.Generator
) -> ShiftTest | None:
    r"""Permutation test of the class shares by the likelihood ratio.

    The effect is :math:`\tfrac12 \sum_c |\hat q_c - \hat p_c|` less its mean under permutation,
    which is what sampling alone would show.
    """
    classes = int(max(label_train.max(initial=0), label_val.max(initial=0))) + 1
    train, val = (np.bincount(side, minlength=classes) for side in (label_train, label_val))
    return class_count_test(train, val, generator)


def class_count_test(
    train: Ints,  # (c,) rows of each class
    val: Ints,  # (c,)
    generator: np.random.Generator,
) -> ShiftTest | None:
    """The test of :func:`class_share_test` from the counts, which are all it needs."""
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
    error = float(_distance(*again).std())
    return as_test("class prior", float(_distance(train / n, val / m)) - chance, error, p_value)


def as_test(kind: str, effect: float, error: float, p_value: float) -> ShiftTest:
    """With a normal interval, and everything between 0 and 1."""
    low, high = effect - 1.96 * error, effect + 1.96 * error
    return ShiftTest(
        kind,
        QUESTIONS[kind],
        float(np.clip(effect, 0, 1)),
        (float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))),
        float(min(max(p_value, 0.0), 1.0)),
    )


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
