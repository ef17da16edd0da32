"""The paper's two examples: importance weighting solves one and fails in the other.

Two classes on a two-by-two grid of unit squares; training has the two on the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import nn

from giw.checks import as_generator
from giw.nets.methods import DIW, GIW, ValOnly
from giw.nets.models import MLP, initialised
from giw.nets.training import Method, Tensors, TrainingConfig, TrainingRecord, pretrain, train
from giw.paper.sample import Sample
from giw.paper.shifts import ShiftProblem, TrialSeeds, Truth, trial_seeds, truth_of

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
        See :func:`four_squares`.
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
    truth = truth_of(train, val, test, np.ones(n_train))
    return ShiftProblem(train, val, test), truth


@dataclass(frozen=True)
class FourSquaresSettings:
    """One configuration for all methods and both examples."""

    hidden: tuple[int, ...] = (64, 64)
    config: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            epochs=100, pretrain_epochs=10, batch_size=100, learning_rate=1e-2, weight_decay=1e-3
        )
    )


def four_squares_methods() -> tuple[Method, ...]:
    """The three methods of the paper's figure; GIW splits on the two coordinates."""
    return ValOnly(), DIW(), GIW(split_on="input")


def make_problem(example: int, seeds: TrialSeeds) -> tuple[ShiftProblem, Truth]:
    """200 training points on the left, 4 validation points, one in each square."""
    return four_squares_problem(example=example, random_state=seeds.draw)


def make_net(settings: FourSquaresSettings, seed: int) -> nn.Module:
    """A small perceptron on two coordinates."""
    return initialised(lambda: MLP(2, 2, hidden=settings.hidden), seed)


def run_four_squares(
    example: int,
    *,
    trials: int = 20,
    random_state: int = 0,
    methods: Sequence[Method] | None = None,
    settings: FourSquaresSettings | None = None,
) -> dict[str, list[TrainingRecord]]:
    """Train each method on each trial of the first or the second example; records by method.

    All methods of a trial share its draw, its initial net, its pretraining and its batches.
    """
    settings, chosen = settings or FourSquaresSettings(), methods or four_squares_methods()
    records: dict[str, list[TrainingRecord]] = {method.name: [] for method in chosen}
    for trial in range(trials):
        seeds = trial_seeds(random_state, trial)
        data = Tensors.from_problem(make_problem(example, seeds)[0])
        net = make_net(settings, seeds.init)
        start = pretrain(net, data, settings.config, random_state=seeds.batches)
        for method in chosen:
            record = train(
                method, net, data, settings.config, random_state=seeds.batches, pretrained=start
            )
            records[method.name].append(record)
    return records
