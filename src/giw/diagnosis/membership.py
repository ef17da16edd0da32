"""Can a model tell training rows from validation rows? Its scores on rows it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

BLOCKS = 5  # of which each is judged by a model of others
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def fit_membership(
    z: Floats, is_val: Bools, stratum: Ints, *, seed: int
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
    used = weight > 0
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
        seed = int(generator.integers(2**31))
        rule = fit_membership(z[past], is_val[past], stratum[past], seed=seed)
        yield rows, rule(z[rows])


def odds_of_membership(
    z_train: Floats, z_val: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats]:  # (n,), (m,)
    """Cross-fitted odds of being a validation row, both sides taken as equally frequent.

    At a training row they estimate p_val / p_train. All are one with fewer than two validation
    rows.
    """
    if len(z_val) < 2:
        return np.ones(len(z_train)), np.ones(len(z_val))
    z = np.concatenate([z_train, z_val])
    is_val = np.repeat([False, True], [len(z_train), len(z_val)])
    block = in_blocks(is_val, min(BLOCKS, max(2, len(z_val) // 4)), generator)
    odds = np.ones(len(z))
    for number in np.unique(block):
        rest, rows = block != number, block == number
        if is_val[rest].any() and not is_val[rest].all():
            seed = int(generator.integers(2**31))
            rule = fit_membership(z[rest], is_val[rest], np.zeros(rest.sum(), dtype=int), seed=seed)
            probability = np.clip(rule(z[rows]), 0.01, 0.99)
            odds[rows] = probability / (1 - probability)
    return odds[: len(z_train)], odds[len(z_train) :]
