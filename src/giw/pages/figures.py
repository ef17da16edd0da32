"""Figures as matplotlib objects, without pyplot and its global state.

Every figure can be saved as SVG and PNG with :func:`save`, and stands in a report through
:class:`giw.pages.page.Picture`.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from giw.pages.style import INK, LINE, Style
from giw.writing import write_whole

FONT = 12.0  # points: large against the figure, which a phone shrinks


def draw_curve(
    axes: Axes, percent: NDArray[np.float64], style: Style, *, main: bool = False, thin: int = 1
) -> NDArray[np.float64]:
    """Draw mean and band of curves of shape (trials, epochs), and return the mean, (epochs,).

    ``thin`` draws every so manyth epoch and the last, for panels too small to show more.
    """
    epochs = percent.shape[1]
    shown = np.arange(epochs - 1, -1, -thin)[::-1]
    mean = percent.mean(axis=0)
    width, front = (2.4, 3) if main else (1.7, 2)
    look: dict[str, Any] = {
        "color": style.color,
        "linestyle": style.dash,
        "linewidth": width,
        "zorder": front,
    }
    axes.plot(shown + 1, mean[shown], marker="o" if epochs == 1 else "", **look)
    if len(percent) > 1:
        std = percent.std(axis=0, ddof=1)
        low, high = (mean - std)[shown], (mean + std)[shown]
        axes.fill_between(shown + 1, low, high, color=style.color, alpha=0.13, linewidth=0)
    return mean


def save(figure: Figure, stem: str | Path) -> list[Path]:
    """Write ``stem.svg`` and ``stem.png``; the same figure gives the same bytes.

    Returns the two paths.
    """
    stem = Path(stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    svg, png = stem.with_name(stem.name + ".svg"), stem.with_name(stem.name + ".png")
    write_whole(svg, svg_bytes(figure))
    write_whole(png, png_bytes(figure))
    return [svg, png]


def png_bytes(figure: Figure, dpi: int = 200) -> bytes:
    """The figure as PNG on white, without a word about the software that made it."""
    out = BytesIO()
    figure.savefig(out, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    return out.getvalue()


def svg_bytes(figure: Figure) -> bytes:
    """The figure as SVG, letters kept as letters, without date or random identifiers."""
    out = BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "giw"}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()


def new_figure(height: float = 3.7) -> tuple[Figure, Axes]:
    """An empty figure of this height in inches, in the house look."""
    figure = Figure(figsize=(5.6, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    dress(axes)
    return figure, axes


def dress(axes: Axes, size: float = FONT) -> None:
    """The house look: no box, quiet grid, letters of one size."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.tick_params(length=0, colors=INK, labelsize=size)
    axes.xaxis.label.set(color=INK, size=size)
    axes.yaxis.label.set(color=INK, size=size)
    axes.title.set(color=INK, size=size)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=LINE, linewidth=0.7)


def settled(figure: Figure) -> Figure:
    """Lay it out once and for all: done again at each saving, it would move a little each time."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure
