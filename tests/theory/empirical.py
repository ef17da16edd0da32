"""The library's own objectives, fed with samples of atoms."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import torch
from tests.theory.finite import FiniteShift, Values, perfect_sample
from torch import Tensor

from giw.objective import generalized_risk, weighted_risk


def at(values: Values, atoms: Sequence[int]) -> Tensor:
    """The values that a sample of atoms meets, in double precision."""
    return torch.tensor([float(values[atom]) for atom in atoms], dtype=torch.float64)


def empirical_J(train: Sequence[int], *, loss: Values, weight: Values) -> float:
    return float(weighted_risk(at(loss, train), at(weight, train)))


def empirical_J_G(
    train: Sequence[int],
    val: Sequence[int],
    *,
    loss: Values,
    weight: Values,
    inside: Values,
    alpha: Fraction | float | None = None,  # the mean membership of ``val`` unless given
) -> float:
    membership = at(inside, val)
    alpha = float(membership.mean()) if alpha is None else float(alpha)
    return float(
        generalized_risk(at(loss, train), at(weight, train), at(loss, val), membership, alpha=alpha)
    )


def library_J(shift: FiniteShift, loss: Values) -> float:
    """The library's weighted risk on a sample whose frequencies are exactly p_train."""
    return empirical_J(perfect_sample(shift.p_train), loss=loss, weight=shift.test_ratio())


def library_J_G(
    shift: FiniteShift, loss: Values, inside: Values | None = None, weight: Values | None = None
) -> float:
    """The library's generalized risk on samples whose frequencies are exactly p_train and p_test.

    The membership is the true one and the weight p(x, y | s = 1) / p_tr, unless given.
    """
    inside = shift.true_inside if inside is None else inside
    weight = shift.inside_ratio(inside) if weight is None else weight
    train, val = perfect_sample(shift.p_train), perfect_sample(shift.p_test)
    return empirical_J_G(train, val, loss=loss, weight=weight, inside=inside)
