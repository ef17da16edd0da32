"""Distributions on finitely many atoms (x, y), where every expectation is an exact sum.

Probabilities, losses and weights are fractions, so that two sides of an identity are compared with
``==`` and not within a tolerance. An atom is a pair (x, y); nothing in the theory asks more of it
than its two probabilities and its loss, so it is known by its position alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import lcm

from hypothesis import strategies as st

Values = Sequence[Fraction]  # one per atom: a loss, a weight or a membership


@dataclass(frozen=True)
class FiniteShift:
    """A training and a test distribution on the same k atoms."""

    p_train: tuple[Fraction, ...]  # (k,)
    p_test: tuple[Fraction, ...]  # (k,)

    def __post_init__(self) -> None:
        for p in (self.p_train, self.p_test):
            assert sum(p) == 1
            assert min(p) >= 0
        assert len(self.p_train) == len(self.p_test)

    @classmethod
    def from_counts(cls, train: Sequence[int], test: Sequence[int]) -> FiniteShift:
        """Probabilities in proportion to whole numbers."""
        return cls(
            tuple(Fraction(count, sum(train)) for count in train),
            tuple(Fraction(count, sum(test)) for count in test),
        )

    @property
    def true_inside(self) -> tuple[Fraction, ...]:
        """The support-splitting variable s: 1 on the training support, 0 elsewhere."""
        return tuple(Fraction(p > 0) for p in self.p_train)

    @property
    def case(self) -> str:
        """Which of the paper's four relations between the two supports holds."""
        train = {atom for atom, p in enumerate(self.p_train) if p}
        test = {atom for atom, p in enumerate(self.p_test) if p}
        if train == test:
            return "i"
        if train > test:
            return "ii"
        if train < test:
            return "iii"
        return "iv" if train & test else "disjoint"

    def R(self, loss: Values) -> Fraction:
        """Risk: the test expectation of the loss."""
        return expectation(self.p_test, loss)

    def J(self, loss: Values) -> Fraction:
        """Expected objective of importance weighting, with w* = p_te / p_tr."""
        return expectation(self.p_train, times(self.test_ratio(), loss))

    def J_G(self, loss: Values, inside: Values | None = None) -> Fraction:
        """Expected objective of GIW for a hard or soft membership (the true one by default)."""
        inside = self.true_inside if inside is None else inside
        weighted = times(self.inside_ratio(inside), loss)
        outside = [1 - s for s in inside]
        return self.alpha(inside) * expectation(self.p_train, weighted) + expectation(
            self.p_test, times(outside, loss)
        )

    def alpha(self, inside: Values | None = None) -> Fraction:
        """Test expectation of the membership, p(s = 1)."""
        return expectation(self.p_test, self.true_inside if inside is None else inside)

    def test_ratio(self) -> list[Fraction]:
        """w* = p_te / p_tr on the training support; training points lie nowhere else."""
        return [q / p if p else Fraction(0) for p, q in zip(self.p_train, self.p_test, strict=True)]

    def inside_ratio(self, inside: Values | None = None) -> list[Fraction]:
        """p(x, y | s = 1) / p_tr, which is w* s / alpha; nothing inside leaves no weight at all."""
        inside = self.true_inside if inside is None else inside
        alpha = self.alpha(inside)
        if alpha == 0:
            return [Fraction(0)] * len(inside)
        return [w * s / alpha for w, s in zip(self.test_ratio(), inside, strict=True)]

    def leak(self, inside: Values) -> Fraction:
        """Share of the inside distribution p(x, y | s = 1) that training never sees."""
        outside = [s * (p == 0) for s, p in zip(inside, self.p_train, strict=True)]
        return expectation(self.p_test, outside) / self.alpha(inside)

    def variance(self, loss: Values, inside: Values, *, n: int, m: int) -> Fraction:
        r"""Exact variance of the empirical objective on n training and m validation points.

        With the weight known and alpha the sample's own mean membership, conditioning on the
        validation sample gives, with :math:`\mu = E_{\rm tr}[w \ell]`,

        .. math:: (\alpha^2 + V_{\rm te}[s]/m)\, V_{\rm tr}[w \ell] / n
                  + V_{\rm te}[s \mu + (1 - s) \ell] / m .
        """
        squared_alpha = self.alpha(inside) ** 2 + variance(self.p_test, inside) / m
        weighted = times(self.inside_ratio(inside), loss)
        of_training = squared_alpha * variance(self.p_train, weighted) / n
        return of_training + self.validation_variance(loss, inside) / m

    def validation_variance(self, loss: Values, inside: Values) -> Fraction:
        """What one validation point contributes: all that is left as training data grow."""
        mu = expectation(self.p_train, times(self.inside_ratio(inside), loss))
        mixed = [s * mu + (1 - s) * value for s, value in zip(inside, loss, strict=True)]
        return variance(self.p_test, mixed)


def expectation(p: Values, values: Values) -> Fraction:
    return sum((a * b for a, b in zip(p, values, strict=True)), Fraction(0))


def variance(p: Values, values: Values) -> Fraction:
    return expectation(p, times(values, values)) - expectation(p, values) ** 2


def times(left: Values, right: Values) -> list[Fraction]:
    return [a * b for a, b in zip(left, right, strict=True)]


def perfect_sample(p: Values) -> list[int]:
    """The smallest sample whose frequencies are exactly p: noise taken out altogether."""
    size = lcm(*(q.denominator for q in p))
    return [atom for atom, q in enumerate(p) for _ in range(int(q * size))]


def quantile_sample(p: Values, size: int) -> list[int]:
    """Atoms at evenly spaced levels: each is met within one of size * p times."""
    cumulative = list(accumulate(p))
    levels = (Fraction(2 * i + 1, 2 * size) for i in range(size))
    return [next(atom for atom, c in enumerate(cumulative) if level < c) for level in levels]


# Strategies --------------------------------------------------------------------------------------

counts = st.integers(1, 9)


def shifts(*, both: bool, train_only: bool, test_only: bool) -> st.SearchStrategy[FiniteShift]:
    """Shifts with one to three atoms in each region that is asked for."""

    def region(asked: bool) -> st.SearchStrategy[list[tuple[int, int]]]:
        pairs = st.lists(st.tuples(counts, counts), min_size=1, max_size=3)
        return pairs if asked else st.just([])

    def build(
        common: list[tuple[int, int]], train: list[tuple[int, int]], test: list[tuple[int, int]]
    ) -> FiniteShift:
        pairs = common + [(a, 0) for a, _ in train] + [(0, b) for _, b in test]
        return FiniteShift.from_counts([a for a, _ in pairs], [b for _, b in pairs])

    return st.builds(build, region(both), region(train_only), region(test_only))


case_i = shifts(both=True, train_only=False, test_only=False)
case_ii = shifts(both=True, train_only=True, test_only=False)
case_iii = shifts(both=True, train_only=False, test_only=True)
case_iv = shifts(both=True, train_only=True, test_only=True)
covered = st.one_of(case_i, case_ii)  # the training support covers the test support
uncovered = st.one_of(case_iii, case_iv)  # it does not
any_case = st.one_of(covered, uncovered)


def losses(shift: FiniteShift) -> st.SearchStrategy[list[Fraction]]:
    """A positive loss for each atom: what some classifier would suffer there."""
    value = st.builds(Fraction, st.integers(1, 10_000), st.just(100))
    return st.lists(value, min_size=len(shift.p_train), max_size=len(shift.p_train))


def memberships(shift: FiniteShift, *, soft: bool) -> st.SearchStrategy[list[Fraction]]:
    """Any membership of the atoms, in or out of the training support."""
    value = st.builds(Fraction, st.integers(0, 8), st.just(8))
    value = value if soft else st.integers(0, 1).map(Fraction)
    return st.lists(value, min_size=len(shift.p_train), max_size=len(shift.p_train))


def within_support(shift: FiniteShift, membership: Values) -> list[Fraction]:
    """The same membership, made to vanish outside the training support."""
    return times(membership, shift.true_inside)
