"""The paper's figures from our results: cases, learning curves, ablations, scores of the split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from giw.pages.figures import draw_curve, dress, settled
from giw.pages.page import Picture
from giw.pages.style import (
    BLUE,
    INK,
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
from giw.paper.settings import DATASET_CASES, SHIFTS
from giw.paper.table_ablation import DIRECTIONS
from giw.support import PUBLISHED_THRESHOLDS

FONT = 11.0
LEVEL = 0.05  # largest p-value that is called outside
ORDER = [setting_name(*pair) for pair in DATASET_CASES]  # of panels
ORDER += [*map(shift_name, SHIFTS), *PROTOCOLS]
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


def sides_of(contents: Mapping[tuple[str, str], Any]) -> list[list[str]]:
    """Names of the rows and of the columns of panels, in the paper's order."""
    return [
        sorted(dict.fromkeys(names), key=lambda name: ORDER.index(name) if name in ORDER else 0)
        for names in zip(*contents, strict=True)
    ]


def panels(
    contents: Mapping[tuple[str, str], Any],
    draw: Callable[[Axes, Any], None],
    *,
    size: tuple[float, float],
    xlabel: str,
    legend: Mapping[str, Style],
    filled: bool = False,
) -> Figure:
    """One panel for each row and column that is named; one without content says so.

    ``size`` is that of a panel in inches; with ``filled`` the legend shows areas and not lines.
    """
    rows, columns = sides_of(contents)
    figure, grid = empty_panels(len(rows), len(columns), *size)
    for (r, c), axes in np.ndenumerate(grid):
        content = contents.get((rows[r], columns[c]))
        axes.set_ylabel(rows[r] if c == 0 else "", color=INK, size=FONT)
        axes.set_title(columns[c] if r == 0 else "", color=INK, size=FONT)
        if not content:
            axes.set(xticks=[], yticks=[])
            axes.text(0.5, 0.5, "no run", ha="center", color=INK, transform=axes.transAxes)
            continue
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
        draw(axes, content)
        if r == len(rows) - 1:
            axes.set_xlabel(xlabel)
    width = 8 if filled else 2
    handles = [Line2D([], [], lw=width, color=s.color, ls=s.dash) for s in legend.values()]
    fits = max(2, int(figure.get_figwidth() / 1.35))
    lines = -(-len(handles) // fits) or 1  # as few as fit, and as even as they get
    look: dict[str, Any] = {"frameon": False, "fontsize": FONT, "labelcolor": INK}
    look |= {"handlelength": 1.6, "columnspacing": 1.3, "ncols": -(-len(handles) // lines) or 1}
    figure.legend(handles, legend, loc="outside upper center", **look)
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
    styles = styles_of(experiment.methods)

    def draw(axes: Axes, panel: Mapping[str, Any]) -> None:
        for method, curves in panel.items():  # (trials, epochs)
            thin, values = max(1, experiment.epochs // 80), 100 * np.stack(curves)
            draw_curve(axes, values, styles[method], main=method == "giw", thin=thin)

    found = []
    for protocol in experiment.protocols:
        shown = {}
        for place in PLACES:
            keys = {m: Key(place, protocol, m) for m in experiment.methods}
            panel = {m: curves for m, key in keys.items() if (curves := experiment.curves(key))}
            if panel:
                shown[setting_name(*place[:2]), shift_name(place.shift)] = panel
        if not shown:
            continue
        rows, columns = sides_of(shown)
        methods = dict.fromkeys(m for panel in shown.values() for m in panel)
        words = f"{protocol} protocol, {experiment.name}"
        picture = Picture(
            panels(
                shown,
                draw,
                size=(4.2, 3.2) if len(rows) * len(columns) <= 2 else (2.35, 1.9),
                xlabel="epoch",
                legend={name_of(method): styles[method] for method in methods},
            ),
            alt=f"Learning curves, {words}: {', '.join(rows)} by {', '.join(columns)}; the final "
            "values stand in the tables.",
            caption=f"{words[0].upper()}{words[1:]}. Mean test accuracy (%) over the trials after "
            "each epoch; the band is one standard deviation.",
            name=f"curves-{experiment.slug}-{protocol}",
            wide=True,
        )
        found.append(picture)
    return found


# Ablations (figure 7 of the paper) ----------------------------------------------------------------


def ablation_pictures(experiment: Experiment, kind: str) -> list[Picture]:
    """The figures of one kind of ablation; kinds that the paper does not draw have none."""
    places = ablations.where(experiment, kind) if kind in ablations.AMOUNTS else []
    return [_amounts(experiment, at, kind) for at in places]


def _amounts(experiment: Experiment, at: ablations.Where, family: str) -> Picture:
    """Accuracy against a number of points, or a share on the wrong side; bars are spreads."""
    splits = family == "split_error"
    what = ablations.AMOUNTS[family][1]
    colors = zip(DIRECTIONS, (VERMILION, BLUE), strict=True)
    looks = {d: Style(c) for d, c in colors} if splits else styles_of(experiment.methods)
    shown: dict[tuple[str, str], dict[str, Line]] = {}
    legend: dict[str, Style] = {}
    for shift, amounts in ablations.amount_rows(experiment, at, family).items():
        panel = shown.setdefault(("test accuracy (%)", shift_name(shift)), {})
        for series, style in looks.items():
            name = DIRECTIONS[series] if splits else name_of(series)
            ours = {
                x: here[series] for x, here in amounts.items() if series in here and isfinite(x)
            }
            means = [100 * row.mean for row in ours.values()]
            spread = [100 * (row.std or 0.0) for row in ours.values()]
            lines: dict[str, Line] = {name: (list(ours), means, spread, style)}
            if splits and ablations.is_papers(at):
                paper = {x: paper_split_error(series, x, shift) for x in amounts}
                theirs = {x: figure.mean for x, figure in paper.items() if figure is not None}
                dots = Style(style.color, ":")
                lines[f"{name}, paper"] = list(theirs), list(theirs.values()), None, dots
            panel |= {label: line for label, line in lines.items() if line[0]}
        legend |= {label: line[3] for label, line in panel.items()}

    def draw(axes: Axes, named: Mapping[str, Line]) -> None:
        for x, y, spread, style in named.values():
            look: dict[str, Any] = {"color": style.color, "linestyle": style.dash}
            look |= {"linewidth": 1.7, "elinewidth": 1, "marker": "o", "markersize": 4}
            axes.errorbar(x, y, yerr=spread, **look)
        if all(x >= 1000 for line in named.values() for x in line[0]):
            axes.xaxis.set_major_formatter("{x:,.0f}")

    shown = {side: panel for side, panel in shown.items() if panel}
    words = "GIW, a share of one group on the wrong side of the true split, dotted the paper"
    words = words if splits else f"Accuracy against the number of {what}"
    size = (6.4 if len(shown) == 1 else 3.8, 3.4)
    return Picture(
        panels(shown, draw, size=size, xlabel=what, legend=legend),
        alt=f"{words}; the table has the numbers.",
        caption=f"{words}, on {ablations.place_in_words(experiment, at)}; bars are standard "
        "deviations over trials.",
        name=ablations.slug_of(experiment, at, family),
        wide=True,
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
    found = [
        _scores(experiment, [("giw", "")], "p_value", [LEVEL], p_values),
        _scores(experiment, machines, "score", [code, text], published),
    ]
    return [picture for picture in found if picture is not None]


def _scores(
    experiment: Experiment,
    methods: Sequence[tuple[str, str]],
    name: str,
    cuts: Sequence[float],
    what: str,
) -> Picture | None:
    """Truly inside and truly outside points, protocols by data sets, over all trials."""
    found: dict[tuple[str, str], Scores] = {}
    for pair in DATASET_CASES:
        for protocol in PROTOCOLS:
            for method, variant in methods:
                trials = experiment.trials(Key(Place(*pair, "support"), protocol, method, variant))
                stored = [[np.array(r.extra.get(n, [])) for n in (name, "inside")] for r in trials]
                good = [two for two in stored if len(two[0]) == len(two[1]) > 0]
                if good:
                    score, inside = (np.concatenate(part) for part in zip(*good, strict=True))
                    # stored is how strange a point is; a score is larger for ordinary points
                    score = -score if name == "score" else score
                    at = protocol, setting_name(*pair)
                    found.setdefault(at, (score, inside > 0.5))
    if not found:
        return None

    def draw(axes: Axes, content: Scores) -> None:
        score, inside = content
        low, high = (0.0, 1.0) if name == "p_value" else (min(*score, *cuts), max(*score, *cuts))
        bins = np.linspace(low, high, 21).tolist()
        bars = [score[inside], score[~inside]]
        axes.hist(bars, bins=bins, stacked=True, color=[BLUE, VERMILION], rwidth=0.9)
        for cut in cuts:
            axes.axvline(cut, color=INK, linewidth=1, linestyle=(0, (4, 3)))

    return Picture(
        panels(
            found,
            draw,
            size=(max(2.7, 5.4 / len(sides_of(found)[1])), 2.3),
            xlabel=name.replace("_", "-"),
            legend={"inside the training support": Style(BLUE), "outside it": Style(VERMILION)},
            filled=True,
        ),
        alt=f"Histograms of {name.replace('_', '-')}s; the table has the shares on either side.",
        caption=f"{what}. All trials under support shift, {experiment.name}, coloured by the "
        "truth, which the method does not see.",
        name=f"{'scores' if name == 'p_value' else 'published-scores'}-{experiment.slug}",
        wide=True,
    )
