"""Each kind of shift is found by its own test, and by no other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import mannwhitneyu

from giw.diagnosis.findings import Finding, holm
from giw.diagnosis.shift_tests import (
    class_count_test,
    features_test,
    fit_membership,
    in_blocks,
    judged_by_the_past,
    largest_gaps,
    odds_of_membership,
)


def generator(seed=0):
    return np.random.default_rng(seed)


def test_features_that_never_overlap_are_told_apart_completely():
    z = np.linspace(0, 1, 60)[:, None]
    found = features_test(z, z + 5, generator())

    assert found.effect == 1.0
    assert found.interval[0] > 0.8
    assert found.p_value < 1e-6


@pytest.mark.slow
def test_features_of_one_distribution_give_evenly_spread_p_values():
    """Each of 30 p-values is uniform, so their mean is 0.5 with a spread of 0.053."""
    p_value = []
    for seed in range(30):
        rng = generator(seed)
        p_value.append(features_test(*np.split(rng.normal(size=(80, 2)), [60]), rng).p_value)
    assert 0.3 < np.mean(p_value) < 0.7
    assert np.mean(np.array(p_value) < 0.05) <= 0.2


def test_a_block_is_judged_by_the_blocks_before_it_only():
    """Labels of later rows cannot reach earlier scores."""
    rng = generator()
    z, is_val = rng.normal(size=(60, 2)), np.arange(60) < 30
    strata = np.zeros(60, dtype=int)
    first = list(judged_by_the_past(z, is_val, strata, blocks=3, generator=generator(1)))
    last = first[-1][0]
    changed = z.copy()
    changed[last] += 100
    second = list(judged_by_the_past(changed, is_val, strata, blocks=3, generator=generator(1)))

    assert len(first) == 2
    assert_allclose(first[0][1], second[0][1])
    assert not np.allclose(first[1][1], second[1][1])


@settings(deadline=None, max_examples=30)
@given(st.integers(4, 40), st.integers(4, 40), st.integers(2, 5))
def test_blocks_share_both_sides_evenly(m, n, blocks):
    is_val = np.repeat([True, False], [m, n])
    block = in_blocks(is_val, blocks, generator())
    for side in (is_val, ~is_val):
        counts = np.bincount(block[side], minlength=blocks)
        assert counts.max() - counts.min() <= 1


def test_membership_within_strata_ignores_their_shares():
    """The feature is the class; within a class nothing differs, so nothing is learned."""
    stratum = np.repeat([0, 1, 0, 1], [90, 10, 10, 90])
    is_val = np.repeat([False, True], [100, 100])
    rule = fit_membership(stratum[:, None].astype(float), is_val, stratum, generator())

    assert_allclose(rule(np.array([[0.0], [1.0]])), 0.5, atol=0.01)


def test_class_prior_shift_is_no_shift_within_classes():
    rng = generator()
    y, y_val = rng.random(400) < 0.5, rng.random(120) < 0.1
    z, z_val = (3.0 * side[:, None] + rng.normal(size=(len(side), 2)) for side in (y, y_val))
    strata = y.astype(int), y_val.astype(int)

    assert features_test(z, z_val, generator(1)).p_value < 1e-3
    counts = np.bincount(y), np.bincount(y_val)
    assert class_count_test(*counts, generator(1)).p_value < 1e-3
    assert features_test(z, z_val, generator(1), strata=strata).p_value > 0.01


def test_equal_class_shares_have_the_largest_p_value():
    found = class_count_test(np.array([40, 40]), np.array([40, 40]), generator())

    assert found.p_value == 1.0
    assert found.effect == 0.0


def test_a_class_that_training_lacks_shows_in_the_shares():
    found = class_count_test(np.array([50, 0]), np.array([20, 20]), generator())

    assert found.p_value < 0.01
    assert found.effect == pytest.approx(0.5, abs=0.15)


def test_the_largest_gap_of_one_feature_has_the_p_value_of_mann_and_whitney():
    """Of one feature the two ask the same; by dealing 4,000 times, to about 0.006."""
    z, z_val = generator(3).normal(size=60), generator(4).normal(0.4, 1, size=20)
    both, is_val = np.concatenate([z, z_val])[:, None], np.arange(80) >= 60
    two = np.concatenate([both, both], axis=1)  # a copy of a feature is no further question
    zeros = np.zeros(80, dtype=int)
    found = largest_gaps(both, is_val, zeros, generator(5), draws=4000)
    again = largest_gaps(two, is_val, zeros, generator(5), draws=4000)
    exact = mannwhitneyu(z, z_val).pvalue

    assert again == pytest.approx([found[0]] * 2)
    assert exact < found[0] < 2.2 * exact  # where the rows lie, and how spread they are


def test_corrected_p_values_hold_their_level_over_all_features():
    rng = generator(0)
    least = [
        largest_gaps(
            rng.normal(size=(60, 5)), np.arange(60) < 20, np.arange(60) % 2, rng, draws=99
        ).min()
        for _ in range(300)
    ]
    for level in (0.05, 0.2):
        assert np.mean(np.array(least) <= level) == pytest.approx(
            level, abs=2.6 * np.sqrt(level / 300)
        )


def test_one_block_gives_the_p_value_of_mann_and_whitney():
    """Eight validation rows make two blocks, of which one is judged: an ordinary rank test."""
    z, z_val = generator(3).normal(size=(40, 2)), generator(4).normal(0.5, 1, size=(8, 2))
    both, is_val = np.concatenate([z, z_val]), np.arange(48) >= 40
    zeros = np.zeros(48, dtype=int)
    after = generator(5)
    single = largest_gaps(both, is_val, zeros, after).min()
    blocks = judged_by_the_past(both, is_val, zeros, blocks=2, generator=after)
    rows, score = next(iter(blocks))
    exact = mannwhitneyu(
        score[is_val[rows]], score[~is_val[rows]],
        alternative="greater", method="asymptotic", use_continuity=False,
    )  # fmt: skip
    found = features_test(z, z_val, generator(5)).p_value
    assert found == pytest.approx(2 * min(single, exact.pvalue))


@pytest.mark.parametrize("m", [0, 7])
def test_too_few_rows_are_not_tested(m):
    z = np.zeros((50, 1))
    assert features_test(z, np.zeros((m, 1)), generator()) is None
    assert class_count_test(np.array([50]), np.array([m]), generator()) is None


def test_holm_by_hand():
    """At 5 % with three tests: 0.01 < 0.05 / 3, 0.03 > 0.05 / 2, so only the first is found."""

    def corrected(*p_values, kind="label"):
        return holm([Finding(kind, p_value=p) for p in p_values])

    assert_allclose(corrected(0.03, 0.01, 0.04), [0.06, 0.03, 0.06])
    assert_allclose(corrected(0.02, 0.01, 0.4), [0.04, 0.03, 0.4])
    assert_allclose(corrected(0.7, 0.6), [1, 1])


def test_holm_weighs_rows_outside_by_half():
    """Of two questions it has a third of the error, and all of it once the other is answered."""
    tests = [Finding("outside", p_value=0.011), Finding("label", p_value=0.02)]
    assert_allclose(holm(tests), [0.03, 0.03])


def test_odds_follow_the_ratio():
    """From N(0, 1) to N(1, 1) the ratio rises with x."""
    rng = generator()
    z, z_val = rng.normal(size=(600, 1)), rng.normal(1, 1, size=(300, 1))
    odds, val_odds = odds_of_membership(z, z_val, generator(1))

    assert odds[z[:, 0] > 1].mean() > 3 * odds[z[:, 0] < -1].mean()
    assert val_odds.mean() > odds.mean()
