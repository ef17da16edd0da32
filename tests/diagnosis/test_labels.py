"""Labels given features: the test asks about labels, and models have not seen what they judge."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer

import giw
from giw.diagnosis.labels import (
    calibrated,
    cross_fit,
    expected_of,
    label_test,
    redrawn_p_value,
    suspects_among,
    twins,
)
from giw.diagnosis.shift_tests import odds_of_membership, together

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(500, 2)) + 4 * np.repeat([0, 1], 250)[:, None]
TRUE = np.repeat([0, 1], 250)
Z_VAL = Z[::5] + 0.01


def generator(seed=0):
    return np.random.default_rng(seed)


def ask(z, z_val, surprise, surprise_val, odds=None, seed=0):
    """The test of one surprise twice over, after a regression on training rows."""
    (both, is_val), f = together(z, z_val), np.concatenate([surprise, surprise_val])[:, None]
    left = f - expected_of(both, f, generator(seed), ~is_val)
    odds = np.ones(len(both)) if odds is None else np.concatenate(odds)
    chance = calibrated(odds, is_val, np.zeros(len(both)))
    return label_test(chance, odds[~is_val], is_val, np.hstack([left, left]), generator(seed + 1))


def test_eight_labels_without_a_surprise_are_no_proof():
    """One training label in five surprises; none of eight does with probability 0.8^8 = 0.17."""
    z, f = np.zeros((400, 1)), np.resize([1.0, 0.0, 0.0, 0.0, 0.0], 400)
    assert ask(z, z[:8], f, np.zeros(8)).p_value > 0.05
    assert ask(z, z[:80], f, np.zeros(80)).p_value < 1e-3


def test_labels_are_compared_at_equal_features():
    """Where the surprise depends on x only, a shift of x is none of the labels."""
    rng = generator()
    z, z_val = rng.normal(size=(400, 1)), rng.normal(0.7, 0.7, size=(150, 1))

    def surprise(points, more=0.0):
        mean = 1 / (1 + np.exp(-points[:, 0])) * 0.5 + more
        return (rng.random(len(points)) < mean).astype(float)

    odds, f = odds_of_membership(z, z_val, generator(1)), surprise(z)
    unchanged, changed = (ask(z, z_val, f, surprise(z_val, more), odds, 2) for more in (0, 0.3))

    assert unchanged.p_value > 0.01
    assert changed.p_value < 1e-3
    assert changed.interval[0] < 0.3 < changed.interval[1]


def test_the_regression_alone_makes_features_comparable():
    """With even odds the comparison is right as long as the regression is."""
    rng = generator()
    z, z_val = rng.normal(size=(400, 1)), rng.normal(1.5, 0.5, size=(150, 1))
    f, f_val = (np.clip(0.5 + 0.2 * side[:, 0], 0, 1) for side in (z, z_val))

    assert f_val.mean() - f.mean() > 0.25
    assert ask(z, z_val, f, f_val).effect < 0.03


def test_the_chances_alone_make_features_comparable():
    """A third of the world each at two places: the surprise is 0 here, 1 there, on both sides.

    Nothing is left to a regression: the chances know that validation rows are mostly there.
    """
    place = np.repeat([0.0, 1.0, 0.0, 1.0], [300, 100, 20, 60])
    is_val = np.repeat([False, True], [400, 80])
    right = np.where(place == 1, 60 / 160, 20 / 320)
    assert redrawn_p_value(is_val, right, place[:, None], generator()) > 0.5
    assert redrawn_p_value(is_val, np.full(480, 1 / 6), place[:, None], generator()) < 1e-3


def test_redrawn_sides_hold_their_level():
    """With the right chances every level is held; 1,000 p-values show it to about two points."""
    rng = generator(1)
    chance = np.where(np.arange(60) < 40, 0.1, 0.5)
    surprise = rng.exponential(size=60) ** 3  # a few rows surprise much
    left = np.column_stack([surprise, np.cbrt(surprise) + rng.normal(size=60)])
    p_value = np.array(
        [redrawn_p_value(rng.random(60) < chance, chance, left, rng) for _ in range(1000)]
    )
    for level in (0.05, 0.2):
        assert np.mean(p_value <= level) == pytest.approx(level, abs=2.6 * np.sqrt(level / 1000))


def test_either_of_two_columns_is_enough_and_what_was_seen_is_one_of_the_draws():
    """The second column says which side a row is from, in other units; the first says nothing.

    However strong the evidence, 2,000 draws cannot show less than one in 2,001.
    """
    is_val = np.repeat([False, True], [400, 100])
    both = np.column_stack([generator().normal(size=500), 1e-3 * is_val])
    assert redrawn_p_value(is_val, np.full(500, 0.2), both, generator()) == 1 / 2001


def test_chances_are_right_on_average_and_rise_with_the_odds():
    rng = generator()
    truth = rng.normal(size=2000) - 2
    is_val = rng.random(2000) < 1 / (1 + np.exp(-truth))
    odds = np.exp(3 * truth)  # far too sure
    chance = calibrated(odds, is_val, np.zeros(2000))
    assert chance.mean() == pytest.approx(is_val.mean(), abs=0.005)
    assert_allclose(chance, 1 / (1 + np.exp(-truth)), atol=0.06)


def test_odds_that_point_the_wrong_way_are_not_followed():
    is_val = np.repeat([False, True], [30, 10])
    label = np.zeros(40)
    assert_allclose(calibrated(np.exp(-1.0 * is_val), is_val, label), 0.25)
    assert_allclose(calibrated(np.ones(40), is_val, label), 0.25)


@pytest.mark.parametrize("what", ["class shares", "features"])
def test_chances_depend_on_what_differs_and_on_nothing_else(what):
    """Labels follow the features; either of them says which side a row is from, given the other."""
    x = generator().normal(size=4000)
    label = generator(1).random(4000) < 1 / (1 + np.exp(-2 * x))
    truth = np.where(label, 0.6, 0.1) if what == "class shares" else 1 / (1 + np.exp(1 - x))
    is_val = generator(2).random(4000) < truth
    p = 1 / (1 + np.exp(-2 * x))
    odds = 0.1 + 0.5 * p if what == "class shares" else truth
    found = calibrated(odds / (1 - odds), is_val, label)
    assert_allclose(found, truth, atol=0.08)


def test_other_class_shares_alone_are_no_shift_of_labels():
    """Tumours of which a tenth is malignant beside others of which most are.

    Compared at equal features alone, every one of these tables alarmed.
    """
    X, y = load_breast_cancer(return_X_y=True)
    found = []
    for seed in range(6):
        ill, well = (generator(seed).permutation(np.flatnonzero(y == k)) for k in (0, 1))
        train, val = np.r_[ill[:25], well[:225]], np.r_[ill[25:75], well[225:275]]
        told = giw.diagnose(X[train, :10], y[train], X[val, :10], y[val], random_state=seed)
        found += [test for test in told.shifts if test.kind == "label"]
    assert len(found) == 6
    assert np.mean([test.p_value < 0.05 for test in found]) <= 0.34
    assert not any(test.found for test in found)


# Models that have not seen the row ----------------------------------------------------------------


def suspects(label):
    train, _, _ = cross_fit(Z, label, Z_VAL, classes=2, generator=generator(1))
    return suspects_among(train, label, ("no", "yes"), np.arange(1000, 1500))


def test_clean_labels_raise_no_suspicion_and_flipped_ones_are_listed():
    flipped = generator(2).random(500) < 0.15
    found = suspects(np.where(flipped, 1 - TRUE, TRUE))

    assert suspects(TRUE) == ()
    assert len(found) > 20
    assert all(s.line == s.row + 2 for s in found)
    assert all(flipped[s.row - 1000] for s in found)
    assert all({s.label, s.likely} == {"no", "yes"} for s in found)


def test_a_validation_row_that_is_a_training_row_is_judged_by_the_forest_without_it():
    label = generator(4).integers(0, 2, 500)
    both = np.concatenate([Z[:50], Z_VAL[:20]])
    train, val, _ = cross_fit(Z, label, both, classes=2, generator=generator(1))
    for forest in val:
        assert_allclose(forest[:50], train[:50])
    assert np.ptp(val[:, 50:], axis=0).max() > 0


def test_twins_are_found_where_something_is_measured():
    assert twins(Z, np.concatenate([Z[[7, 3]], Z_VAL[:1]])).tolist() == [7, 3, -1]
    categories = np.arange(40.0)[:, None] % 3
    assert twins(categories, categories[:2]).tolist() == [-1, -1]


def test_a_row_never_votes_for_itself():
    """Random labels of far points: only a model that has seen them could be right."""
    z = 100.0 * np.arange(200)[:, None]
    label = generator(3).integers(0, 2, 200)
    train, _, _ = cross_fit(z, label, z[:0], classes=2, generator=generator(4))
    right = (train.argmax(axis=1) == label).mean()
    assert 0.35 < right < 0.65


def test_labels_that_features_decide_are_no_shift_of_labels():
    """Few different rows: each model is less sure of those that it lacks, and so of its own fold.

    With a regression on the features alone, nine in ten of such tables alarmed.
    """
    p_value = []
    for seed in range(6):
        z = generator(seed).integers(0, 3, (400, 4)).astype(float)
        y = z[:, 0] + z[:, 1] > 2
        found = giw.diagnose(z[:200], y[:200], z[200:], y[200:], random_state=seed)
        p_value += [test.p_value for test in found.shifts if test.kind == "label"]
    assert len(p_value) == 6
    assert np.mean(np.array(p_value) < 0.05) <= 0.34
