"""A posterior in place of a hard split: consistent if and only if it vanishes off the support."""

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.theory.empirical import library_J_G
from tests.theory.finite import (
    FiniteShift,
    any_case,
    expectation,
    losses,
    memberships,
    times,
    uncovered,
    within_support,
)

exactly = settings(deadline=None, max_examples=60)
close = {"rel": 1e-12}


@given(st.data())
@exactly
def test_a_posterior_that_vanishes_outside_the_support_is_exact(data):
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))
    posterior = within_support(shift, data.draw(memberships(shift, soft=True)))

    assert shift.J_G(loss, posterior) == shift.R(loss)
    assert library_J_G(shift, loss, posterior) == pytest.approx(float(shift.R(loss)), **close)


@given(st.data())
@exactly
def test_any_other_posterior_loses_the_risk_that_leaks(data):
    r"""Bias = -sum of p_te s loss over the atoms outside the training support, for any loss."""
    shift = data.draw(uncovered)
    loss = data.draw(losses(shift))
    posterior = data.draw(memberships(shift, soft=True))
    leaked = [s * (1 - true) for s, true in zip(posterior, shift.true_inside, strict=True)]
    assume(any(leaked))

    bias = -expectation(shift.p_test, times(leaked, loss))

    assert bias < 0
    assert shift.J_G(loss, posterior) == shift.R(loss) + bias
    assert library_J_G(shift, loss, posterior) == pytest.approx(
        float(shift.R(loss) + bias), **close
    )


def mean_one(shift: FiniteShift, posterior: list[Fraction]) -> list[Fraction]:
    """The weight that an estimator normalised to mean one over training arrives at."""
    weight = shift.inside_ratio(posterior)
    return [w / expectation(shift.p_train, weight) for w in weight]


@given(st.data())
@exactly
def test_with_weights_of_mean_one_the_leak_is_filled_with_inside_losses(data):
    r"""Bias = alpha * leak * (mean loss of what stays inside - mean loss of what leaks).

    Where the leak is zero so is the bias; a loss that is the same everywhere hides it.
    """
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))
    posterior = data.draw(memberships(shift, soft=True))
    kept = within_support(shift, posterior)
    kept_mass = expectation(shift.p_test, kept)
    assume(kept_mass > 0)
    leaked = [s - k for s, k in zip(posterior, kept, strict=True)]
    leaked_mass = expectation(shift.p_test, leaked)

    bias = Fraction(0)
    if leaked_mass > 0:
        mean_kept = expectation(shift.p_test, times(kept, loss)) / kept_mass
        mean_leaked = expectation(shift.p_test, times(leaked, loss)) / leaked_mass
        bias = shift.alpha(posterior) * shift.leak(posterior) * (mean_kept - mean_leaked)
    got = library_J_G(shift, loss, posterior, weight=mean_one(shift, posterior))

    assert got == pytest.approx(float(shift.R(loss) + bias), **close)


def test_the_two_biases_by_hand():
    """One atom each side, p_te = 1/2 each, losses 1 and 3, posterior 1 and 1/2.

    True weight: the leak loses 1/2 * 1/2 * 3. Mean-one weight: 3/4 * 1/3 * (1 - 3).
    """
    shift = FiniteShift.from_counts(train=[1, 0], test=[1, 1])
    loss, posterior = [Fraction(1), Fraction(3)], [Fraction(1), Fraction(1, 2)]

    assert shift.R(loss) == 2
    assert shift.leak(posterior) == Fraction(1, 3)
    assert library_J_G(shift, loss, posterior) == 2 - 0.75
    assert library_J_G(shift, loss, posterior, weight=mean_one(shift, posterior)) == 2 - 0.5
