"""The paper's two examples: two classes on a two-by-two grid of unit squares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_generator
from giw.paper.readers.sample import Sample

TOP_LEFT, BOTTOM_LEFT, TOP_RIGHT, BOTTOM_RIGHT = SQUARES = range(4)
MARGIN = 0.1  # between two adjacent squares
_OFFSET = (1 + MARGIN) / 2  # from the centre of the grid to the centre of a square
CENTERS = _OFFSET * np.array([[-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])  # (4, 2)
# In example 1 the right squares carry the labels of the left ones, in example 2 the opposite.
LABELS = {1: np.array([1, 0, 1, 0]), 2: np.array([1, 0, 0, 1])}
CLASSES = ("blue", "red")


def four_squares(
    *,
    example: int,
    n: int,
    squares: Sequence[int] = tuple(SQUARES),
    random_state: int | np.random.Generator | None = None,
) -> Sample:
    """Points spread uniformly over unit squares, 0.1 apart, around the origin.

    Parameters
    ----------
    example : 1 or 2
        1: red on the top and blue on the bottom. 2: the same on the left, the opposite on the
        right, a checkerboard.
    n : int
        Number of points, shared equally among ``squares`` (one more in the first ones where it
        does not divide).
    squares : sequence of int
        Which squares: 0 top left, 1 bottom left, 2 top right, 3 bottom right. This is ``group``.
    random_state : int, generator or None
    """
    check_example(example)
    if n < 1 or not squares or not set(squares) <= set(SQUARES):
        raise ValueError(f"need n ≥ 1 points on squares out of 0 to 3, got n={n} on {squares}")
    square = np.resize(np.asarray(squares, dtype=np.int64), n)  # (n,)
    shift = as_generator(random_state).uniform(-0.5, 0.5, size=(n, 2))
    return squares_sample(CENTERS[square] + shift, square, example=example)


def squares_sample(
    points: NDArray[np.float64],  # (n, 2)
    square: NDArray[np.int64],  # (n,)
    *,
    example: int,
) -> Sample:
    """Label points by the square they lie in."""
    labels = LABELS[check_example(example)][square]
    return Sample(points.astype(np.float32), labels, square, classes=CLASSES)


def check_example(example: int) -> int:
    """The paper has two examples."""
    if example not in LABELS:
        raise ValueError(f"example must be 1 or 2, got {example!r}")
    return example
