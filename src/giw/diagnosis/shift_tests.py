r"""What has shifted: the features, the class shares, the features within a class, or the labels?

All four effects are on one scale, a lower bound of a total variation distance: the share of rows
that would have to be exchanged before the difference could no longer be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from giw.diagnosis.membership import BLOCKS, judged_by_the_past

FEWEST = 8  # validation rows below which nothing is tested
DRAWS = 2_000  # of the permutation tests
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class ShiftTest:
    """One question, answered.

    Attributes
    ----------
    kind : {"covariate", "class prior", "within class", "label"}
    question : str
        What was asked, in words.
    effect : float
        At least about this share of rows would have to be exchanged (for labels: relabelled).
    interval : tuple of two floats
        95 % interval of ``effect``.
    p_value : float
        Of "nothing has shifted here".
    found : bool
        Whether it is below 5 % after Holm's correction for all questions that were asked.
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
}


def holm(tests: Sequence[ShiftTest], *, level: float = 0.05) -> tuple[ShiftTest, ...]:
    """Mark what is found, at a joint error of ``level`` (Holm's step-down procedure)."""
    order = sorted(range(len(tests)), key=lambda j: tests[j].p_value)
    result = list(tests)
    for rank, j in enumerate(order):
        if tests[j].p_value > level / (len(tests) - rank):
            break
        result[j] = replace(tests[j], found=True)
    return tuple(result)


def features_test(
    z_train: Floats,
    z_val: Floats,
    generator: np.random.Generator,
    *,
    stratum_train: Ints | None = None,
    stratum_val: Ints | None = None,
) -> ShiftTest | None:
    r"""Two-sample test by a classifier, within strata where they are given.

    Scores of validation rows are ranked among those of training rows of the same block and
    stratum: with area :math:`A_k` under the ROC curve of block k,
    :math:`\sum_k m_k (A_k - \tfrac12)` has mean zero and a known variance if nothing has shifted.
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
    p_value = float(norm.sf(total / np.sqrt(spread)))
    return as_test(kind, gap / count, np.sqrt(gap_spread) / count, p_value)


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
