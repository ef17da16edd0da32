"""Symmetric noise on the training labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from giw.checks import as_generator
from giw.paper.shift.problem import ShiftProblem, Truth, mean_one


def label_noise(
    problem: ShiftProblem,
    truth: Truth,
    *,
    rate: float,
    random_state: int | np.random.Generator | None = None,
) -> tuple[ShiftProblem, Truth]:
    r"""Flip training labels to another class with probability ``rate``.

    The rate :math:`\rho` is the total probability of leaving the true class, spread equally over
    the others: :math:`p(\tilde y \mid y) = 1 - \rho` for :math:`\tilde y = y` and
    :math:`\rho / (c - 1)` otherwise. Validation and test labels stay clean.

    In terms of the pair :math:`(x, y)` test data never show a flipped label, so its true weight is
    zero, and that of all others grows by one common factor to keep the mean at one.

    Parameters
    ----------
    problem, truth : ShiftProblem and Truth
        From :func:`~giw.paper.shift.support_shift` or another shift; both come back changed.
    rate : float
        Between 0 and 1.
    random_state : int, generator or None
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate is a probability between 0 and 1, got {rate}")
    if problem.n_classes < 2:
        raise ValueError("label noise needs at least two classes to flip between")
    if truth.flipped.any():
        raise ValueError("labels are noisy already; apply label_noise once, at the rate you want")
    rng = as_generator(random_state)
    train, n = problem.train, len(problem.train)
    # Both draws have a fixed length, so that a higher rate flips a superset of the same labels.
    flipped = rng.random(n) < rate
    step = rng.integers(1, problem.n_classes, size=n)  # 1 .. c − 1: never back to the true class
    noisy = np.where(flipped, (train.y + step) % problem.n_classes, train.y)
    weight = None if truth.weight is None else mean_one(np.where(flipped, 0.0, truth.weight))
    return (
        replace(problem, train=replace(train, y=noisy)),
        replace(truth, weight=weight, flipped=flipped),
    )
