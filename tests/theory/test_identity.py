"""J = R where training covers test, J < R where it does not, and J_G = R always.

Each statement is checked twice: between exact fractions, and between the fraction R and the
library's own objective on samples whose frequencies are exactly the probabilities.
"""

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.theory.empirical import empirical_J_G, library_J, library_J_G
from tests.theory.finite import (
    FiniteShift,
    any_case,
    case_i,
    case_ii,
    case_iii,
    case_iv,
    covered,
    expectation,
    losses,
    memberships,
    perfect_sample,
    times,
    uncovered,
    within_support,
)

exactly = settings(deadline=None, max_examples=60)
close = {"rel": 1e-12}  # double precision, summed over at most a few hundred points

# Training on atoms 0 and 1, test on 1 and 2; by hand, case (iv).
BY_HAND = FiniteShift.from_counts(train=[3, 1, 0], test=[0, 1, 3])
LOSS = [Fraction(5), Fraction(2), Fraction(4)]


@pytest.mark.parametrize(
    ("strategy", "name"), [(case_i, "i"), (case_ii, "ii"), (case_iii, "iii"), (case_iv, "iv")]
)
@given(data=st.data())
@settings(deadline=None, max_examples=20)
def test_the_strategies_draw_the_case_they_are_named_after(strategy, name, data):
    assert data.draw(strategy).case == name


def test_every_quantity_by_hand():
    assert BY_HAND.case == "iv"
    assert BY_HAND.alpha() == Fraction(1, 4)
    assert BY_HAND.test_ratio() == [0, 1, 0]
    assert BY_HAND.inside_ratio() == [0, 4, 0]
    assert BY_HAND.R(LOSS) == Fraction(7, 2)
    assert BY_HAND.J(LOSS) == Fraction(1, 2)
    assert BY_HAND.J_G(LOSS) == Fraction(7, 2)
    assert library_J(BY_HAND, LOSS) == 0.5
    assert library_J_G(BY_HAND, LOSS) == 3.5


@given(st.data())
@exactly
def test_importance_weighting_equals_the_risk_in_cases_i_and_ii(data):
    shift = data.draw(covered)
    loss = data.draw(losses(shift))

    assert shift.J(loss) == shift.R(loss)
    assert library_J(shift, loss) == pytest.approx(float(shift.R(loss)), **close)


@given(st.data())
@exactly
def test_importance_weighting_misses_the_outside_risk_in_cases_iii_and_iv(data):
    shift = data.draw(uncovered)
    loss = data.draw(losses(shift))
    outside = [1 - s for s in shift.true_inside]
    missed = expectation(shift.p_test, times(outside, loss))

    assert shift.J(loss) < shift.R(loss)
    assert shift.J(loss) == shift.R(loss) - missed
    assert library_J(shift, loss) == pytest.approx(float(shift.R(loss) - missed), **close)


@given(st.data())
@exactly
def test_generalized_importance_weighting_equals_the_risk_in_all_four_cases(data):
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))

    assert shift.J_G(loss) == shift.R(loss)
    assert library_J_G(shift, loss) == pytest.approx(float(shift.R(loss)), **close)


@given(st.data())
@exactly
def test_the_ratio_of_test_to_training_would_count_alpha_twice(data):
    """With w* = p_te / p_tr in its place the objective falls short by (1 - alpha) J."""
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))
    short = (1 - shift.alpha()) * shift.J(loss)

    got = library_J_G(shift, loss, weight=shift.test_ratio())

    assert got == pytest.approx(float(shift.R(loss) - short), **close)
    assert (short > 0) == (shift.case in {"iii", "iv"})


@given(st.data())
@exactly
def test_the_weight_has_mean_one_under_training(data):
    """So weights normalised to mean one, as kernel mean matching gives them, are of the right size;
    p_te / p_tr has mean alpha.
    """
    shift = data.draw(any_case)

    assert expectation(shift.p_train, shift.inside_ratio()) == 1
    assert expectation(shift.p_train, shift.test_ratio()) == shift.alpha()


@given(st.data())
@exactly
def test_generalized_reduces_to_ordinary_weighting_in_cases_i_and_ii(data):
    shift = data.draw(covered)
    loss = data.draw(losses(shift))

    assert shift.alpha() == 1
    assert shift.inside_ratio() == shift.test_ratio()
    assert shift.J_G(loss) == shift.J(loss)
    assert library_J_G(shift, loss) == pytest.approx(library_J(shift, loss), **close)


@given(st.data())
@exactly
def test_any_inside_set_within_the_training_support_is_exact(data):
    """Calling an inside point outside costs no bias."""
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))
    inside = within_support(shift, data.draw(memberships(shift, soft=False)))

    assert shift.J_G(loss, inside) == shift.R(loss)
    assert library_J_G(shift, loss, inside) == pytest.approx(float(shift.R(loss)), **close)


@given(st.data())
@exactly
def test_calling_outside_atoms_inside_costs_exactly_their_risk(data):
    shift = data.draw(uncovered)
    loss = data.draw(losses(shift))
    inside = data.draw(memberships(shift, soft=False))
    wrong = [s * (1 - true) for s, true in zip(inside, shift.true_inside, strict=True)]
    assume(any(wrong))

    bias = -expectation(shift.p_test, times(wrong, loss))

    assert bias < 0
    assert shift.J_G(loss, inside) - shift.R(loss) == bias
    assert library_J_G(shift, loss, inside) == pytest.approx(float(shift.R(loss) + bias), **close)


@given(st.data())
@exactly
def test_nothing_inside_is_the_validation_mean(data):
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))
    nothing = [Fraction(0)] * len(loss)

    assert shift.J_G(loss, nothing) == shift.R(loss)
    assert library_J_G(shift, loss, nothing) == pytest.approx(float(shift.R(loss)), **close)


@given(st.data())
@exactly
def test_steps_with_one_validation_point_each_average_to_the_whole(data):
    """Dividing by the batch and not by its outside points keeps small batches unbiased."""
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))
    train, val = perfect_sample(shift.p_train), perfect_sample(shift.p_test)
    known = {"loss": loss, "weight": shift.inside_ratio(), "inside": shift.true_inside}

    steps = [empirical_J_G(train, [atom], alpha=shift.alpha(), **known) for atom in val]

    assert sum(steps) / len(steps) == pytest.approx(float(shift.R(loss)), **close)
