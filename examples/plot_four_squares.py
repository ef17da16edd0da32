"""Two examples in which training has no point in the right half.

Red against blue, on four squares. Training data fill the two squares on the left; validation and
test data come from all four, but there are only four validation points. In the first example
the right half follows the left, and plain importance weighting (DIW) has no problem. In the
second it contradicts the left, and importance weighting cannot know: no weight on a training
point says anything about a place where there are no training points. GIW notices that two
validation points lie outside and learns from them.

    python examples/plot_four_squares.py --trials 20 --out four_squares.png
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from torch import nn

from giw.checks import as_generator
from giw.nets.methods import DIW, GIW, ValOnly
from giw.nets.models import MLP, initialised
from giw.nets.training import Method, Tensors, TrainingConfig, TrainingRecord, pretrain, train
from giw.pages.tables import summarize, text_table
from giw.paper.shifts import Sample, ShiftProblem, Truth, trial_seeds

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


# The figure ---------------------------------------------------------------------------------------

RED, BLUE = "#c0392b", "#1f6fb4"
TITLES = {"val_only": "Val-only", "diw": "DIW", "giw": "GIW"}


def draw_points(axes: Axes, problem: ShiftProblem, *, training: bool) -> None:
    """Training points small (where shown), validation points as large stars."""
    colors = np.array([BLUE, RED])
    if training:
        axes.scatter(*problem.train.x.T, c=colors[problem.train.y], s=9, linewidths=0)
    axes.scatter(
        *problem.val.x.T, c=colors[problem.val.y], s=170, marker="*", edgecolors="white", zorder=3
    )


def draw_squares(axes: Axes, problem: ShiftProblem) -> None:
    """Pale squares where test data live, in the colour of their class."""
    for center in CENTERS:
        nearest = np.abs(problem.test.x - center).sum(axis=1).argmin()
        color = RED if problem.test.y[nearest] else BLUE
        axes.add_patch(Rectangle(center - 0.5, 1, 1, facecolor=color, alpha=0.18, linewidth=0))


def draw_decision(axes: Axes, module: nn.Module, problem: ShiftProblem) -> None:
    """Which colour the net would paint each point of the plane."""
    low, high = problem.test.x.min(0) - 0.1, problem.test.x.max(0) + 0.1
    u, v = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
    points = torch.tensor(np.stack([u.ravel(), v.ravel()], 1), dtype=torch.float32)
    with torch.no_grad():
        red = module(points).argmax(1).reshape(u.shape)
    axes.contourf(u, v, red, levels=[-0.5, 0.5, 1.5], cmap=ListedColormap([BLUE, RED]), alpha=0.25)


def draw_example(row: np.ndarray, example: int, accuracy: dict[str, float]) -> None:
    """One row of panels: the data, then each method's decision in the first trial."""
    problem, net, seed = trial_of(example, 0)
    draw_squares(row[0], problem)
    draw_points(row[0], problem, training=True)
    row[0].set_ylabel("right half follows left" if example == 1 else "right half contradicts left")
    row[0].set_title("data; stars: validation" if example == 1 else "")
    data = Tensors.from_problem(problem).without_test()
    for axes, method in zip(row[1:], METHODS, strict=True):
        record = train(method, net, data, CONFIG, random_state=seed)
        draw_decision(axes, record.module, problem)
        draw_points(axes, problem, training=method.name != "val_only")
        axes.set_title(f"{TITLES[method.name]}: {100 * accuracy[method.name]:.1f} %")
    for axes in row:
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.set_frame_on(False)


def main() -> None:
    """Train, print the accuracies over all trials, and draw the first trial."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--trials", type=int, default=5, help="seeds to average over")
    parser.add_argument("--out", type=Path, default=Path("four_squares.png"))
    options = parser.parse_args()

    figure = Figure(figsize=(11, 5.9), layout="constrained")
    panels = figure.subplots(2, 4)
    for example in (1, 2):
        records = run_four_squares(example, trials=options.trials)
        methods = {m: [r.final_accuracy() for r in found] for m, found in records.items()}
        print(text_table(summarize(methods), title=f"Example {example}, {options.trials} trials"))
        draw_example(panels[example - 1], example, {m: np.mean(a) for m, a in methods.items()})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=160, facecolor="white")
    print(f"drawn to {options.out}")


if __name__ == "__main__":
    main()
