"""Support shift: training knows some groups, the test distribution others."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_generator
from giw.paper.readers.sample import Sample
from giw.paper.shift.dealing import (
    PUBLISHED_SEED,
    Draw,
    Indices,
    Protocol,
    check_draw_and_protocol,
    deal,
    density_by_group,
    equal_counts,
)
from giw.paper.shift.problem import ShiftProblem, Truth, mean_one


def support_shift(
    sample: Sample,
    *,
    train_groups: Collection[int],
    test_groups: Collection[int],
    n_val: int,
    draw: Draw = "stratified",
    test: Sample | None = None,
    test_share: float = 0.3,
    protocol: Protocol = "honest",
    random_state: int | np.random.Generator | None = None,
) -> tuple[ShiftProblem, Truth]:
    r"""Train on some groups, validate and test on others.

    Equal sets of groups are case (i) of the paper, fewer test groups case (ii), more case (iii),
    an overlap case (iv).

    Parameters
    ----------
    sample : Sample
        Clean data from which training and validation points are drawn.
    train_groups, test_groups : collections of int
        Groups that training has, and groups that validation and test have.
    n_val : int
        Number of validation points.
    draw : {"stratified", "iid"}
        How validation points are drawn. ``"stratified"``: the same number from every test group
        (one more in the lowest-numbered ones where ``n_val`` does not divide), as in the paper;
        then the true α is the share of inside points in the draw, exactly (8 of 20 for MNIST
        digits 0-3), and the true weight is that of a test distribution with those group shares.
        ``"iid"``: uniformly from all points of the test groups; then the true α is the share of
        ``sample``'s test-group points that lie inside (0.4126 for MNIST), from which the share
        in the draw differs by chance, and the true weight is constant inside.
    test : Sample, optional
        A test set of its own, cut to the test groups; without it ``test_share`` of every test
        group is set aside.
    test_share : float, default=0.3
        Share of each test group set aside for testing where no ``test`` is given.
    protocol : {"honest", "published", "published_resampled"}
        ``"honest"``: validation is disjoint from training and test and drawn anew for every
        ``random_state``. ``"published"``: as the paper's authors did, validation is drawn from
        the training pool, left in it, and the same for every ``random_state``; a split of
        validation data then only has to find duplicates. ``"published_resampled"``: left in the
        training pool too, but drawn anew for every ``random_state``, the same points as honest.
    random_state : int, generator or None

    Returns
    -------
    problem : ShiftProblem
        What a method may see.
    truth : Truth
        What only an evaluation may see.
    """
    check_draw_and_protocol(draw, protocol)
    known, wanted = _groups(sample, train_groups), _groups(sample, test_groups)
    rng = as_generator(PUBLISHED_SEED if protocol == "published" else random_state)

    pool = rng.permutation(len(sample))  # a random order from which the front is dealt
    testable = pool[np.isin(sample.group[pool], wanted)]
    if test is None:
        if not 0 < test_share < 1:
            raise ValueError(f"test_share must lie between 0 and 1, got {test_share}")
        test_rows = _share_of_each_group(testable, sample.group, test_share)
        pool = pool[~np.isin(pool, test_rows)]
        testable = testable[~np.isin(testable, test_rows)]
        test_sample = sample.take(np.sort(test_rows))
    else:
        test_sample = test.take(np.isin(test.group, wanted))

    counts = equal_counts(wanted, n_val) if draw == "stratified" else None
    val_rows = deal(testable, sample.group, n_val, counts)
    train_rows = pool[np.isin(sample.group[pool], known)]
    if protocol == "honest":
        train_rows = train_rows[~np.isin(train_rows, val_rows)]

    train, val = sample.take(np.sort(train_rows)), sample.take(val_rows)
    problem = ShiftProblem(train, val, test_sample)  # refuses empty parts
    inside = np.isin(val.group, train.group)
    density = density_by_group(sample.group, wanted, counts)
    share = _inside_share(sample.group, known, density)
    truth = Truth(
        inside=inside,
        weight=mean_one(density[train.group]),
        flipped=np.zeros(len(train), dtype=bool),
        support_share=share,
        train_group=train.group,
        val_group=val.group,
        test_group=test_sample.group,
    )
    return problem, truth


def _groups(sample: Sample, groups: Collection[int]) -> Indices:
    wanted = np.unique(np.asarray(list(groups), dtype=np.int64))
    present = np.unique(sample.group)
    if len(wanted) == 0 or not np.isin(wanted, present).all():
        raise ValueError(
            f"groups must be some of those of the sample, {present.tolist()}; got {list(groups)}"
        )
    return wanted


def _share_of_each_group(rows: Indices, group: Indices, share: float) -> Indices:
    """The first ``share`` of each group in the given order, at least one point."""
    parts = [rows[group[rows] == g] for g in np.unique(group[rows])]
    return np.concatenate([part[: max(1, round(share * len(part)))] for part in parts])


def _inside_share(group: Indices, known: Indices, density: NDArray[np.float64]) -> float:
    """Share of the validation distribution in groups that training knows."""
    mass = density[group]  # (n,)
    return float(mass[np.isin(group, known)].sum() / mass.sum())
