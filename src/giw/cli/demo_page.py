"""The page of ``giw demo``: two tables, then digits, trained on 0 to 3 and tested on all ten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giw.pages.figures import (
    FONT,
    learning_curves,
    new_figure,
    settled,
    split_histogram,
    trial_dots,
)
from giw.pages.page import Page, Picture, Section
from giw.pages.style import INK, name_of
from giw.pages.tables import MEANING, Row, in_one_sentence, rows_sheet, summarize

METHODS = {
    "GIW+": "does what GIW does, pulls the outside points towards training points of their class, "
    "and weights by class shares too; what GIWClassifier does unless told otherwise",
    "GIW": "splits the validation points into inside and outside the training support, weights "
    "training data towards the inside ones and learns the outside ones directly",
    "DIW": "weights training data towards the validation set, and has no answer to digits that "
    "training never saw",
    "Val-only": "learns from the validation points alone",
    "Pretrain-val": "learns from training data first, then from the validation points",
    "Pooled": "learns from both at once, half the loss from each, without split or weights; the "
    "plain rival that a clever method has to beat",
}


def demo_page(
    *,
    accuracy: Mapping[str, ArrayLike],
    curves: Mapping[str, ArrayLike],
    p_value: ArrayLike,
    inside: ArrayLike,
    alpha: float,
    seconds: float,
    command: str,
    level: float = 0.05,
    tables: Section | None = None,
    answer: str = "",
    images: Mapping[str, NDArray[Any]] | None = None,
) -> Page:
    """The report of the demo; its answer is made from the numbers, also when another method wins.

    Parameters
    ----------
    accuracy : mapping from method to one test accuracy per trial, each between 0 and 1
        Paired by trial; must hold ``"giw"``.
    curves : mapping from method to an array of shape (trials, epochs)
        Test accuracy after each epoch, between 0 and 1.
    p_value : array-like of shape (m,)
        The split's p-value of each validation point, of all trials.
    inside : array-like of bool, shape (m,)
        Whether the digit of each of these points is one that training saw (the truth).
    alpha : float
        Share of them that the split calls inside.
    seconds : float
        How long all took.
    command : str
        How to make the page again.
    level : float, default=0.05
        Where the split cuts: a larger p-value is called inside.
    tables : Section, optional
        What opens the page.
    answer : str, default=""
        The result on tables; without it the page opens with that on digits.
    images : mapping from name to array of shape (k, 8, 8), optional
        Rows of digits to show.
    """
    truth, called = np.asarray(inside).astype(bool), np.asarray(p_value) > level
    rows = summarize(accuracy)
    learning = Picture(
        learning_curves(curves), in_words(rows), "Test accuracy after each epoch: mean over the "
        "trials, and one standard deviation on either side.", "learning_curves",
    )  # fmt: skip
    trials = Picture(
        trial_dots(accuracy), in_words(rows), "A line joins the methods within one trial: they "
        "share the validation draw and the initial network.", "trials",
    )  # fmt: skip
    groups = ("digits 0–3, inside", "digits 4–9, outside")
    split = Picture(
        split_histogram(p_value, inside, threshold=level, groups=groups),
        f"Of {truth.sum()} points inside the training support {(called & truth).sum()} lie above "
        f"the cut at {level:g}; of {(~truth).sum()} outside it {(called & ~truth).sum()} do.",
        "The validation points of all trials, coloured by the truth, which the method does not "
        "see.", "split",
    )  # fmt: skip
    lead = (
        "Handwritten digits are sorted into odd and even. The large training set shows only the "
        "digits 0 to 3; test data, and a small validation set like them, show all ten. Reweighting "
        "training data cannot teach a digit that is not there. Generalized importance weighting "
        "finds the validation points that lie outside the training data and learns those directly."
    )
    p_values = (
        "Each validation point gets a p-value: how often would a training point lie as far from "
        f"the rest of the training data as this one does? Points above {level:g} are called "
        "inside. A good split piles the digits 4 to 9 up at the left and spreads the digits 0 to "
        "3 evenly. An inside point called outside costs precision only; an outside point called "
        "inside counts towards the weighted part, where no training point can stand for it."
    )
    facts = {
        "data": "scikit-learn's 1,797 handwritten digits, 8 × 8 pixels",
        "training digits": "0, 1, 2, 3",
        "validation": "20 images, two of each digit, drawn anew per trial",
        "share inside, in truth": f"{truth.mean():.2f}",
        "share inside, by the split": f"{alpha:.2f}",
        "on the wrong side": f"{100 * np.mean(called != truth):.0f} % of points",
        "wall time": f"{seconds:.0f} s",
    }
    explained = {n: text for n, text in METHODS.items() if n in map(name_of, accuracy)}
    table = replace(rows_sheet(rows), notes=[MEANING])
    return Page(
        kicker="giw demo",
        title="Training data here, the model there",
        answer=answer or in_one_sentence(rows, "giw"),
        lead=[
            "A large training table and few labelled validation rows from where the model will be "
            "used, which differ. Everything below stands beside the simple ways to use the two."
        ],
        sections=[
            *([tables] if tables else []),
            Section(
                "Odd or even, when six digits in ten are new",
                text=[in_one_sentence(rows, "giw"), lead],
                pictures=[*([strip(images)] if images else []), learning],
            ),
            Section("Where they end", sheets=[table], pictures=[trials]),
            Section(
                "Which validation points look like training data",
                text=[p_values],
                pictures=[split],
            ),
            Section("What the methods do", facts=explained),
            Section("Sizes and settings", facts=facts),
        ],
        footer=[f"Made by `{command}`."],
    )


def strip(images: Mapping[str, NDArray[Any]], most: int = 12) -> Picture:
    """A row of small images under each name."""
    figure, axes = new_figure(height=0.9 * len(images))
    axes.remove()
    for panel, (name, row) in zip(figure.subplots(len(images), 1), images.items(), strict=True):
        shown = np.concatenate([np.pad(image, 1) for image in row[:most]], axis=1)
        panel.imshow(shown, cmap="gray_r", vmin=0, vmax=1, extent=(0, min(len(row), most), 0, 1))
        panel.set_xlim(0, most)
        panel.set_title(name, loc="left", fontsize=FONT, color=INK)
        panel.set_axis_off()
    return Picture(
        settled(figure), f"Rows of digits: {', '.join(images)}.", "Images of the first trial. "
        "Inside and outside are what the split says, which does not know the digits.", "images",
    )  # fmt: skip


def in_words(rows: Sequence[Row]) -> str:
    """The means in falling order."""
    ordered = sorted(rows, key=lambda row: -row.mean)
    told = ", ".join(f"{row.name} {100 * row.mean:.1f} %" for row in ordered)
    return f"Mean test accuracy: {told}."
