"""Figures of many small panels: settings side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from giw.pages.figures import draw_curve, dress, settled
from giw.pages.style import BLUE, INK, LINE, VERMILION, Style, name_of, styles_of

FONT = 11.0
POINTS = 80  # of a curve in a panel of two inches; more would be ink and megabytes
XLABEL = "test accuracy (%)"
Array = NDArray[np.float64]
Dot = tuple[float, float | None, str]  # place, spread, colour
Line = tuple[Sequence[float], Sequence[float], Sequence[float] | None, Style]  # x, y, spread, look


def curve_grid(
    curves: Mapping[tuple[str, str], Mapping[str, Array]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    styles: Mapping[str, Style] | None = None,
) -> Figure:
    """Learning curves, one panel for each row and column; an empty panel says so.

    Parameters
    ----------
    curves : mapping from (row, column) to curves by method, each of shape (trials, epochs)
        Accuracies between 0 and 1; mean and a band of one standard deviation are drawn.
    rows, columns : sequence of str
        Labels, in order.
    styles : mapping from method to Style, optional
        Where the usual ones do not fit.
    """
    size = (4.2, 3.2) if len(rows) * len(columns) <= 2 else (2.35, 1.9)
    figure, grid = _grid(len(rows), len(columns), *size)
    methods = list(dict.fromkeys(m for panel in curves.values() for m in panel))
    styles = styles_of(methods) if styles is None else styles
    for r, row in enumerate(rows):
        for c, column in enumerate(columns):
            axes, panel = grid[r][c], curves.get((row, column), {})
            for method, values in panel.items():
                thin = max(1, values.shape[1] // POINTS)
                draw_curve(axes, 100 * values, styles[method], main=method == "giw", thin=thin)
            _label(axes, row if c == 0 else "", column if r == 0 else "")
            _finish(axes, empty=not panel, xlabel="epoch" if r == len(rows) - 1 else "")
    _legend(figure, {name_of(method): styles[method] for method in methods})
    return settled(figure)


def line_grid(
    lines: Mapping[str, Mapping[str, Line]], *, xlabel: str, ylabel: str = XLABEL
) -> Figure:
    """Accuracy in percent against an amount, one panel each; spreads are drawn as bars."""
    width = 6.4 if len(lines) == 1 else 3.8
    figure, grid = _grid(1, len(lines), width=width, height=3.4)
    looks: dict[str, Style] = {}
    for axes, (title, named) in zip(grid[0], lines.items(), strict=True):
        for name, (x, y, spread, style) in named.items():
            looks[name] = style
            axes.errorbar(
                x,
                y,
                yerr=spread,
                color=style.color,
                linestyle=style.dash,
                linewidth=1.7,
                elinewidth=1,
                marker="o",
                markersize=4,
            )
        _label(axes, ylabel if axes is grid[0][0] else "", title)
        axes.set_xlabel(xlabel)
        if all(x >= 1000 for line in named.values() for x in line[0]):
            axes.xaxis.set_major_formatter("{x:,.0f}")
        if not named:
            _finish(axes, empty=True, xlabel="")
    _legend(figure, looks)
    return settled(figure)


def dot_panels(
    dots: Mapping[str, Mapping[str, Sequence[Dot]]],
    *,
    legend: Mapping[str, str] | None = None,
    xlabel: str = XLABEL,
) -> Figure:
    """Accuracies with their spread, one panel above the other; names at the left.

    Parameters
    ----------
    dots : mapping from panel to dots by the name of their row
        A dot has its place in percent, its spread or None, and a colour.
    legend : mapping from name to colour, optional
    xlabel : str
    """
    counts = [len(named) for named in dots.values()]
    height = sum(counts) * 0.27 + len(counts) * 0.62 + 0.5
    figure = Figure(figsize=(7.4, height), layout="constrained")
    FigureCanvasAgg(figure)
    # letters are wider at the resolution of a file than at that of the layout; long names need room
    figure.get_layout_engine().set(w_pad=0.2)  # type: ignore[call-arg, union-attr]
    panels = figure.subplots(len(dots), 1, squeeze=False, height_ratios=counts)
    for axes, (title, named) in zip(panels[:, 0], dots.items(), strict=True):
        dress(axes, FONT)
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", visible=True, color=LINE, linewidth=0.7)
        for y, row in enumerate(named.values()):
            for k, (mean, spread, color) in enumerate(row):
                beside = y + 0.24 * (k - (len(row) - 1) / 2)
                axes.errorbar(mean, beside, xerr=spread, color=color, marker="o", markersize=4.5)
        axes.set_yticks(range(len(named)))
        axes.set_yticklabels(list(named), parse_math=False)
        axes.set_ylim(len(named) - 0.5, -0.5)  # the first on top
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        axes.set_title(title, color=INK, size=FONT, parse_math=False, loc="left")
    panels[-1, 0].set_xlabel(xlabel, color=INK, size=FONT)
    _legend(figure, {name: Style(color) for name, color in (legend or {}).items()})
    return settled(figure)


def score_grid(
    scores: Mapping[tuple[str, str], tuple[Array, NDArray[np.bool_]]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    cuts: Sequence[float],
    limits: tuple[float, float] | None,
    xlabel: str,
) -> Figure:
    """Histograms of scores of validation points, truly inside ones and truly outside ones.

    Parameters
    ----------
    scores : mapping from (row, column) to scores and to who is inside, each of shape (m,)
    rows, columns : sequence of str
        Labels, in order.
    cuts : sequence of float
        Dashed lines.
    limits : pair of float or None
        Where the bars begin and end; None takes each panel's own range with the cuts in it.
    xlabel : str
    """
    wide = max(2.7, 5.4 / len(columns))  # room for the legend above a single column
    figure, grid = _grid(len(rows), len(columns), width=wide, height=2.3)
    for r, row in enumerate(rows):
        for c, column in enumerate(columns):
            axes, panel = grid[r][c], scores.get((row, column))
            if panel is not None:
                score, inside = panel
                low, high = limits or (min(*score, *cuts), max(*score, *cuts))
                axes.hist(
                    [score[inside], score[~inside]],
                    bins=np.linspace(low, high, 21).tolist(),
                    stacked=True,
                    color=[BLUE, VERMILION],
                    rwidth=0.9,
                )
                for cut in cuts:
                    axes.axvline(cut, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            _label(axes, row if c == 0 else "", column if r == 0 else "")
            _finish(axes, empty=panel is None, xlabel=xlabel if r == len(rows) - 1 else "")
            if panel is not None:  # points are whole
                axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    handles = [Patch(color=BLUE), Patch(color=VERMILION)]
    _place_legend(figure, handles, ["inside the training support", "outside it"])
    return settled(figure)


def picture_grid(images: Mapping[str, Array], *, columns: int = 5) -> Figure:
    """Sets of small images of shape (count, height, width, 3), values 0 to 1; a panel each."""
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    sheets = {title: montage(stack) for title, stack in images.items()}
    tallest = max(sheet.shape[0] / sheet.shape[1] for sheet in sheets.values())
    lines = max(title.count("\n") + 1 for title in images)
    figure, grid = _grid(rows, columns, width=2.2, height=2.0 * tallest + 0.3 * lines)
    # panels further apart than the images in them, or one does not see where a panel ends
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # type: ignore[call-arg, union-attr]
    panels = [axes for line in grid for axes in line]
    for axes, (title, sheet) in zip(panels, sheets.items(), strict=False):
        axes.imshow(sheet, interpolation="nearest")
        axes.set_title(title, color=INK, size=FONT, parse_math=False)
    for axes in panels:
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


def _grid(
    rows: int, columns: int, width: float = 2.35, height: float = 1.9
) -> tuple[Figure, list[list[Axes]]]:
    figure = Figure(figsize=(width * columns + 0.4, height * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        dress(one, FONT)
    return figure, [list(line) for line in axes]


def _label(axes: Axes, row: str, column: str) -> None:
    if row:
        axes.set_ylabel(row, color=INK, size=FONT)
    if column:
        axes.set_title(column, color=INK, size=FONT, parse_math=False)


def _finish(axes: Axes, *, empty: bool, xlabel: str) -> None:
    if empty:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines["bottom"].set_color(LINE)
        axes.text(0.5, 0.5, "no run", ha="center", color=INK, size=FONT, transform=axes.transAxes)
        return
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    if xlabel:
        axes.set_xlabel(xlabel)


def _legend(figure: Figure, names: Mapping[str, Style]) -> None:
    looks = [{"color": s.color, "linestyle": s.dash} for s in names.values()]
    handles = [Line2D([], [], linewidth=2, **look) for look in looks]  # type: ignore[arg-type]
    _place_legend(figure, handles, list(names))


def _place_legend(figure: Figure, handles: Sequence[Artist], names: Sequence[str]) -> None:
    fits = max(2, int(figure.get_figwidth() / 1.35))
    rows = -(-len(names) // fits) or 1  # as few rows as fit, and as even as they get
    legend = figure.legend(
        handles,
        names,
        loc="outside upper center",
        ncols=-(-len(names) // rows) or 1,
        frameon=False,
        fontsize=FONT,
        labelcolor=INK,
        handlelength=1.6,
        columnspacing=1.3,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
