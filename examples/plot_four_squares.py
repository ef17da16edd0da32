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
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import nn

from giw.nets.training import Tensors, train
from giw.pages import summarize, text_table
from giw.paper.four_squares import CENTERS, CONFIG, METHODS, run_four_squares, trial_of
from giw.paper.sample import ShiftProblem

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
