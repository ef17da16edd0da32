"""The empirical objective converges to J_G: unbiased, of known variance, at the rate 1 / sqrt(n).

The weight is the true one, so that what converges is the objective and not a density ratio.
"""

from fractions import Fraction
from itertools import product
from math import prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.theory.empirical import empirical_J_G
from tests.theory.finite import (
    FiniteShift,
    any_case,
    case_i,
    case_iii,
    losses,
    memberships,
    perfect_sample,
    quantile_sample,
    times,
    variance,
    within_support,
)

# Case (iv) with unequal weights inside: every term of the objective has something to do.
SHIFT = FiniteShift.from_counts(train=[4, 2, 2, 0], test=[0, 1, 3, 2])
LOSS = [Fraction(9), Fraction(1), Fraction(2), Fraction(6)]
KNOWN = {"loss": LOSS, "weight": SHIFT.inside_ratio(), "inside": SHIFT.true_inside}


def moments_over_all_samples(shift, *, n, m, loss, inside):
    """Mean and variance of the library's objective over every sample of n and m atoms there is."""
    atoms = range(len(loss))
    weight = shift.inside_ratio(inside)
    first = second = 0.0
    for train, val in product(product(atoms, repeat=n), product(atoms, repeat=m)):
        chance = prod(shift.p_train[a] for a in train) * prod(shift.p_test[a] for a in val)
        if chance:
            value = empirical_J_G(train, val, loss=loss, weight=weight, inside=inside)
            first, second = first + float(chance) * value, second + float(chance) * value**2
    return first, second - first**2


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (3, 2), (2, 3)])
def test_over_all_samples_the_mean_is_the_risk_and_the_variance_as_computed(n, m):
    """No noise at all: each of the possible samples enters with its probability."""
    mean, spread = moments_over_all_samples(SHIFT, n=n, m=m, loss=LOSS, inside=SHIFT.true_inside)

    assert mean == pytest.approx(float(SHIFT.R(LOSS)), rel=1e-12)
    assert spread == pytest.approx(
        float(SHIFT.variance(LOSS, SHIFT.true_inside, n=n, m=m)), rel=1e-10
    )


def test_a_soft_split_within_the_support_is_unbiased_over_all_samples_too():
    posterior = [Fraction(1, 2), Fraction(1, 4), Fraction(1), Fraction(0)]

    mean, spread = moments_over_all_samples(SHIFT, n=2, m=2, loss=LOSS, inside=posterior)

    assert mean == pytest.approx(float(SHIFT.R(LOSS)), rel=1e-12)
    assert spread == pytest.approx(float(SHIFT.variance(LOSS, posterior, n=2, m=2)), rel=1e-10)


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_the_standard_deviation_falls_as_one_over_the_square_root_of_the_size(data):
    """n Var tends to a constant from above, and is within Var[s] Var[w loss] / n of it."""
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))
    inside = within_support(shift, data.draw(memberships(shift, soft=True)))
    excess = variance(shift.p_test, inside) * variance(
        shift.p_train, times(shift.inside_ratio(inside), loss)
    )

    scaled = [n * shift.variance(loss, inside, n=n, m=n) for n in (10, 100, 1000)]
    limit = scaled[0] - excess / 10

    assert scaled == [limit + excess / n for n in (10, 100, 1000)]
    assert limit >= 0


def test_samples_at_evenly_spaced_levels_converge_within_a_proven_bound():
    """Each atom is met within one of n p times, so no error exceeds (sum of terms) / n."""
    terms = sum(SHIFT.alpha() * w * v for w, v in zip(SHIFT.inside_ratio(), LOSS, strict=True))
    # alpha differs by at most k / n, which multiplies a weighted mean of at most J_G + terms / n
    k = len(LOSS)
    for n in (16, 64, 256, 1024):
        train, val = quantile_sample(SHIFT.p_train, n), quantile_sample(SHIFT.p_test, n)
        bound = (terms + sum(LOSS)) / n + Fraction(k, n) * max(times(SHIFT.inside_ratio(), LOSS))

        error = abs(empirical_J_G(train, val, **KNOWN) - float(SHIFT.J_G(LOSS)))

        assert error <= bound


def test_the_error_of_random_samples_shrinks_at_the_computed_rate():
    """Root mean square over 200 draws with a fixed seed; its own relative error is about 5 %."""
    rng = np.random.default_rng(0)
    p_train, p_test = (np.array(p, dtype=float) for p in (SHIFT.p_train, SHIFT.p_test))
    target = float(SHIFT.J_G(LOSS))

    def root_mean_square(n):
        draws = [
            empirical_J_G(rng.choice(4, n, p=p_train), rng.choice(4, n, p=p_test), **KNOWN)
            for _ in range(200)
        ]
        return float(np.sqrt(np.mean((np.array(draws) - target) ** 2)))

    sizes = [25, 100, 400, 1600]
    errors = [root_mean_square(n) for n in sizes]
    computed = [sqrt(SHIFT.variance(LOSS, SHIFT.true_inside, n=n, m=n)) for n in sizes]

    assert errors == sorted(errors, reverse=True)
    assert errors == pytest.approx(computed, rel=0.2)  # four of its standard errors


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_with_plenty_of_training_data_a_wider_inside_set_never_varies_more(data):
    """What a point called outside by mistake costs: the spread of the inside losses it leaves.

    By hand the validation term is Var[loss] - alpha Var[loss | inside], for a hard split.
    """
    shift = data.draw(any_case)
    loss = data.draw(losses(shift))
    wide = within_support(shift, data.draw(memberships(shift, soft=False)))
    narrow = times(wide, data.draw(memberships(shift, soft=False)))

    alpha, explained = shift.alpha(wide), Fraction(0)
    if alpha > 0:
        given_inside = [p * s / alpha for p, s in zip(shift.p_test, wide, strict=True)]
        explained = alpha * variance(given_inside, loss)

    left = shift.validation_variance(loss, wide)
    assert left == variance(shift.p_test, loss) - explained
    assert left <= shift.validation_variance(loss, narrow)


def test_with_little_training_data_the_narrower_set_can_vary_less():
    """A weight of a hundred on one rare training atom: leaving that atom outside is the calmer."""
    shift = FiniteShift.from_counts(train=[1, 99], test=[1, 0])
    loss, nothing = [Fraction(1), Fraction(1)], [Fraction(0)] * 2

    assert shift.variance(loss, shift.true_inside, n=10, m=10) > 0
    assert shift.variance(loss, nothing, n=10, m=10) == 0


@given(st.data(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_the_ratio_of_observed_frequencies_gives_back_the_validation_mean(data, random):
    """A ratio that fits every atom by itself gains nothing over validation data alone.

    What training adds comes from weights smoother than the sample, not from the identity.
    """
    shift = data.draw(st.one_of(case_i, case_iii))
    loss = data.draw(losses(shift))
    train = perfect_sample(shift.p_train)  # every atom of the support is seen
    val = random.choices(range(len(loss)), weights=shift.p_test, k=7)
    seen = FiniteShift.from_counts(
        [train.count(atom) for atom in range(len(loss))],
        [val.count(atom) for atom in range(len(loss))],
    )

    got = empirical_J_G(train, val, loss=loss, weight=seen.inside_ratio(), inside=seen.true_inside)

    assert got == pytest.approx(float(sum(loss[atom] for atom in val)) / 7, rel=1e-12)
