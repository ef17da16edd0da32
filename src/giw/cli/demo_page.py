"""What ``giw demo`` compares, and its page: two tables, then digits, 0 to 3 against all ten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import giw
from giw.cli.example import example_tables
from giw.nets.methods import METHODS as KNOWN
from giw.pages.figures import FONT, dress, new_figure, settled
from giw.pages.page import Page, Picture, Section
from giw.pages.style import BLUE, INK, LINE, VERMILION, name_of
from giw.pages.tables import (
    MEANING,
    Entry,
    Group,
    Sheet,
    in_one_sentence,
    rows_sheet,
    summarize,
)
from giw.threads import one_thread

Tables = dict[str, dict[str, list[tuple[float, float]]]]  # example → way → accuracy, loss of a draw
STACK = "giw, stack"
OURS = (STACK, "GIW", "GIW+")
SHOWN = {
    "time-drift": "Another season: summer to autumn",
    "new-category": "A category that training never had",
}
TRAINING_DIGITS, PER_DIGIT, TEST_SHARE = 4, 2, 0.4
# all that split do so on pixels; a stack would hold the rivals too
NET: dict[str, Any] = {"split_on": "input", "stack": False, "max_epochs": 60, "weight_decay": 5e-3}
METHODS = ("giw_plus", "giw", "diw", "pooled", "pretrain_val", "val_only")

# Tables -------------------------------------------------------------------------------------------


def compare_tables(draws: int, seed: int, console: Console) -> Tables:
    """Accuracy and log-loss on new rows, of each example, way and draw of validation rows."""
    found: Tables = {name: {} for name in SHOWN}
    for name, draw in track([*product(SHOWN, range(draws))], "tables", console=console):
        tables = example_tables(name)
        target = pd.concat([tables["val"], tables["new"]], ignore_index=True)
        order = np.random.default_rng([seed, draw]).permutation(len(target))
        val, new = np.split(order, [len(tables["val"])])
        parts = tables["train"], target.iloc[val], target.iloc[new]
        sides = [(part.iloc[:, :-1], part.iloc[:, -1]) for part in parts]  # the label is last
        for way, fit in _ways(*sides[0], *sides[1], seed=seed).items():
            with one_thread():  # a second one only waits where other programs run
                model = fit()
            loss = log_loss(sides[2][1], model.predict_proba(sides[2][0]), labels=model.classes_)
            found[name].setdefault(way, []).append((model.score(*sides[2]), loss))
    return found


def _ways(
    X: pd.DataFrame, y: pd.Series, X_val: pd.DataFrame, y_val: pd.Series, *, seed: int
) -> dict[str, Callable[[], Any]]:
    """Boosted trees in every simple way, and the stack."""
    text = X.select_dtypes(exclude="number").columns.tolist()
    numbers = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((numbers, text), remainder="passthrough")
    trees = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=50, random_state=seed))
    both = pd.concat([X, X_val]), pd.concat([y, y_val])
    balanced = np.r_[np.ones(len(y)), np.full(len(y_val), len(y) / len(y_val))]
    weight = {f"{trees.steps[-1][0]}__sample_weight": balanced}
    stack = giw.ReweightedClassifier(trees, random_state=seed)
    return {
        "share of validation": lambda: DummyClassifier(strategy="prior").fit(X_val, y_val),
        "training alone": lambda: clone(trees).fit(X, y),
        "validation alone": lambda: clone(trees).fit(X_val, y_val),
        "both tables": lambda: clone(trees).fit(*both),
        "both, balanced": lambda: clone(trees).fit(*both, **weight),
        STACK: lambda: stack.fit(X, y, X_val, y_val),
    }


def in_words(tables: Tables) -> str:
    """Where the stack is ahead of the best simple way and where it is not, by log-loss."""
    parts = []
    for name, scores in tables.items():
        loss = {way: np.mean(each, axis=0)[1] for way, each in scores.items()}
        best = min((way for way in loss if way != STACK), key=loss.__getitem__)
        parts.append(
            f"{SHOWN[name]}: the stack has a log-loss of {loss[STACK]:.3f} and the best simple way "
            f"({best}) one of {loss[best]:.3f}."
        )
    return " ".join(parts)


def table_section(tables: Tables) -> Section:
    """The part of the page that shows them."""
    groups, draws = [], 0
    for name, scores in tables.items():
        mean = {way: np.mean(each, axis=0) for way, each in scores.items()}
        least, draws = min(loss for _, loss in mean.values()), len(scores[STACK])
        rows = [
            [Entry(way), Entry(f"{100 * accuracy:.1f}"), Entry(f"{loss:.3f}", bold=loss == least)]
            for way, (accuracy, loss) in mean.items()
        ]
        groups.append(Group(SHOWN[name], rows))
    sheet = Sheet(
        "tables", "Boosted trees on flights", ["way", "accuracy (%)", "log-loss"], groups,
        notes=[f"Means over {draws} draws of the 150 validation rows. The least log-loss is bold."],
    )  # fmt: skip
    text = [
        "Flights from New York. In the first table summer is training and autumn is where the "
        "model will be used: is a flight more than 15 minutes late? In the second training has "
        "no flight of United: is the aircraft a large one? The season is a real shift; the airline "
        "was left out by hand.",
        "The simple ways are those that one would try without giw. In the second table one of "
        "them is as good: trees that see both tables learn the new category by themselves.",
    ]
    losses = {SHOWN[n]: {w: np.array(s)[:, 1] for w, s in of.items()} for n, of in tables.items()}
    picture = Picture(
        dots(losses), f"Log-loss of each way on each table. {in_words(tables)}",
        "Log-loss on new rows, less is better; a dot is a draw.", "tables",
    )  # fmt: skip
    return Section("Two real shifts in tables", text=text, sheets=[sheet], pictures=[picture])


# Digits -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digits:
    """What six methods make of digits of which training has four."""

    accuracy: Mapping[str, list[float]]  # of each method, one per trial
    wrong: float  # share of validation points that GIW's split calls what they are not
    images: Mapping[str, NDArray[Any]]  # of the first trial: rows of pictures


def demo_arrays(rng: np.random.Generator) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Digits 0 to 3 to train on, two of each digit to validate, 40 % of each digit to test.

    Returns x and y of the three parts, and which validation points show a digit of training.
    """
    bunch = load_digits()
    order = rng.permutation(len(bunch.target))
    digit = bunch.target[order]
    images = (bunch.images[order] / 16.0).astype(np.float32)[:, None]  # (n, 1, 8, 8); 17 greys
    rank = pd.Series(digit).groupby(digit).rank(method="first").to_numpy()  # from 1, in its digit
    val, test = rank <= PER_DIGIT, rank > (1 - TEST_SHARE) * np.bincount(digit)[digit]
    parts = {"train": ~val & ~test & (digit < TRAINING_DIGITS), "val": val, "test": test}
    arrays = {f"x_{name}": images[part] for name, part in parts.items()}
    arrays |= {f"y_{name}": digit[part] % 2 for name, part in parts.items()}
    return arrays, digit[val] < TRAINING_DIGITS


def compare_digits(trials: int, seed: int, console: Console) -> Digits:
    """Train by the six methods, with a new draw in each trial that all of them share."""
    accuracy: dict[str, list[float]] = {method: [] for method in METHODS}
    images: dict[str, NDArray[Any]] = {}
    wrong = []
    for trial, method in track([*product(range(trials), METHODS)], "digits", console=console):
        rng = np.random.default_rng([seed, trial])
        arrays, truth = demo_arrays(rng)
        net = giw.GIWClassifier(method=method, **NET, random_state=int(rng.integers(2**31)))
        net.fit(*(arrays[name] for name in ("x_train", "y_train", "x_val", "y_val")))
        accuracy[method].append(net.score(arrays["x_test"], arrays["y_test"]))
        if method == "giw":
            inside: Any = net.split_ and net.split_.inside
            wrong.append(np.mean(inside != truth))
            images = images or {
                "training": arrays["x_train"][:: len(arrays["x_train"]) // 12, 0],
                "validation, called inside": arrays["x_val"][inside, 0],
                "validation, called outside": arrays["x_val"][~inside, 0],
            }
    return Digits(accuracy, float(np.mean(wrong)), images)


def digits_section(digits: Digits) -> Section:
    """The part of the page that shows them."""
    rows = summarize(digits.accuracy)
    text = [
        in_one_sentence(rows),
        "Handwritten digits (scikit-learn's 1,797, 8 × 8 pixels) are sorted into odd and even. The "
        "large training set shows only the digits 0 to 3; test data, and a small validation set "
        "like them, two images of each digit drawn anew in every trial, show all ten. Reweighting "
        "training data cannot teach a digit that is not there. Generalized importance weighting "
        "finds the validation points that lie outside the training data and learns those directly; "
        f"it calls {100 * digits.wrong:.0f} % of them inside or outside where they are not.",
    ]
    said = ", ".join(f"{r.name} {100 * r.mean:.1f} %" for r in sorted(rows, key=lambda r: -r.mean))
    percent = {name_of(method): 100 * np.array(a) for method, a in digits.accuracy.items()}
    pictures = [
        Picture(
            strip(digits.images), f"Rows of digits: {', '.join(digits.images)}.", "Images of the "
            "first trial. Inside and outside are what the split says, which does not know the "
            "digits.", "images",
        ),
        Picture(
            dots({"Test accuracy (%)": percent}), f"Mean test accuracy: {said}.", "Test accuracy, "
            "more is better; a dot is a trial.", "trials",
        ),
    ]  # fmt: skip
    title = "Test accuracy (%) on digits 0-9, trained on digits 0-3"
    sheet = replace(rows_sheet(rows, title=title), notes=[MEANING])
    explained = {name_of(m): (KNOWN[m].__doc__ or "").split("\n")[0] for m in digits.accuracy}
    name = "Odd or even, when six digits in ten are new"
    return Section(name, text=text, pictures=pictures, sheets=[sheet], facts=explained)


# The page -----------------------------------------------------------------------------------------


def demo_page(tables: Tables, digits: Digits, *, command: str, seconds: float) -> Page:
    """The report; its answer is made from the numbers, also when another way wins."""
    return Page(
        title="Training data here, the model there",
        answer=in_words(tables),
        lead=[
            "A large training table and few labelled validation rows from where the model will be "
            "used, which differ. Everything below stands beside the simple ways to use the two."
        ],
        sections=[table_section(tables), digits_section(digits)],
        kicker="giw demo",
        footer=[f"Made by `{command}` in {seconds:.0f} s."],
    )


def dots(panels: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> Figure:
    """A dot for each draw of each way; one panel under each title."""
    figure, axes = new_figure(height=2.2 * len(panels))
    axes.remove()
    rows = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for panel, (title, values) in zip(rows, panels.items(), strict=True):
        dress(panel)
        ways = [*values][::-1]
        for row, way in enumerate(ways):
            color = VERMILION if way in OURS else BLUE
            panel.plot(values[way], [row] * len(values[way]), "o", color=color, alpha=0.75)
        panel.set_yticks(range(len(ways)), ways)
        panel.set_ylim(-0.6, len(ways) - 0.4)
        panel.grid(axis="x", color=LINE, linewidth=0.7)
        panel.set_title(title, loc="left", fontsize=FONT, color=INK)
    return settled(figure)


def strip(images: Mapping[str, NDArray[Any]], most: int = 12) -> Figure:
    """A row of small images under each name."""
    figure, axes = new_figure(height=0.9 * len(images))
    axes.remove()
    for panel, (name, row) in zip(figure.subplots(len(images), 1), images.items(), strict=True):
        shown = np.concatenate([np.pad(image, 1) for image in row[:most]], axis=1)
        panel.imshow(shown, cmap="gray_r", vmin=0, vmax=1, extent=(0, min(len(row), most), 0, 1))
        panel.set_xlim(0, most)
        panel.set_title(name, loc="left", fontsize=FONT, color=INK)
        panel.set_axis_off()
    return settled(figure)
