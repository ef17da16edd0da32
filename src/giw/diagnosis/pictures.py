"""Figures of a diagnosis, each with its words for those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from giw.pages import Picture, split_histogram
from giw.pages.figures import FONT, LONG, SIZE, dress, settled
from giw.pages.style import BLUE, GREY, INK, LINE
from giw.support import SupportSplit


def support_picture(split: SupportSplit) -> Picture:
    """P-values of the validation rows, inside and outside coloured."""
    p_value, inside = np.asarray(split.p_value), np.asarray(split.inside)
    figure = split_histogram(
        p_value,
        inside,
        threshold=split.level,
        xlabel="how ordinary the row is among training rows",
        groups=("called inside", "called outside"),
    )
    return Picture(
        figure,
        alt=f"Histogram of the p-values of {len(p_value):,} validation rows: {int(inside.sum()):,} "
        f"above the cut at {split.level:g} are called inside, {int((~inside).sum()):,} outside.",
        caption="Rows like training rows spread evenly from 0 to 1. A pile at the left is what "
        "training does not have.",
    )


def column_picture(columns: Sequence[tuple[str, float]], *, most: int = 8) -> Picture:
    """The columns that put rows outside."""
    shown = list(columns[:most])
    figure, axes = _sideways(height=0.95 + 0.4 * len(shown))
    share = [100 * value for _, value in reversed(shown)]
    axes.barh(range(len(shown)), share, height=0.6, color=BLUE, alpha=0.85, linewidth=0)
    for y, value in enumerate(share):
        axes.annotate(
            f"{value:.0f} %", (value, y), xytext=(6, 0), textcoords="offset points",
            va="center", color=INK, fontsize=FONT,
        )  # fmt: skip
    axes.set_yticks(range(len(shown)))
    axes.set_yticklabels([_cut(name) for name, _ in reversed(shown)], parse_math=False)
    axes.set_xlim(0, 1.2 * max(share))
    axes.set_xlabel("share of the unusual distance (%)")
    told = ", ".join(f"{name} {100 * value:.0f} %" for name, value in shown)
    return Picture(settled(figure), alt=f"Bars of the columns that put rows outside: {told}.")


def class_picture(shares: Sequence[tuple[str, float, float]], *, most: int = 12) -> Picture:
    """Class shares in training and validation, the most different classes first."""
    shown = sorted(shares, key=lambda row: -abs(row[1] - row[2]))[:most]
    figure, axes = _sideways(height=1.35 + 0.52 * len(shown))
    for y, (_, train, val) in enumerate(reversed(shown)):
        axes.barh(y + 0.19, 100 * train, height=0.34, color=GREY, linewidth=0)
        axes.barh(y - 0.19, 100 * val, height=0.34, color=BLUE, linewidth=0)
    axes.set_yticks(range(len(shown)))
    axes.set_yticklabels([_cut(name) for name, _, _ in reversed(shown)], parse_math=False)
    axes.set_xlabel("share of the rows (%)")
    bars = [axes.barh(0, 0, color=color, linewidth=0) for color in (GREY, BLUE)]
    axes.legend(
        bars, ["training", "validation"], loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2,
        frameon=False, fontsize=FONT - 1, labelcolor=INK, borderaxespad=0.2, handlelength=1.0,
    )  # fmt: skip
    told = ", ".join(f"{name} {100 * p:.0f} % and {100 * q:.0f} %" for name, p, q in shown)
    return Picture(settled(figure), alt=f"Class shares in training and in validation: {told}.")


def _sideways(height: float) -> tuple[Figure, Axes]:
    """An empty figure for bars that run to the right."""
    figure = Figure(figsize=(SIZE[0], height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    dress(axes)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True, color=LINE, linewidth=0.7)
    return figure, axes


def _cut(name: str) -> str:
    return name if len(name) <= LONG else name[: LONG - 1] + "…"
