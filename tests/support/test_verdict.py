"""Which case is this?"""

import numpy as np
import pytest

from giw.support.verdict import which_case

CELLS = np.full(4, 0.25)


def sample(m, *, outside=0.0, cells=(0, 1, 2, 3), count=999):
    """Evenly spaced p-values for inside points, the smallest for outside ones."""
    out = round(outside * m)
    inside = m - out
    spread = np.ceil((np.arange(inside) + 0.5) / max(inside, 1) * (count + 1)) / (count + 1)
    order = np.random.default_rng(0).permutation(inside)
    p_value = np.concatenate([spread[order], np.full(out, 1 / (count + 1))])
    cell = np.resize(np.asarray(cells), m)
    return p_value, np.full(m, count), np.zeros(m, dtype=bool), cell, CELLS


@pytest.mark.parametrize(
    ("case", "outside", "cells"),
    [
        ("i", 0.0, (0, 1, 2, 3)),
        ("ii", 0.0, (0, 1)),
        ("iii", 0.5, (0, 1, 2, 3)),
        ("iv", 0.5, (0, 1)),
    ],
)
def test_a_thousand_clear_points_give_the_case(case, outside, cells):
    verdict = which_case(*sample(1_000, outside=outside, cells=cells))

    assert verdict.case == case
    assert verdict.possible == (case,)
    assert verdict.points_needed == verdict.points == 1_000
    assert f"case ({case})" in verdict.summary()


def test_few_points_leave_it_open_and_say_how_many_more():
    """Twenty points, none outside: up to about 0.14 or more may still be."""
    verdict = which_case(*sample(20))

    assert verdict.case == "cannot tell"
    assert "i" in verdict.possible
    assert verdict.val_outside[0] == 0.0
    assert verdict.val_outside[1] > 0.1
    assert verdict.points_needed > 20
    assert "would decide" in verdict.summary()


def test_twenty_points_can_still_show_that_something_is_outside():
    verdict = which_case(*sample(20, outside=0.6))

    assert verdict.val_outside[0] > 0.1
    assert set(verdict.possible) == {"iii", "iv"}


def test_a_smaller_materiality_needs_more_points():
    loose = which_case(*sample(40), materiality=0.3)
    strict = which_case(*sample(40), materiality=0.05)

    assert loose.points_needed < (strict.points_needed or np.inf)


def test_absence_from_training_cells_is_bounded_and_never_proved():
    verdict = which_case(*sample(1_000, cells=(0, 1)))

    assert verdict.train_outside == (0.5, 0.5)
    assert "never proved" in verdict.summary()


def test_a_rare_visit_is_negligible_and_a_regular_one_is_not():
    rare = [*sample(2_000, cells=(0, 1))]
    rare[3] = rare[3].copy()
    rare[3][np.flatnonzero(rare[0] > 0.2)[:4]] = 2  # four visits in two thousand
    regular = sample(2_000, cells=(0, 1, 2, 3))

    assert which_case(*rare).train_outside[0] == 0.5
    assert which_case(*regular).train_outside[1] == 0.0


def test_unseen_labels_are_outside():
    p_value, count, unseen, cell, share = sample(400)
    unseen[:200] = True
    p_value[:200] = 0.0

    assert which_case(p_value, count, unseen, cell, share).val_outside[0] > 0.4


@pytest.mark.parametrize("name", ["materiality", "negligible", "confidence"])
def test_thresholds_are_shares(name):
    with pytest.raises(ValueError, match=name):
        which_case(*sample(20), **{name: 1.0})
