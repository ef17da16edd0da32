"""Proposition 3: importance weighting is classifier-consistent in the paper's first example of four
squares and not in the second. By exact minimisation over all sixteen sign patterns.

A calibrated loss depends on the sign of a classifier alone once its size is fixed, and the density
is flat within a square, so the atoms are (square, label) and a classifier is four signs.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, log1p

import pytest
from tests.theory.empirical import library_J, library_J_G
from tests.theory.finite import FiniteShift

SQUARES = [(-1, +1), (-1, -1), (+1, +1), (+1, -1)]  # (left or right, bottom or top)
LABELS = [-1, +1]
ATOMS = list(product(SQUARES, LABELS))
CLASSIFIERS = [dict(zip(SQUARES, signs, strict=True)) for signs in product(LABELS, repeat=4)]
CALIBRATED = {
    "logistic": lambda margin: log1p(exp(-margin)),
    "exponential": lambda margin: exp(-margin),
    "squared hinge, lifted above zero": lambda margin: max(0.0, 1 - margin) ** 2 + 0.1,
}

FIRST = {square: square[1] for square in SQUARES}  # red on top, blue below, on both sides
SECOND = {square: -square[0] * square[1] for square in SQUARES}  # a checkerboard


def four_squares(truth: dict) -> FiniteShift:
    """Training on the two squares on the left, test on all four."""
    label_is_right = [int(truth[square] == label) for square, label in ATOMS]
    on_the_left = [int(square[0] < 0) for square, _ in ATOMS]
    train = [a * b for a, b in zip(label_is_right, on_the_left, strict=True)]
    return FiniteShift.from_counts(train, label_is_right)


def loss_of(classifier: dict, calibrated) -> list[Fraction]:
    return [Fraction(calibrated(label * classifier[square])) for square, label in ATOMS]


def minimisers(objective) -> list[dict]:
    values = [float(objective(classifier)) for classifier in CLASSIFIERS]
    return [
        classifier
        for classifier, value in zip(CLASSIFIERS, values, strict=True)
        if value == pytest.approx(min(values), rel=1e-12)
    ]


def coordinates_used(classifier: dict) -> int:
    """How many of the two coordinates the sign depends on: the measure of what is simple."""
    flips = [lambda a, b: (-a, b), lambda a, b: (a, -b)]
    return sum(
        any(classifier[square] != classifier[flip(*square)] for square in SQUARES) for flip in flips
    )


def simplest(classifiers: list[dict]) -> list[dict]:
    fewest = min(map(coordinates_used, classifiers))
    return [classifier for classifier in classifiers if coordinates_used(classifier) == fewest]


def accuracy(classifier: dict, truth: dict) -> Fraction:
    return Fraction(sum(classifier[square] == truth[square] for square in SQUARES), len(SQUARES))


@pytest.fixture(params=CALIBRATED)
def calibrated(request):
    return CALIBRATED[request.param]


@pytest.mark.parametrize("truth", [FIRST, SECOND], ids=["first", "second"])
def test_both_examples_are_case_iii_with_half_the_test_squares_inside(truth):
    shift = four_squares(truth)

    assert shift.case == "iii"
    assert shift.alpha() == Fraction(1, 2)
    inside = [w for w, p in zip(shift.test_ratio(), shift.p_train, strict=True) if p]
    assert inside == [Fraction(1, 2)] * 2  # the paper's w*
    inside = [w for w, p in zip(shift.inside_ratio(), shift.p_train, strict=True) if p]
    assert inside == [1, 1]  # no shift is left within the support


@pytest.mark.parametrize("truth", [FIRST, SECOND], ids=["first", "second"])
def test_importance_weighting_knows_nothing_of_the_right_hand_side(truth, calibrated):
    shift = four_squares(truth)

    best = minimisers(lambda f: library_J(shift, loss_of(f, calibrated)))

    assert best == [
        f for f in CLASSIFIERS if all(f[square] == truth[square] for square in SQUARES[:2])
    ]
    assert len(best) == 4


def test_importance_weighting_is_classifier_consistent_in_the_first_example(calibrated):
    shift = four_squares(FIRST)

    best = simplest(minimisers(lambda f: library_J(shift, loss_of(f, calibrated))))

    assert best == minimisers(lambda f: shift.R(loss_of(f, calibrated))) == [FIRST]


def test_importance_weighting_is_no_better_than_guessing_in_the_second_example(calibrated):
    shift = four_squares(SECOND)

    best = simplest(minimisers(lambda f: library_J(shift, loss_of(f, calibrated))))

    assert minimisers(lambda f: shift.R(loss_of(f, calibrated))) == [SECOND]
    assert SECOND not in best
    assert [accuracy(f, SECOND) for f in best] == [Fraction(1, 2)]


@pytest.mark.parametrize("truth", [FIRST, SECOND], ids=["first", "second"])
def test_generalized_importance_weighting_is_classifier_consistent_in_both(truth, calibrated):
    """Among all sixteen patterns, so that no appeal to simplicity is needed."""
    shift = four_squares(truth)

    assert minimisers(lambda f: library_J_G(shift, loss_of(f, calibrated))) == [truth]
