"""Support shift deals rows to training, validation and test."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.paper.shifts import Sample
from giw.paper.shifts import support_shift as shifted_support

SIZES = {0: 40, 1: 60, 2: 80, 3: 100}


def numbered():
    """Points that carry their row number, in four groups of unequal size; y = group mod 2."""
    group = np.repeat(list(SIZES), list(SIZES.values()))
    return Sample(np.arange(len(group))[:, None].astype(float), group % 2, group, ("even", "odd"))


def support_shift(sample, **request):
    """With other points of the same groups for the test."""
    other = replace(sample, x=sample.x + 1000)
    return shifted_support(sample, **{"test": other, **request})


def rows(sample):
    return set(sample.x[:, 0].astype(int))


def groups(sample):
    """Of the rows, which a problem does not tell."""
    return numbered().group[sample.x[:, 0].astype(int) % 1000]


CASES = {
    "i": ({0, 1, 2, 3}, {0, 1, 2, 3}),
    "ii": ({0, 1, 2, 3}, {2, 3}),
    "iii": ({0, 1}, {0, 1, 2, 3}),
    "iv": ({0, 1}, {1, 2, 3}),
}


@pytest.mark.parametrize("case", CASES)
@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=15)
def test_honest_parts_are_disjoint_and_hold_only_their_groups(case, seed):
    train_groups, test_groups = CASES[case]
    problem, truth = support_shift(
        numbered(),
        train_groups=train_groups,
        test_groups=test_groups,
        n_val=12,
        random_state=seed,
    )
    train, val, test = rows(problem.train), rows(problem.val), rows(problem.test)

    assert not train & val
    assert not (train | val) & test
    assert len(problem.val) == 12
    assert set(groups(problem.train)) == train_groups
    assert set(groups(problem.test)) == test_groups
    assert set(groups(problem.val)) <= test_groups
    np.testing.assert_array_equal(truth.inside, np.isin(groups(problem.val), list(train_groups)))
    np.testing.assert_array_equal(problem.train.y, groups(problem.train) % 2)


def test_every_row_of_a_known_group_that_is_not_set_aside_is_training():
    problem, _ = support_shift(
        numbered(), train_groups={0, 1}, test_groups=SIZES, n_val=8, random_state=0
    )

    assert len(problem.test) == sum(SIZES.values())
    assert len(problem.train) == 40 + 60 - 4  # two validation points from each group


def test_validation_is_drawn_anew_for_every_random_state_and_the_same_for_one():
    def val(seed):
        problem, _ = support_shift(
            numbered(), train_groups={0}, test_groups=SIZES, n_val=8, random_state=seed
        )
        return rows(problem.val)

    assert val(0) == val(0)
    assert len({frozenset(val(seed)) for seed in range(10)}) == 10


def test_stratified_draws_take_the_same_number_from_every_group():
    for n_val, counts in [(8, [2, 2, 2, 2]), (10, [3, 3, 2, 2])]:
        problem, truth = support_shift(
            numbered(), train_groups={0, 1}, test_groups=SIZES, n_val=n_val, random_state=0
        )
        np.testing.assert_array_equal(np.bincount(groups(problem.val)), counts)
        assert truth.alpha == sum(counts[:2]) / n_val


def test_published_protocol_leaves_validation_in_training_and_ignores_the_seed():
    def deal(seed):
        return support_shift(
            numbered(),
            train_groups={0, 1},
            test_groups=SIZES,
            n_val=8,
            protocol="published",
            random_state=seed,
        )

    problem, truth = deal(1)
    known = rows(problem.val.take(truth.inside))

    assert known <= rows(problem.train)
    assert rows(deal(2)[0].val) == rows(problem.val)
    assert not rows(problem.test) & (rows(problem.train) | rows(problem.val))


def test_a_test_sample_of_its_own_is_cut_to_the_test_groups():
    problem, _ = support_shift(
        numbered(),
        train_groups={0},
        test_groups={0, 3},
        n_val=4,
        test=numbered(),
        random_state=0,
    )

    assert len(problem.test) == 40 + 100
    assert len(problem.train) == 40 - 2  # nothing was set aside for testing
    assert set(groups(problem.test)) == {0, 3}


def test_more_validation_points_than_a_group_has_name_the_way_out():
    with pytest.raises(ValueError, match=r"group 0 has 40 points, 100 are asked for; lower n_val"):
        support_shift(numbered(), train_groups={0, 1}, test_groups=SIZES, n_val=400)
