"""Figures of many small panels: settings side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from giw.pages.figures import dress, settled
from giw.pages.style import INK, LINE, Style

FONT = 11.0
Array = NDArray[np.float64]


def panels(
    contents: Mapping[tuple[str, str], Any],
    draw: Callable[[Axes, Any], None],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    size: tuple[float, float],
    xlabel: str,
    legend: Mapping[str, Style],
    filled: bool = False,
) -> Figure:
    """One panel for each row and column; one without content says so.

    Parameters
    ----------
    contents : mapping from (row, column) to what is drawn there
    draw : callable
        Draws a content on its axes.
    rows, columns : sequence of str
        Labels, in order.
    size : pair of float
        Width and height of a panel in inches.
    xlabel : str
        Beneath the lowest panels.
    legend : mapping from name to Style
    filled : bool, default=False
        Whether the legend shows areas and not lines.
    """
    figure, grid = empty_panels(len(rows), len(columns), *size)
    for r, row in enumerate(rows):
        for c, column in enumerate(columns):
            axes, content = grid[r][c], contents.get((row, column))
            axes.set_ylabel(row if c == 0 else "", color=INK, size=FONT)
            axes.set_title(column if r == 0 else "", color=INK, size=FONT, parse_math=False)
            if not content:
                axes.set_xticks([])
                axes.set_yticks([])
                axes.spines["bottom"].set_color(LINE)
                place = {"ha": "center", "color": INK, "size": FONT, "transform": axes.transAxes}
                axes.text(0.5, 0.5, "no run", **place)  # type: ignore[arg-type]
                continue
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
            draw(axes, content)
            if r == len(rows) - 1:
                axes.set_xlabel(xlabel)
    handles: list[Artist] = [
        Patch(color=s.color)
        if filled
        else Line2D([], [], linewidth=2, color=s.color, linestyle=s.dash)  # type: ignore[arg-type]
        for s in legend.values()
    ]
    _legend(figure, handles, list(legend))
    return settled(figure)


def empty_panels(
    rows: int, columns: int, width: float, height: float
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with dressed axes."""
    figure = Figure(figsize=(width * columns + 0.4, height * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        dress(one, FONT)
    return figure, [list(line) for line in axes]


def _legend(figure: Figure, handles: Sequence[Artist], names: Iterable[str]) -> None:
    fits = max(2, int(figure.get_figwidth() / 1.35))
    rows = -(-len(handles) // fits) or 1  # as few rows as fit, and as even as they get
    legend = figure.legend(
        handles,
        names,
        loc="outside upper center",
        ncols=-(-len(handles) // rows) or 1,
        frameon=False,
        fontsize=FONT,
        labelcolor=INK,
        handlelength=1.6,
        columnspacing=1.3,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def picture_grid(images: Mapping[str, Array], *, columns: int = 5) -> Figure:
    """Sets of small images of shape (count, height, width, 3), values 0 to 1; a panel each."""
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    sheets = {title: montage(stack) for title, stack in images.items()}
    tallest = max(sheet.shape[0] / sheet.shape[1] for sheet in sheets.values())
    lines = max(title.count("\n") + 1 for title in images)
    figure, grid = empty_panels(rows, columns, width=2.2, height=2.0 * tallest + 0.3 * lines)
    # panels further apart than the images in them, or one does not see where a panel ends
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # type: ignore[call-arg, union-attr]
    every = [axes for line in grid for axes in line]
    for axes, (title, sheet) in zip(every, sheets.items(), strict=False):
        axes.imshow(sheet, interpolation="nearest")
        axes.set_title(title, color=INK, size=FONT, parse_math=False)
    for axes in every:
        axes.set_axis_off()
    return settled(figure)


def montage(stack: Array, gap: int = 1) -> Array:
    """Images of shape (count, height, width, 3) on one sheet, as square as full rows allow.

    >>> montage(np.zeros((6, 5, 5, 3))).shape
    (11, 17, 3)
    """
    count, height, width, _ = stack.shape
    square = int(np.ceil(np.sqrt(count)))
    fitting = (c for c in range(square, int(2 * np.sqrt(count)) + 1) if count % c == 0)
    columns = next(fitting, square)
    rows = -(-count // columns)
    sheet = np.ones((rows * (height + gap) - gap, columns * (width + gap) - gap, 3))
    for k, image in enumerate(stack):
        top, left = (k // columns) * (height + gap), (k % columns) * (width + gap)
        sheet[top : top + height, left : left + width] = image
    return sheet
