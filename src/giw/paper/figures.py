"""The paper's figures from our results: cases, learning curves, ablations, scores of the split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from giw.pages.figures import draw_curve, dress, settled
from giw.pages.page import Picture
from giw.pages.style import (
    BLUE,
    INK,
    LINE,
    VERMILION,
    Style,
    name_of,
    setting_name,
    shift_name,
    styles_of,
)
from giw.paper import table_ablation as ablations
from giw.paper.frame import PLACES, Experiment, Key, Place
from giw.paper.plan import PROTOCOLS
from giw.paper.printed import paper_split_error
from giw.paper.rows import Result
from giw.paper.settings import DATASET_CASES, SHIFTS
from giw.paper.table_ablation import DIRECTIONS, Where
from giw.support import PUBLISHED_THRESHOLDS

FONT = 11.0
BAND = (
    "Mean test accuracy (%) over the trials after each epoch; the band is one standard deviation."
)
LEVEL = 0.05  # largest p-value that is called outside
POINTS = 80  # of a curve in a panel of two inches; more would be ink and megabytes
Scores = tuple[NDArray[np.float64], NDArray[np.bool_]]  # of validation points, and who is inside
# x, y, spread and look of a line
Line = tuple[Sequence[float], Sequence[float], Sequence[float] | None, Style]


# Panels side by side ------------------------------------------------------------------------------


def empty_panels(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A figure with dressed axes, (rows, columns)."""
    figure = Figure(figsize=(width * columns + 0.4, height * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        dress(axes, FONT)
    return figure, grid


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

    ``size`` is that of a panel in inches; with ``filled`` the legend shows areas and not lines.
    """
    figure, grid = empty_panels(len(rows), len(columns), *size)
    for (r, c), axes in np.ndenumerate(grid):
        content = contents.get((rows[r], columns[c]))
        axes.set_ylabel(rows[r] if c == 0 else "", color=INK, size=FONT)
        axes.set_title(columns[c] if r == 0 else "", color=INK, size=FONT, parse_math=False)
        if not content:
            axes.set(xticks=[], yticks=[])
            axes.spines["bottom"].set_color(LINE)
            place = {"ha": "center", "color": INK, "size": FONT, "transform": axes.transAxes}
            axes.text(0.5, 0.5, "no run", **place)
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
    fits = max(2, int(figure.get_figwidth() / 1.35))
    lines = -(-len(handles) // fits) or 1  # as few as fit, and as even as they get
    look: dict[str, Any] = {"frameon": False, "fontsize": FONT, "labelcolor": INK}
    look |= {"handlelength": 1.6, "columnspacing": 1.3, "ncols": -(-len(handles) // lines) or 1}
    drawn = figure.legend(handles, legend, loc="outside upper center", **look)
    for text in drawn.get_texts():
        text.set_parse_math(False)
    return settled(figure)


# Figure 1: the four cases of support shift --------------------------------------------------------


def support_cases() -> Picture:
    """How the supports of training and test data can lie to each other."""
    cases = {  # centre and width of the training and of the test support
        "(i) equal": ((0.0, 1.5), (0.0, 1.6)),
        "(ii) test within training": ((0.0, 1.8), (0.0, 1.0)),
        "(iii) training within test": ((0.0, 1.0), (0.0, 1.8)),
        "(iv) overlap": ((-0.4, 1.3), (0.4, 1.3)),
    }
    figure, ((*line,),) = empty_panels(1, 4, 2.2, 1.7)
    looks = {"training": (BLUE, "-"), "test": (VERMILION, "--")}
    for axes, (title, supports) in zip(line, cases.items(), strict=True):
        for (name, (color, dash)), (x, width) in zip(looks.items(), supports, strict=True):
            shape = Ellipse((x, 0), width, 0.62 * width, fill=False, linewidth=2.2, label=name)
            shape.set(edgecolor=color, linestyle=dash)
            axes.add_patch(shape)
        axes.set(xlim=(-1.15, 1.15), ylim=(-0.75, 0.75), aspect="equal")
        axes.set_axis_off()
        axes.set_title(title, color=INK, size=FONT)
    handles = line[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, labelcolor=INK)
    return Picture(
        settled(figure),
        alt="Training and test support: equal, test inside, training inside, overlapping.",
        caption="Figure 1 of the paper: the four cases. Importance weighting solves (i) and (ii); "
        "in (iii) and (iv) some test points lie where training has none.",
        name="support-cases",
        wide=True,
    )


# Learning curves ----------------------------------------------------------------------------------


def curve_pictures(experiment: Experiment) -> list[Picture]:
    """Learning curves by protocol: data sets by shifts."""

    def draw(axes: Axes, panel: Mapping[str, NDArray[np.float64]]) -> None:
        for method, values in panel.items():  # (trials, epochs)
            thin = max(1, values.shape[1] // POINTS)
            draw_curve(axes, 100 * values, styles[method], main=method == "giw", thin=thin)

    found = []
    for protocol in experiment.protocols():
        shown: dict[tuple[str, str], dict[str, NDArray[np.float64]]] = {}
        for place in PLACES:
            every = {m: experiment.curves(Key(place, protocol, m)) for m in experiment.methods}
            panel = {m: curves for m, curves in every.items() if curves is not None}
            if panel:
                shown[setting_name(*place[:2]), shift_name(place.shift)] = panel
        if not shown:
            continue
        rows = list(dict.fromkeys(row for row, _ in shown))
        columns = [shift_name(s) for s in SHIFTS if any(c == shift_name(s) for _, c in shown)]
        styles = styles_of(dict.fromkeys(m for panel in shown.values() for m in panel))
        drawn = panels(
            shown,
            draw,
            rows=rows,
            columns=columns,
            size=(4.2, 3.2) if len(rows) * len(columns) <= 2 else (2.35, 1.9),
            xlabel="epoch",
            legend={name_of(method): style for method, style in styles.items()},
        )
        words = f"{protocol} protocol, {experiment.name}"
        picture = Picture(
            drawn,
            alt=f"Learning curves, {words}: {', '.join(rows)} by {', '.join(columns)}; the final "
            "values stand in the tables.",
            caption=f"{words[0].upper()}{words[1:]}. {BAND}",
            name=f"curves-{experiment.slug}-{protocol}",
            wide=True,
        )
        found.append(picture)
    return found


# Ablations (figure 7 of the paper) ----------------------------------------------------------------


def ablation_pictures(experiment: Experiment, kind: str) -> list[Picture]:
    """The figures of one kind of ablation; kinds that the paper does not draw have none."""
    if kind not in ("split_error", "n_train", "n_val"):
        return []
    places = ablations.where(experiment, kind)
    if kind == "split_error":
        return [_split_errors(experiment, place) for place in places]
    return [_sizes(experiment, place, kind) for place in places]


def _lines(lines: Mapping[str, Mapping[str, Line]], xlabel: str, **words: str) -> Picture:
    """Accuracy in percent against an amount, one panel each; spreads are drawn as bars."""

    def draw(axes: Axes, named: Mapping[str, Line]) -> None:
        for x, y, spread, style in named.values():
            look: dict[str, Any] = {"color": style.color, "linestyle": style.dash}
            look |= {"linewidth": 1.7, "elinewidth": 1, "marker": "o", "markersize": 4}
            axes.errorbar(x, y, yerr=spread, **look)
        if all(x >= 1000 for line in named.values() for x in line[0]):
            axes.xaxis.set_major_formatter("{x:,.0f}")

    row = "test accuracy (%)"
    drawn = panels(
        {(row, column): named for column, named in lines.items()},
        draw,
        rows=[row],
        columns=list(lines),
        size=(6.4 if len(lines) == 1 else 3.8, 3.4),
        xlabel=xlabel,
        legend={name: line[3] for named in lines.values() for name, line in named.items()},
    )
    return Picture(drawn, wide=True, **words)


def _split_errors(experiment: Experiment, place: Where) -> Picture:
    """Accuracy against the share on the wrong side, both directions, beside the paper."""
    colors = dict(zip(DIRECTIONS, (VERMILION, BLUE), strict=True))
    shown: dict[str, dict[str, Line]] = {}
    for shift, rows in ablations.split_error_rows(experiment, place).items():
        panel = shown.setdefault(shift_name(shift), {})
        for direction, words in DIRECTIONS.items():
            ours = {rate: row for (d, rate), row in rows.items() if d == direction and row}
            if ours:
                means = [100 * row.mean for row in ours.values()]
                spread = [100 * (row.std or 0.0) for row in ours.values()]
                panel[words] = list(ours), means, spread, Style(colors[direction])
            paper = {r: paper_split_error(direction, r, shift) for d, r in rows if d == direction}
            theirs = {r: p.mean for r, p in paper.items() if p is not None}
            if theirs and ablations.is_papers(place):
                look = Style(colors[direction], ":")
                panel[f"{words}, paper"] = list(theirs), list(theirs.values()), None, look
    return _lines(
        shown,
        "share on the wrong side",
        alt="Accuracy of GIW against the share of points on the wrong side; the table has the "
        "numbers.",
        caption="GIW with a share of one group on the wrong side of the true split, on "
        f"{ablations.place_in_words(experiment, place)}; bars are standard deviations over trials, "
        "dots without bars the paper.",
        name=f"split-errors-{experiment.slug}-{'-'.join(place)}",
    )


def _sizes(experiment: Experiment, place: Where, family: str) -> Picture:
    """Accuracy of all methods against the number of training or validation points."""
    what = "training" if family == "n_train" else "validation"
    variants = ablations.size_variants(experiment, place, family)
    sizes = {v: float(label.replace(",", "")) for label, v in variants.items() if label != "all"}
    shown: dict[str, dict[str, Line]] = {}
    for shift in ablations.shifts_of(experiment, place, family):
        at = Place(*place[:2], shift)
        rows = {v: experiment.standings(at, place[2], v) for v in sizes}
        for method, style in styles_of(experiment.methods).items():
            found = {sizes[v]: rows[v][method] for v in sizes if method in rows[v]}
            if found:
                means = [100 * row.mean for row in found.values()]
                spread = [100 * (row.std or 0.0) for row in found.values()]
                panel = shown.setdefault(shift_name(shift), {})
                panel[name_of(method)] = list(found), means, spread, style
    return _lines(
        shown,
        f"{what} points",
        alt=f"Accuracy against the number of {what} points; the table has the numbers.",
        caption=f"Accuracy against the number of {what} points on "
        f"{ablations.place_in_words(experiment, place)}; bars are standard deviations over trials.",
        name=f"{family.replace('_', '-')}-{experiment.slug}-{'-'.join(place)}",
    )


# What the split sees (the paper's histograms of the one-class SVM's score) ------------------------


def score_pictures(experiment: Experiment) -> list[Picture]:
    """Histograms for each data set under support shift: p-values, and the published score."""
    code, text = sorted(PUBLISHED_THRESHOLDS.values())
    p_values = (
        f"p-values of validation points, GIW. The dashed line is the cut at {LEVEL}: what lies to "
        "its right is called inside"
    )
    published = (
        "Score of the published split (one-class SVM), validation points. The dashed lines are the "
        f"thresholds of the authors' code ({code:g}) and of the paper's text ({text:g})"
    )
    machines = [("giw", "osvm_code"), ("giw", "osvm_text"), ("giw_published", "")]
    return [
        *_scores(experiment, [("giw", "")], "p_value", [LEVEL], p_values),
        *_scores(experiment, machines, "score", [code, text], published),
    ]


def _scores(
    experiment: Experiment,
    methods: Sequence[tuple[str, str]],
    name: str,
    cuts: Sequence[float],
    what: str,
) -> list[Picture]:
    """Truly inside and truly outside points, protocols by data sets, over all trials."""
    found: dict[tuple[str, str], Scores] = {}
    for pair in DATASET_CASES:
        for protocol in PROTOCOLS:
            for method, variant in methods:
                trials = experiment.trials(Key(Place(*pair, "support"), protocol, method, variant))
                good = [s for r in trials if (s := _stored_scores(r, name))]
                if good:
                    score, inside = (np.concatenate(part) for part in zip(*good, strict=True))
                    found.setdefault((protocol, setting_name(*pair)), (score, inside))
    if not found:
        return []

    def draw(axes: Axes, content: Scores) -> None:
        score, inside = content
        low, high = (0.0, 1.0) if name == "p_value" else (min(*score, *cuts), max(*score, *cuts))
        bins = np.linspace(low, high, 21).tolist()
        bars = [score[inside], score[~inside]]
        axes.hist(bars, bins=bins, stacked=True, color=[BLUE, VERMILION], rwidth=0.9)
        for cut in cuts:
            axes.axvline(cut, color=INK, linewidth=1, linestyle=(0, (4, 3)))

    columns = list(dict.fromkeys(column for _, column in found))
    drawn = panels(
        found,
        draw,
        rows=[p for p in PROTOCOLS if any(row == p for row, _ in found)],
        columns=columns,
        size=(max(2.7, 5.4 / len(columns)), 2.3),
        xlabel=name.replace("_", "-"),
        legend={"inside the training support": Style(BLUE), "outside it": Style(VERMILION)},
        filled=True,
    )
    shares = [
        f"{column}, {row}: {np.mean(p[s] > cuts[0]):.0%} of inside and "
        f"{np.mean(p[~s] > cuts[0]):.0%} of outside points above {cuts[0]:g}"
        for (row, column), (p, s) in found.items()
        if s.any() and not s.all()
    ]
    absent = [setting_name(*p) for p in DATASET_CASES if setting_name(*p) not in columns]
    missing = f" Missing, no scores stored: {', '.join(absent)}." if absent else ""
    return [
        Picture(
            drawn,
            alt=f"Histograms of {name.replace('_', '-')}s. {'; '.join(shares)}.",
            caption=f"{what}. All trials under support shift, {experiment.name}, coloured by the "
            f"truth, which the method does not see.{missing}",
            name=f"{'scores' if name == 'p_value' else 'published-scores'}-{experiment.slug}",
            wide=True,
        )
    ]


def _stored_scores(result: Result, name: str) -> Scores | None:
    score = np.asarray(result.extra.get(name, []), dtype=np.float64)
    inside = np.asarray(result.extra.get("inside", []), dtype=np.float64) > 0.5
    if len(score) == 0 or score.shape != inside.shape:
        return None
    # stored is how strange a point is; score_samples is larger for points like training data
    return (-score if name == "score" else score), inside
