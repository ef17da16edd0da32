"""The figures that the paper prints, to stand beside ours.

Fang, Lu, Niu and Sugiyama, "Generalizing Importance Weighting to A Universal Solver for
Distribution Shift Problems", NeurIPS 2023: accuracy in percent, mean and standard deviation over
five trials of the mean over the last ten epochs.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class PaperFigure(NamedTuple):
    """One cell of the paper's tables, in percent."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f}"


def paper_accuracy(dataset: str, case: str, shift: str, method: str) -> PaperFigure | None:
    """What the paper reports for a method in a setting; None where it has no such cell.

    >>> print(paper_accuracy("mnist", "iii", "support", "giw"))
    95.16 ± 0.20
    """
    return _figures("accuracy").get((dataset, case, shift, method))


def paper_split_error(direction: str, rate: float, shift: str) -> PaperFigure | None:
    """GIW on MNIST (iii) with a share of one group on the wrong side; None where not reported."""
    return _figures("split_error").get((direction, rate, shift))


@cache
def _figures(table: str) -> dict[tuple[Any, ...], PaperFigure]:
    """A table of the file: the last two values of each row are the figure, the others its place."""
    text = files("giw.paper").joinpath("paper_figures.json").read_text(encoding="utf-8")
    rows = [tuple(row.values()) for row in json.loads(text)[table]]
    return {row[:-2]: PaperFigure(*row[-2:]) for row in rows}
