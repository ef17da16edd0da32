"""The paper's two examples: importance weighting solves one and fails in the other.

Two classes on a two-by-two grid of unit squares, 0.1 apart; training has the two on the left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn

from giw.checks import as_generator
from giw.nets.methods import DIW, GIW, ValOnly
from giw.nets.models import MLP, initialised
from giw.nets.training import Method, Tensors, TrainingConfig, TrainingRecord, pretrain, train
from giw.paper.sample import Sample, ShiftProblem, Truth
from giw.paper.shifts import trial_seeds

LEFT, RIGHT = (0, 1), (2, 3)  # squares, the upper one first
CENTERS = 0.55 * np.array([[-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])  # (4, 2)
# In example 1 the right squares carry the labels of the left ones, in example 2 the opposite.
LABELS = {1: np.array([1, 0, 1, 0]), 2: np.array([1, 0, 0, 1])}
METHODS: tuple[Method, ...] = ValOnly(), DIW(), GIW(split_on="input")  # GIW splits on coordinates
CONFIG = TrainingConfig(
    epochs=100, pretrain_epochs=10, batch_size=100, learning_rate=1e-2, weight_decay=1e-3
)


def squares_sample(points: NDArray[np.float64], square: NDArray[np.int64], example: int) -> Sample:
    """Points (n, 2), labelled by the square they lie in, which is the group."""
    labels = LABELS[example][square]
    return Sample(points.astype(np.float32), labels, square, classes=("blue", "red"))


def four_squares_problem(
    *,
    example: int,
    n_train: int = 200,
    n_test: int = 2000,
    random_state: int | np.random.Generator | None = None,
) -> tuple[ShiftProblem, Truth]:
    """Training on the two left squares, test on all four; case (iii).

    The four validation points are one random point from each training square and the centre of
    each test-only square, as in the paper. Half of the test distribution lies inside.

    Parameters
    ----------
    example : 1 or 2
        1: red on the top and blue on the bottom. 2: the same on the left, the opposite on the
        right, a checkerboard.
    n_train, n_test : int
        Number of points, shared equally among two and four squares.
    random_state : int, generator or None
    """
    if example not in LABELS:
        raise ValueError(f"example must be 1 or 2, got {example!r}")
    rng = as_generator(random_state)

    def spread(n: int, squares: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        square = np.resize(np.asarray(squares, dtype=np.int64), n)  # (n,)
        return CENTERS[square] + rng.uniform(-0.5, 0.5, size=(n, 2)), square

    train = squares_sample(*spread(n_train, LEFT), example)
    drawn, _ = spread(2, LEFT)
    test = squares_sample(*spread(n_test, (*LEFT, *RIGHT)), example)
    points = np.concatenate([drawn, CENTERS[list(RIGHT)]])  # (4, 2)
    val = squares_sample(points, np.array([*LEFT, *RIGHT]), example)
    return ShiftProblem(train, val, test), Truth(np.isin(val.group, LEFT))


def trial_of(example: int, trial: int) -> tuple[ShiftProblem, nn.Module, int]:
    """Problem, initial net (a small perceptron) and seed of the batches of a trial."""
    seeds = trial_seeds(0, trial)
    problem, _ = four_squares_problem(example=example, random_state=seeds.draw)
    return problem, initialised(lambda: MLP(2, 2, hidden=(64, 64)), seeds.init), seeds.batches


def run_four_squares(example: int, *, trials: int = 20) -> dict[str, list[TrainingRecord]]:
    """Train each method on each trial of the first or the second example; records by method.

    All methods of a trial share its draw, its initial net, its pretraining and its batches.
    """
    records: dict[str, list[TrainingRecord]] = {method.name: [] for method in METHODS}
    for trial in range(trials):
        problem, net, seed = trial_of(example, trial)
        data = Tensors.from_problem(problem)
        start = pretrain(net, data, CONFIG, random_state=seed)
        for method in METHODS:
            record = train(method, net, data, CONFIG, random_state=seed, pretrained=start)
            records[method.name].append(record)
    return records
