"""The figures of an experiment: learning curves, ablations, split scores, kernels, images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from giw.pages.page import Picture
from giw.pages.style import (
    BLUE,
    GOLD,
    VERMILION,
    Style,
    name_of,
    setting_name,
    shift_name,
    styles_of,
    variant_name,
)
from giw.paper import ablation_tables as ablations
from giw.paper.ablation_tables import CHANGED, DIRECTIONS, REPRESENTATIONS, Where
from giw.paper.accuracy_tables import place_name
from giw.paper.frame import Experiment, Key, Place, order_of
from giw.paper.panels import Dot, Line, curve_grid, dot_panels, line_grid, picture_grid, score_grid
from giw.paper.plan import PROTOCOLS
from giw.paper.printed import paper_split_error
from giw.paper.rows import Result, shows_kernels
from giw.paper.settings import DATASET_CASES, SHIFTS
from giw.support import PUBLISHED_THRESHOLDS

FAMILIES = {
    "iw": ("val_only", "pretrain_val", "pooled", "reweight", "mw_net", "r_diw", "diw", "giw"),
    "da": ("val_only", "pretrain_val", "pooled", "ccsa", "dann", "giw"),
}
FAMILY_NAMES = {"iw": "methods that weight", "da": "domain adaptation"}
BAND = (
    "Mean test accuracy (%) over the trials after each epoch; the band is one standard deviation."
)
SPREAD = "dots are means over trials, bars one standard deviation on either side"
LEVEL = 0.05  # largest p-value that is called outside
COLORS = dict(zip(PROTOCOLS, (BLUE, VERMILION, GOLD), strict=True))
Images = NDArray[np.float64]
Scores = tuple[NDArray[np.float64], NDArray[np.bool_]]  # of validation points, and who is inside


# Learning curves ----------------------------------------------------------------------------------


def curve_pictures(experiment: Experiment) -> list[Picture]:
    """Learning curves by protocol and family of methods: data sets by shifts."""
    others = [m for m in experiment.methods if not any(m in f for f in FAMILIES.values())]
    pictures = []
    for protocol in experiment.protocols():
        ran = set(experiment.plain.method[experiment.plain.protocol == protocol])
        pictures.append(_curve_picture(experiment, protocol, "iw", [*FAMILIES["iw"], *others]))
        if ran & {"ccsa", "dann"}:  # its other methods are drawn with the first family
            pictures.append(_curve_picture(experiment, protocol, "da", FAMILIES["da"]))
    return pictures


def _curve_picture(
    experiment: Experiment, protocol: str, family: str, methods: Sequence[str]
) -> Picture:
    pairs = [p for p in experiment.dataset_cases if protocol in experiment.protocols(*p)]
    curves = {}
    for pair in pairs:
        for shift in SHIFTS:
            found = {m: experiment.curves(Key(Place(*pair, shift), protocol, m)) for m in methods}
            panel = {m: c for m, c in found.items() if c is not None}
            if panel:
                curves[setting_name(*pair), shift_name(shift)] = panel
    rows = [setting_name(*pair) for pair in pairs]
    ran = {column for _, column in curves}
    columns = [shift_name(s) for s in SHIFTS if shift_name(s) in ran]
    absent = [shift_name(s) for s in SHIFTS if shift_name(s) not in ran]
    words = f"{FAMILY_NAMES[family]}, {protocol} protocol, {experiment.name}"
    return Picture(
        curve_grid(curves, rows=rows, columns=columns),
        alt=f"Learning curves, {words}: {', '.join(rows)} by {', '.join(columns)}; the final "
        "values stand in the tables.",
        caption=f"{words[0].upper()}{words[1:]}. {BAND}"
        + (f" Missing, no run: {', '.join(absent)}." if absent else ""),
        name=f"curves-{experiment.slug}-{protocol}-{family}",
        wide=True,
    )


# Ablations ----------------------------------------------------------------------------------------


def ablation_pictures(experiment: Experiment, kind: str) -> list[Picture]:
    """The figures of one kind of ablation."""
    if kind == "split_error":
        return [split_error_picture(experiment, p) for p in ablations.where(experiment, kind)]
    if kind in ("n_train", "n_val"):
        return [size_picture(experiment, p, kind) for p in ablations.where(experiment, kind)]
    few: dict[str, Callable[[Experiment], Picture | None]] = {
        "representation": representation_picture,
        "protocol": protocol_picture,
        "split_way": lambda e: changed_picture(e, "split_way"),
        "soft": lambda e: changed_picture(e, "soft"),
    }
    picture = few[kind](experiment) if kind in few else None
    return [] if picture is None else [picture]


def split_error_picture(experiment: Experiment, place: Where) -> Picture:
    """Accuracy against the share on the wrong side, both directions, beside the paper."""
    shifts, rates = ablations.split_error_grid(experiment, place)
    colors = dict(zip(DIRECTIONS, (VERMILION, BLUE), strict=True))
    panels: dict[str, dict[str, Line]] = {}
    for shift in shifts:
        panel = panels.setdefault(shift_name(shift), {})
        for direction, words in DIRECTIONS.items():
            rows = {
                r: ablations.split_error_row(experiment, place, shift, direction, r) for r in rates
            }
            found = [(r, 100 * x.mean, 100 * (x.std or 0.0)) for r, x in rows.items() if x]
            if found:
                panel[words] = (*map(list, zip(*found, strict=True)), Style(colors[direction]))  # type: ignore[assignment]
            paper = {r: paper_split_error(direction, r, shift) for r in rates}
            theirs = {r: p.mean for r, p in paper.items() if p is not None}
            if theirs and ablations.is_papers(place):
                look = Style(colors[direction], ":")
                panel[f"{words}, paper"] = list(theirs), list(theirs.values()), None, look
    return Picture(
        line_grid(panels, xlabel="share on the wrong side"),
        alt="Accuracy of GIW against the share of points on the wrong side; the table has the "
        "numbers.",
        caption="GIW with a share of one group on the wrong side of the true split, on "
        f"{setting_name(*place[:2])}, {experiment.name}, {place[2]} protocol; bars are standard "
        "deviations over trials, dots without bars the paper.",
        name=f"split-errors-{experiment.slug}-{'-'.join(place)}",
        wide=True,
    )


def size_picture(experiment: Experiment, place: Where, family: str) -> Picture:
    """Accuracy of all methods against the number of training or validation points."""
    what = "training" if family == "n_train" else "validation"
    variants = ablations.size_variants(experiment, place, family)
    sizes = {v: float(label.replace(",", "")) for label, v in variants.items() if label != "all"}
    panels: dict[str, dict[str, Line]] = {}
    for shift in ablations.shifts_of(experiment, place, family):
        panel = panels.setdefault(shift_name(shift), {})
        rows = {v: ablations.size_rows(experiment, place, shift, v) for v in sizes}
        for method, style in styles_of(experiment.methods).items():
            found = {sizes[v]: rows[v][method] for v in sizes if method in rows[v]}
            if found:
                means = [100 * row.mean for row in found.values()]
                spreads = [100 * (row.std or 0.0) for row in found.values()]
                panel[name_of(method)] = list(found), means, spreads, style
    return Picture(
        line_grid(panels, xlabel=f"{what} points"),
        alt=f"Accuracy against the number of {what} points; the table has the numbers.",
        caption=f"Accuracy against the number of {what} points on {setting_name(*place[:2])}, "
        f"{experiment.name}, {place[2]} protocol; bars are standard deviations over trials.",
        name=f"{family.replace('_', '-')}-{experiment.slug}-{'-'.join(place)}",
        wide=True,
    )


def representation_picture(experiment: Experiment) -> Picture | None:
    """Learning curves of DIW and GIW with weights from losses (-L) and hidden layers (-F)."""
    corners = sorted(
        {(key.place, key.protocol) for key in experiment.cells if key.variant == "hidden"},
        key=lambda c: (order_of(c[0]), PROTOCOLS.index(c[1])),
    )
    if not corners:
        return None
    row, curves = "accuracy (%)", {}
    for place, protocol in corners:
        found = {
            name: experiment.curves(Key(place, protocol, method, variant))
            for name, (method, variant) in REPRESENTATIONS.items()
        }
        column = f"{setting_name(*place[:2])}\n{shift_name(place.shift)}, {protocol}"
        curves[row, column] = {name: values for name, values in found.items() if values is not None}
    looks = {
        name: Style(VERMILION if method == "giw" else BLUE, "--" if variant else "-")
        for name, (method, variant) in REPRESENTATIONS.items()
    }
    return Picture(
        curve_grid(curves, rows=[row], columns=[c for _, c in curves], styles=looks),
        alt="Learning curves of DIW and GIW, each with weights from losses and from the hidden "
        "layer; the table has the final values.",
        caption=f"Weights from losses (-L) or the hidden layer (-F), {experiment.name}. {BAND}",
        name=f"representation-{experiment.slug}",
        wide=True,
    )


def protocol_picture(experiment: Experiment) -> Picture | None:
    """Honest and published protocol, wherever a method was run as it is under both."""
    dots: dict[str, dict[str, list[Dot]]] = {}
    for method in experiment.methods:
        for pair in DATASET_CASES:
            for shift in SHIFTS:
                keys = [Key(Place(*pair, shift), protocol, method) for protocol in PROTOCOLS[:2]]
                row = [_dot(experiment, key, COLORS[key.protocol]) for key in keys]
                if None not in row:
                    panel = dots.setdefault(f"{name_of(method)} on {setting_name(*pair)}", {})
                    panel[shift_name(shift)] = [dot for dot in row if dot is not None]
    if not dots:
        return None
    return Picture(
        dot_panels(dots, legend={p: COLORS[p] for p in PROTOCOLS[:2]}),
        alt="Accuracy under the honest and the published protocol; the table has the numbers.",
        caption=f"Honest and published protocol, {experiment.name}; {SPREAD}.",
        name=f"protocols-{experiment.slug}",
    )


def changed_picture(experiment: Experiment, family: str) -> Picture | None:
    """Variants beside the method as it is, in every setting where one was run."""
    name, words, always, _ = CHANGED[family]
    dots: dict[str, dict[str, list[Dot]]] = {}
    for base, variants in ablations.contests(experiment, family, always).items():
        panel = dots.setdefault(ablations.contest_name(base), {})
        for variant in variants:
            color = BLUE if variant else VERMILION
            dot = _dot(experiment, base._replace(variant=variant), color)
            if dot is not None:
                panel[variant_name(variant)] = [dot]
    if not dots:
        return None
    return Picture(
        dot_panels(dots),
        alt=f"{words}: accuracy by variant; the table has the numbers.",
        caption=f"{words}, {experiment.name}; {SPREAD}.",
        name=f"{name}-{experiment.slug}",
    )


def _dot(experiment: Experiment, key: Key, color: str) -> Dot | None:
    row = experiment.row(key)
    if row is None:
        return None
    return 100 * row.mean, None if row.std is None else 100 * row.std, color


# What the split sees ------------------------------------------------------------------------------


def score_pictures(experiment: Experiment) -> list[Picture]:
    """Histograms for each data set under support shift: p-values, and the published score."""
    cuts = sorted(PUBLISHED_THRESHOLDS.values())
    p_values = _score_picture(
        experiment,
        _gather(experiment, ("",), "p_value"),
        cuts=[LEVEL],
        limits=(0, 1),
        xlabel="p-value",
        name="scores",
        alt="Histograms of p-values.",
        what="p-values of validation points of all trials, GIW",
        meaning=f"The dashed line is the cut at {LEVEL}: what lies to its right is called inside.",
    )
    published = _score_picture(
        experiment,
        # stored is how strange a point is; score_samples is larger for points like training data
        {
            at: (-s, inside)
            for at, (s, inside) in _gather(experiment, ("osvm_code", "osvm_text"), "score").items()
        },
        cuts=cuts,
        limits=None,
        xlabel="score",
        name="published-scores",
        alt="Histograms of the score of the published split.",
        what="Score of the published split (one-class SVM), validation points of all trials",
        meaning="The dashed lines are the thresholds of the authors' code "
        f"({cuts[0]:g}) and of the paper's text ({cuts[1]:g}).",
    )
    return [picture for picture in (p_values, published) if picture is not None]


def _score_picture(
    experiment: Experiment,
    scores: dict[tuple[str, str], Scores],
    *,
    cuts: Sequence[float],
    limits: tuple[float, float] | None,
    xlabel: str,
    name: str,
    alt: str,
    what: str,
    meaning: str,
) -> Picture | None:
    if not scores:
        return None
    parts = [
        f"{column}, {row}: {np.mean(p[s] > cuts[0]):.0%} of inside and "
        f"{np.mean(p[~s] > cuts[0]):.0%} of outside points above {cuts[0]:g}"
        for (row, column), (p, s) in scores.items()
        if s.any() and not s.all()
    ]
    names = [setting_name(*pair) for pair in DATASET_CASES]
    rows = [p for p in PROTOCOLS if any(row == p for row, _ in scores)]
    columns = [name for name in names if any(column == name for _, column in scores)]
    absent = [name for name in names if name not in columns]
    missing = f" Missing, no scores stored: {', '.join(absent)}." if absent else ""
    return Picture(
        score_grid(scores, rows=rows, columns=columns, cuts=cuts, limits=limits, xlabel=xlabel),
        alt=f"{alt} {'; '.join(parts)}.",
        caption=f"{what} under support shift, {experiment.name}, coloured by the truth, which the "
        f"method does not see. {meaning}{missing}",
        name=f"{name}-{experiment.slug}",
        wide=True,
    )


def _gather(
    experiment: Experiment, variants: tuple[str, ...], name: str
) -> dict[tuple[str, str], Scores]:
    """Scores of all trials by protocol and data set, from the first variant that has any."""
    found: dict[tuple[str, str], Scores] = {}
    for protocol in PROTOCOLS:
        for pair in DATASET_CASES:
            for variant in variants:
                key = Key(Place(*pair, "support"), protocol, "giw", variant)
                good = [s for r in experiment.trials(key) if (s := _stored_scores(r, name))]
                if good:
                    score, inside = (np.concatenate(part) for part in zip(*good, strict=True))
                    found.setdefault((protocol, setting_name(*pair)), (score, inside))
    return found


def _stored_scores(result: Result, name: str) -> Scores | None:
    score = np.asarray(result.extra.get(name, []), dtype=np.float64)
    inside = np.asarray(result.extra.get("inside", []), dtype=np.float64) > 0.5
    return (score, inside) if len(score) > 0 and score.shape == inside.shape else None


# Images that a result may bring along -------------------------------------------------------------


def stored_array(result: Result, name: str) -> Images | None:
    """A small array that a result carries flat, with its shape beside it; None without one.

    ``extra["kernels"]`` holds the numbers, ``extra["kernels_shape"]`` the shape, rows last to
    first as in C; likewise ``train_images`` and ``val_images``.
    """
    if name not in result.extra:
        return None
    shape = tuple(int(n) for n in result.extra.get(f"{name}_shape", []))
    values = np.asarray(result.extra[name], dtype=np.float64)
    if len(shape) != 4 or values.ndim != 1 or values.size == 0 or values.size != np.prod(shape):
        raise ValueError(
            f"{result.run.key} has {name} of {values.size} numbers, which do not fill the four "
            f"sides of {name}_shape {shape}"
        )
    return values.reshape(shape)


def _first_stored(trials: Sequence[Result], name: str, remarks: list[str]) -> Images | None:
    for result in trials:
        try:
            stored = stored_array(result, name)
        except ValueError as error:
            if str(error) not in remarks:
                remarks.append(str(error))
            continue
        if stored is not None:
            return stored
    return None


def _in_order(experiment: Experiment) -> list[Key]:
    return sorted(experiment.cells, key=lambda k: (order_of(k.place), k))


def kernel_pictures(experiment: Experiment, remarks: list[str]) -> list[Picture]:
    """First-layer kernels of every method that stored them, one figure for each setting."""
    found: dict[tuple[Place, str], dict[str, Images]] = {}
    for key in _in_order(experiment):
        trials = experiment.trials(key)
        if any(shows_kernels(result.run) for result in trials):
            stored = _first_stored(trials, "kernels", remarks)
            if stored is not None:
                found.setdefault((key.place, key.protocol), {})[key.method] = colours_of(stored)
    pictures = []
    for (place, protocol), by_method in found.items():
        ordered = {name_of(m): by_method[m] for m in experiment.methods if m in by_method}
        words = f"{place_name(place)}, {protocol} protocol"
        absent = [name_of(m) for m in experiment.methods if m not in by_method]
        pictures.append(
            Picture(
                picture_grid(ordered),
                alt=f"First-layer kernels on {words} of {', '.join(ordered)}.",
                caption=f"Kernels of the first layer on {words}, {experiment.name}, first trial "
                "that stored them. Colour channels as they are in the image; brighter is larger in "
                "absolute value, relative to the largest of the method."
                + (f" Missing, not stored: {', '.join(absent)}." if absent else ""),
                name=f"kernels-{experiment.slug}-{'-'.join(place)}-{protocol}",
            )
        )
    return pictures


def colours_of(kernels: Images) -> Images:
    """Kernels of shape (count, channels, height, width) as pictures, absolute values, max one."""
    size = _in_colour(np.abs(kernels))
    return size / max(float(size.max()), 1e-12)


def _in_colour(images: Images) -> Images:
    """Channels last, and three of them: grey is the mean over the others, three times."""
    last = images.transpose(0, 2, 3, 1)
    return last if last.shape[-1] == 3 else np.repeat(last.mean(axis=-1, keepdims=True), 3, axis=-1)


def sample_picture(experiment: Experiment, remarks: list[str]) -> Picture | None:
    """Training and validation images of the first run of each data set that stored them."""
    shown: dict[str, Images] = {}
    for key in _in_order(experiment):
        for name, words in (("train_images", "training"), ("val_images", "validation")):
            title = f"{setting_name(*key.place[:2])}\n{words}"
            if title not in shown:
                stored = _first_stored(experiment.trials(key), name, remarks)
                if stored is not None:
                    shown[title] = np.clip(_in_colour(stored), 0, 255) / 255
    if not shown:
        return None
    titles = [title.replace("\n", ", ") for title in shown]
    return Picture(
        picture_grid(shown, columns=4),
        alt=f"Sample images: {'; '.join(titles)}.",
        caption=f"Images that the methods learned from, {experiment.name}.",
        name=f"samples-{experiment.slug}",
    )
