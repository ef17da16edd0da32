"""The label test asks about labels, and not about features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from giw.diagnosis.labels import calibrated, cross_fit, expected_of, redrawn_p_value, unexplained
from giw.diagnosis.labels import label_test as ask
from giw.diagnosis.membership import odds_of_membership


def generator(seed=0):
    return np.random.default_rng(seed)


def label_test(z, z_val, odds, surprise, wrong, generator):
    both, n = np.concatenate([z, z_val]), len(z)
    f = np.column_stack([np.concatenate(side) for side in (surprise, wrong)])
    left = f - expected_of(both, f, generator, np.arange(len(f)) < n)
    return ask(odds, (left[:n], left[n:]), generator)


def even(n, m):
    return np.ones(n), np.ones(m)


def test_eight_labels_without_a_surprise_are_no_proof():
    """One training label in five surprises; none of eight does with probability 0.8^8 = 0.17."""
    z = np.zeros((400, 1))
    f, none = np.resize([1.0, 0.0, 0.0, 0.0, 0.0], 400), np.zeros(8)
    few = label_test(z, z[:8], even(400, 8), (f, none), (f, none), generator(0))
    many = np.zeros(80)
    found = label_test(z, z[:80], even(400, 80), (f, many), (f, many), generator(0))
    assert few.p_value > 0.05
    assert found.p_value < 1e-3


def test_labels_are_compared_at_equal_features():
    """Where the surprise depends on x only, a shift of x is none of the labels."""
    rng = generator()
    z, z_val = rng.normal(size=(400, 1)), rng.normal(0.7, 0.7, size=(150, 1))

    def surprise(points, more=0.0):
        mean = 1 / (1 + np.exp(-points[:, 0])) * 0.5 + more
        return (rng.random(len(points)) < mean).astype(float)

    odds = odds_of_membership(z, z_val, generator(1))
    f, same, other = surprise(z), surprise(z_val), surprise(z_val, 0.3)
    unchanged = label_test(z, z_val, odds, (f, same), (f, same), generator(2))
    changed = label_test(z, z_val, odds, (f, other), (f, other), generator(2))

    assert unchanged.p_value > 0.01
    assert changed.p_value < 1e-3
    assert changed.interval[0] < 0.3 < changed.interval[1]


def test_the_regression_alone_makes_features_comparable():
    """With even odds the comparison is right as long as the regression is."""
    rng = generator()
    z, z_val = rng.normal(size=(400, 1)), rng.normal(1.5, 0.5, size=(150, 1))
    f, f_val = (np.clip(0.5 + 0.2 * side[:, 0], 0, 1) for side in (z, z_val))
    found = label_test(z, z_val, even(400, 150), (f, f_val), (f, f_val), generator(1))

    assert f_val.mean() - f.mean() > 0.25
    assert found.effect < 0.03


def test_the_chances_alone_make_features_comparable():
    """A third of the world each at two places: the surprise is 0 here, 1 there, on both sides.

    Nothing is left to a regression: the chances know that validation rows are mostly there.
    """
    place = np.repeat([0.0, 1.0, 0.0, 1.0], [300, 100, 20, 60])
    is_val = np.repeat([0.0, 1.0], [400, 80])
    right = np.where(place == 1, 60 / 160, 20 / 320)
    assert redrawn_p_value(is_val, right, place[:, None], generator()) > 0.5
    assert redrawn_p_value(is_val, np.full(480, 1 / 6), place[:, None], generator()) < 1e-3


def test_redrawn_sides_hold_their_level():
    """With the right chances every level is held; 1,000 p-values show it to about two points."""
    rng = generator(1)
    chance = np.where(np.arange(60) < 40, 0.1, 0.5)
    surprise = rng.exponential(size=60) ** 3  # a few rows surprise much
    left = np.column_stack(
        [surprise, np.cbrt(surprise) + rng.normal(size=60)]
    )  # two ways of looking at them
    p_value = np.array(
        [
            redrawn_p_value((rng.random(60) < chance).astype(float), chance, left, rng)
            for _ in range(1000)
        ]
    )
    for level in (0.05, 0.2):
        assert np.mean(p_value <= level) == pytest.approx(level, abs=2.6 * np.sqrt(level / 1000))


def test_either_of_two_columns_is_enough():
    """The second column says which side a row is from, in other units; the first says nothing."""
    is_val = np.repeat([0.0, 1.0], [400, 100])
    both = np.column_stack([generator().normal(size=500), 1e-3 * is_val])
    assert redrawn_p_value(is_val, np.full(500, 0.2), both, generator()) == 1 / 2001


def test_what_was_seen_is_one_of_the_draws():
    """However strong the evidence, 2,000 draws cannot show less than one in 2,001."""
    is_val = np.repeat([0.0, 1.0], [400, 100])
    assert redrawn_p_value(is_val, np.full(500, 0.2), is_val[:, None], generator()) == 1 / 2001


def test_chances_are_right_on_average_and_rise_with_the_odds():
    rng = generator()
    truth = rng.normal(size=2000) - 2
    is_val = (rng.random(2000) < 1 / (1 + np.exp(-truth))).astype(float)
    chance = calibrated(np.exp(3 * truth), is_val)  # odds that are far too sure
    assert chance.mean() == pytest.approx(is_val.mean(), abs=0.005)
    assert_allclose(chance, 1 / (1 + np.exp(-truth)), atol=0.06)


def test_odds_that_point_the_wrong_way_are_not_followed():
    is_val = np.repeat([0.0, 1.0], [30, 10])
    assert_allclose(calibrated(np.exp(-is_val), is_val), 0.25)
    assert_allclose(calibrated(np.ones(40), is_val), 0.25)


def test_odds_follow_the_ratio():
    """From N(0, 1) to N(1, 1) the ratio rises with x."""
    rng = generator()
    z, z_val = rng.normal(size=(600, 1)), rng.normal(1, 1, size=(300, 1))
    odds, val_odds = odds_of_membership(z, z_val, generator(1))

    assert odds[z[:, 0] > 1].mean() > 3 * odds[z[:, 0] < -1].mean()
    assert val_odds.mean() > odds.mean()


@pytest.mark.parametrize("m", [0, 7])
def test_too_few_rows_are_not_tested(m):
    left = np.zeros((50, 2)), np.zeros((m, 2))
    assert ask(even(50, m), left, generator()) is None


def test_labels_that_features_decide_leave_nothing_by_side():
    """Few different rows: each model is less sure of those that it lacks, and so of its own fold.

    With a regression on the features alone, nine in ten of such tables alarmed.
    """
    p_value = []
    for seed in range(12):
        rng = generator(seed)
        z = rng.integers(0, 3, (400, 4)).astype(float)
        y = (z[:, 0] + z[:, 1] > 2).astype(int)
        fitted = cross_fit(z[:200], y[:200], z[200:], classes=2, generator=rng)
        sides = fitted.surprise(y[:200], y[200:]), fitted.sureness()
        surprise, sure = map(np.concatenate, sides)
        left = np.repeat(unexplained(z, sure, surprise, rng)[:, None], 2, axis=1)
        p_value.append(ask(even(200, 200), (left[:200], left[200:]), rng).p_value)
    assert np.mean(np.array(p_value) < 0.05) <= 0.25
