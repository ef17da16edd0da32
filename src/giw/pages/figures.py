"""Figures as matplotlib objects, without pyplot and its global state.

Every figure can be saved as SVG and PNG with :func:`save`, and stands in a report through
:class:`giw.pages.page.Picture`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from giw.checks import as_array
from giw.pages.style import BLUE, INK, LINE, VERMILION, Style, name_of, styles_of
from giw.pages.tables import as_accuracies, as_paired
from giw.writing import write_whole

SIZE = (5.6, 3.7)  # inches, and points: small against the letters, which a phone shrinks
FONT = 12.0
LONG = 18  # letters of a name beside the axes; more would leave no room for the lines


def learning_curves(
    curves: Mapping[str, ArrayLike],
    *,
    ylabel: str = "test accuracy (%)",
    xlabel: str = "epoch",
) -> Figure:
    """Mean over the trials at each epoch, with a band of one standard deviation on either side.

    Parameters
    ----------
    curves : mapping from method to an array of shape (trials, epochs)
        Accuracies between 0 and 1; methods may differ in their number of epochs. A single trial is
        drawn as a line without a band.
    ylabel, xlabel : str
        What the axes show.
    """
    if not curves:
        raise ValueError("curves is empty: pass at least one method")
    values = {
        method: as_accuracies(value, f"curves[{method!r}]", ndim=2)
        for method, value in curves.items()
    }
    figure, axes = new_figure()
    ends: dict[str, float] = {}
    longest = max(value.shape[1] for value in values.values())
    for method, style in styles_of(values).items():
        ends[method] = draw_curve(axes, 100 * values[method], style, main=method == "giw")[-1]
    axes.set_xlim(1 if longest > 1 else 0.5, max(longest, 1.5))
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0), min(high, 100.5))  # a band may leave the scale, accuracy cannot
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    # named in the order in which the lines end
    lines = {method: line for method, line in zip(values, axes.lines, strict=True)}
    order = sorted(values, key=lambda method: -ends[method])
    name(axes, [lines[m] for m in order], [_short(name_of(m)) for m in order], beside=True)
    return settled(figure)


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


def split_histogram(
    score: ArrayLike,
    inside: ArrayLike,
    *,
    threshold: float | None = None,
    xlabel: str = "p-value of belonging to the training data",
    groups: tuple[str, str] = ("inside the training support", "outside it"),
    bins: int = 20,
) -> Figure:
    """How the split's scores fall for points inside and outside the training support.

    Parameters
    ----------
    score : array-like of shape (m,)
        A score or p-value per validation point, larger for points that look like training data.
    inside : array-like of bool, shape (m,)
        The truth where it is known, otherwise the split itself; it colours the bars.
    threshold : float, optional
        Where the split cuts; drawn as a line, with what lies on either side named.
    xlabel : str
        What the score is.
    groups : tuple of str
        Names of the two groups.
    bins : int, default=20
        Number of bars.
    """
    values = as_array(score, "score").astype(np.float64)
    member = as_array(inside, "inside")
    if values.ndim != 1 or values.size == 0 or member.shape != values.shape:
        raise ValueError(
            "need one score and one inside flag per validation point, got score of shape "
            f"{values.shape} and inside of shape {member.shape}"
        )
    if not np.isin(member, (0, 1)).all():
        raise ValueError(
            "inside must be true or false for each point; cut a posterior at 0.5 first"
        )
    member = member.astype(bool)
    figure, axes = new_figure()
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:  # p-values: bars at round numbers
        low, high = 0.0, 1.0
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    sides = [values[member], values[~member]]
    bars = axes.hist(sides, edges.tolist(), stacked=True, color=[BLUE, VERMILION], rwidth=0.9)[2]
    axes.margins(y=0.22)  # room for the words at the threshold
    if threshold is not None:
        axes.axvline(threshold, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        cut = f"{threshold:g}".replace("-", "−")
        on_the_left = threshold <= (low + high) / 2  # the words go where there is room
        words = f"cut at {cut}, inside →" if on_the_left else f"← outside, cut at {cut}"
        axes.annotate(
            words, (threshold, 0.97), xycoords=("data", "axes fraction"), va="top",
            xytext=(6 if on_the_left else -6, 0), textcoords="offset points",
            ha="left" if on_the_left else "right", color=INK, fontsize=FONT - 1,
        )  # fmt: skip
    axes.set_xlabel(xlabel)
    axes.set_ylabel("validation points")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    named = zip(groups, sides, strict=True)
    name(axes, bars, [f"{group} ({len(side)})" for group, side in named])
    return settled(figure)


def trial_dots(accuracy: Mapping[str, ArrayLike]) -> Figure:
    """One dot per trial and method, the trials joined by lines, the means as bars.

    Lines that run in parallel show what a paired test sees: trials differ, and the methods differ
    in the same way within each.

    Parameters
    ----------
    accuracy : mapping from method to one accuracy per trial, each between 0 and 1
    """
    values = as_paired(accuracy)
    order = sorted(values, key=lambda method: float(values[method].mean()))
    styles = styles_of(values)
    figure, axes = new_figure(height=1.1 + 0.45 * len(order))
    height = np.arange(len(order))
    percent = 100 * np.stack([values[method] for method in order])  # (methods, trials)
    axes.plot(percent, height, color=INK, alpha=0.3, linewidth=0.8, zorder=1)
    for y, method in enumerate(order):
        color, mean = styles[method].color, float(percent[y].mean())
        dots = np.full(percent.shape[1], y)
        axes.scatter(percent[y], dots, s=34, color=color, alpha=0.75, linewidth=0, zorder=2)
        axes.plot([mean, mean], [y - 0.28, y + 0.28], color=color, linewidth=2.6, zorder=3)
        axes.annotate(
            f"{mean:.1f}", (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", color=color, fontweight="bold",
        )  # fmt: skip
    axes.set_ylim(-0.6, len(order) - 0.4)
    axes.set_yticks(height)
    axes.set_yticklabels([name_of(method) for method in order], parse_math=False)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True, color=LINE, linewidth=0.7)
    axes.set_xlabel("test accuracy (%); dots are trials, bars their means")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    return settled(figure)


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


def new_figure(height: float = SIZE[1]) -> tuple[Figure, Axes]:
    """An empty figure in the house look."""
    figure = Figure(figsize=(SIZE[0], height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    dress(axes)
    return figure, axes


def name(axes: Axes, drawn: Any, names: Sequence[str], *, beside: bool = False) -> None:
    """A legend above the axes, or beside them, in plain letters."""
    at = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {
        "loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": len(names)
    }  # fmt: skip
    legend = axes.legend(drawn, names, frameon=False, fontsize=FONT - 1, labelcolor=INK, **at)
    for text in legend.get_texts():
        text.set_parse_math(False)


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


def _short(text: str) -> str:
    return text if len(text) <= LONG else text[: LONG - 1] + "…"
