"""The diagnosis as a page that a person opens."""

from __future__ import annotations

import numpy as np

from giw.diagnosis.findings import QUESTIONS, counted, p_in_words, percent, some
from giw.diagnosis.result import COUNTED, PARTS, Diagnosis, cost_in_words
from giw.pages.figures import split_histogram
from giw.pages.page import Page, Picture, embed, render
from giw.pages.style import BLUE, GREY

CASES = {
    "i": "neither lacks a material part of the other",
    "ii": "training has a material part that validation lacks",
    "iii": "validation has a material part that training lacks",
    "iv": "each has a material part that the other lacks",
}
LEAD = (
    "Two sets of rows were compared: training data, from which a model learns, and validation "
    "data, which come from where it will be used (the test distribution). This page says how they "
    "differ, how sure that is, and what helps."
)


def diagnosis_page(
    found: Diagnosis, *, title: str = "", command: str = "", next_command: str = ""
) -> str:
    """The page: the answer, what to do, and then the evidence piece by piece."""
    p_value, inside = np.asarray(found.split.p_value), np.asarray(found.split.inside)
    figure = split_histogram(p_value, inside, found.split.level)
    alt = f"Histogram of the p-values of {len(p_value):,} validation rows: {int(inside.sum()):,} "
    alt += f"above the cut at {found.split.level:g} are called inside, {int((~inside).sum()):,} "
    return render(
        "diagnosis.html",
        page=Page(
            title=title or "Training and validation data",
            answer=found.recommendation.answer,
            lead=[LEAD],
            kicker="giw diagnose",
            footer=[f"Made by `{command}`."] if command else [],
        ),
        found=found,
        code=next_command or found.recommendation.code,
        cost=cost_in_words(found.cost),
        figure=embed(Picture(figure, alt=f"{alt}outside."), "fig-"),
        most=12,  # rows of a list; the object, --rows and --json have all
        colors=(GREY, BLUE),
        cases=CASES, parts=PARTS, questions=QUESTIONS, rows_counted=COUNTED,
        counted=counted, p=_short, percent=percent, some=some,
        points=lambda share: f"{100 * share:.1f}".replace("-", "−"),
    )  # fmt: skip


def _short(p_value: float) -> str:
    """A p-value below a head that says what it is."""
    return p_in_words(p_value).removeprefix("p ").removeprefix("= ").replace(" ", "\u00a0")
