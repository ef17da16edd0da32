"""The paper's two examples as problems: 200 training points, 4 validation points."""

from __future__ import annotations

import numpy as np

from giw.checks import as_generator
from giw.paper.readers.four_squares import (
    BOTTOM_LEFT,
    BOTTOM_RIGHT,
    CENTERS,
    TOP_LEFT,
    TOP_RIGHT,
    four_squares,
    squares_sample,
)
from giw.paper.shift.problem import ShiftProblem, Truth


def four_squares_problem(
    *,
    example: int,
    n_train: int = 200,
    n_test: int = 2000,
    random_state: int | np.random.Generator | None = None,
) -> tuple[ShiftProblem, Truth]:
    """Training on the two left squares, test on all four; case (iii).

    The four validation points are one random point from each training square and the centre of
    each test-only square, as in the paper. Half of the test distribution lies inside, and the true
    weight is one everywhere.

    Parameters
    ----------
    example : 1 or 2
        See :func:`giw.paper.readers.four_squares`.
    n_train, n_test : int
        Number of points, shared equally among two and four squares.
    random_state : int, generator or None
    """
    rng = as_generator(random_state)
    left, right = (TOP_LEFT, BOTTOM_LEFT), (TOP_RIGHT, BOTTOM_RIGHT)
    train = four_squares(example=example, n=n_train, squares=left, random_state=rng)
    drawn = four_squares(example=example, n=2, squares=left, random_state=rng)
    test = four_squares(example=example, n=n_test, random_state=rng)
    points = np.concatenate([drawn.x, CENTERS[list(right)]])  # (4, 2)
    val = squares_sample(points, np.array([*left, *right]), example=example)
    truth = Truth(
        inside=np.array([True, True, False, False]),
        weight=np.ones(n_train),
        flipped=np.zeros(n_train, dtype=bool),
        support_share=0.5,
        train_group=train.group,
        val_group=val.group,
        test_group=test.group,
    )
    return ShiftProblem(train, val, test), truth
