"""The figures of an experiment, each with its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.pages.page import Picture
from giw.pages.style import BLUE, VERMILION, Style, name_of, setting_name, shift_name, styles_of
from giw.paper.bench.figure_data import shows_kernels
from giw.paper.bench.plan import PROTOCOLS
from giw.paper.bench.store import Result
from giw.paper.report import ablations
from giw.paper.report.ablations import DIRECTIONS, REPRESENTATIONS, Where
from giw.paper.report.cells import Experiment, Key, Place, order_of
from giw.paper.report.panels import Line, curve_grid, line_grid, picture_grid
from giw.paper.report.paper import paper_split_error
from giw.paper.shift import SHIFTS

FAMILIES = {
    "iw": ("val_only", "pretrain_val", "pooled", "reweight", "mw_net", "r_diw", "diw", "giw"),
    "da": ("val_only", "pretrain_val", "pooled", "ccsa", "dann", "giw"),
}
FAMILY_NAMES = {"iw": "methods that weight", "da": "domain adaptation"}
BAND = (
    "Mean test accuracy (%) over the trials after each epoch; the band is one standard deviation."
)
Images = NDArray[np.float64]


def curve_pictures(experiment: Experiment) -> list[Picture]:
    """Learning curves by protocol and family of methods: data sets by shifts."""
    pictures = []
    for protocol in experiment.protocols():
        for family, methods in FAMILIES.items():
            others = [m for m in experiment.methods if not any(m in f for f in FAMILIES.values())]
            ran = {k.method for k in experiment.cells if k.protocol == protocol and not k.variant}
            if family == "da" and not ran & {"ccsa", "dann"}:
                continue  # its other methods are drawn with the first family
            pictures.append(
                _curve_picture(
                    experiment, protocol, family, [*methods, *(others if family == "iw" else [])]
                )
            )
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
    figure = curve_grid(curves, rows=rows, columns=columns)
    words = f"{FAMILY_NAMES[family]}, {protocol} protocol, {experiment.name}"
    return Picture(
        figure,
        alt=f"Learning curves, {words}: {', '.join(rows)} by {', '.join(columns)}; the final "
        "values stand in the tables.",
        caption=f"{words[0].upper()}{words[1:]}. {BAND}"
        + (f" Missing, no run: {', '.join(absent)}." if absent else ""),
        name=f"curves-{experiment.slug}-{protocol}-{family}",
        wide=True,
    )


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
            found = {rate: row for rate, row in rows.items() if row is not None}
            if found:
                panel[words] = (
                    list(found),
                    [100 * row.mean for row in found.values()],
                    [100 * (row.std or 0.0) for row in found.values()],
                    Style(colors[direction]),
                )
            paper = {r: paper_split_error(direction, r, shift) for r in rates}
            theirs = {r: p for r, p in paper.items() if p is not None}
            if theirs and ablations.is_papers(place):
                panel[f"{words}, paper"] = (
                    list(theirs),
                    [p.mean for p in theirs.values()],
                    None,
                    Style(colors[direction], ":"),
                )
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
                panel[name_of(method)] = (
                    list(found),
                    [100 * row.mean for row in found.values()],
                    [100 * (row.std or 0.0) for row in found.values()],
                    style,
                )
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
    ran = [key for key in experiment.cells if key.variant == "hidden"]
    corners = sorted(
        {(key.place, key.protocol) for key in ran},
        key=lambda c: (order_of(c[0]), PROTOCOLS.index(c[1])),
    )
    if not corners:
        return None
    curves = {}
    for place, protocol in corners:
        found = {
            name: experiment.curves(Key(place, protocol, method, variant))
            for name, (method, variant) in REPRESENTATIONS.items()
        }
        panel = {name: values for name, values in found.items() if values is not None}
        curves["accuracy (%)", _corner(place, protocol)] = panel
    return Picture(
        curve_grid(
            curves,
            rows=["accuracy (%)"],
            columns=[_corner(*corner) for corner in corners],
            styles={
                name: Style(VERMILION if method == "giw" else BLUE, "--" if variant else "-")
                for name, (method, variant) in REPRESENTATIONS.items()
            },
        ),
        alt="Learning curves of DIW and GIW, each with weights from losses and from the hidden "
        "layer; the table has the final values.",
        caption=f"Weights from losses (-L) or the hidden layer (-F), {experiment.name}. {BAND}",
        name=f"representation-{experiment.slug}",
        wide=True,
    )


def _corner(place: Place, protocol: str) -> str:
    return f"{setting_name(*place[:2])}\n{shift_name(place.shift)}, {protocol}"


# What a result may bring along --------------------------------------------------------------------


def stored_array(result: Result, name: str) -> Images | None:
    """A small array that a result carries flat, with its shape beside it.

    ``extra["kernels"]`` holds the numbers, ``extra["kernels_shape"]`` the shape, rows last to
    first as in C; likewise ``train_images`` and ``val_images``. None where it is not there.
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


def kernel_pictures(experiment: Experiment, remarks: list[str]) -> list[Picture]:
    """First-layer kernels of every method that stored them, one figure for each setting."""
    found: dict[tuple[Place, str], dict[str, Images]] = {}
    for key in sorted(experiment.cells, key=lambda k: (order_of(k.place), k)):
        if not any(shows_kernels(result.run) for result in experiment.cells[key].values()):
            continue
        stored = _first_stored(experiment.cells[key], "kernels", remarks)
        if stored is not None:
            found.setdefault((key.place, key.protocol), {})[key.method] = colours_of(stored)
    pictures = []
    for (place, protocol), by_method in found.items():
        ordered = {name_of(m): by_method[m] for m in experiment.methods if m in by_method}
        words = f"{setting_name(*place[:2])}, {shift_name(place.shift)}, {protocol} protocol"
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
    size = np.abs(kernels).transpose(0, 2, 3, 1)
    if size.shape[-1] != 3:  # grey: the mean over channels, three times
        size = np.repeat(size.mean(axis=-1, keepdims=True), 3, axis=-1)
    return size / max(float(size.max()), 1e-12)


def sample_picture(experiment: Experiment, remarks: list[str]) -> Picture | None:
    """Training and validation images of the first run of each data set that stored them."""
    shown: dict[str, Images] = {}
    for key in sorted(experiment.cells, key=lambda k: (order_of(k.place), k)):
        for name, words in (("train_images", "training"), ("val_images", "validation")):
            title = f"{setting_name(*key.place[:2])}\n{words}"
            if title in shown:
                continue
            stored = _first_stored(experiment.cells[key], name, remarks)
            if stored is not None:
                channels = stored.transpose(0, 2, 3, 1)
                shown[title] = (
                    np.clip(
                        channels
                        if channels.shape[-1] == 3
                        else np.repeat(channels[..., :1], 3, -1),
                        0,
                        255,
                    )
                    / 255
                )
    if not shown:
        return None
    titles = [title.replace("\n", ", ") for title in shown]
    return Picture(
        picture_grid(shown, columns=4),
        alt=f"Sample images: {'; '.join(titles)}.",
        caption=f"Images that the methods learned from, {experiment.name}.",
        name=f"samples-{experiment.slug}",
    )


def _first_stored(trials: Mapping[int, Result], name: str, remarks: list[str]) -> Any:
    for trial in sorted(trials):
        try:
            stored = stored_array(trials[trial], name)
        except ValueError as error:
            if str(error) not in remarks:
                remarks.append(str(error))
            continue
        if stored is not None:
            return stored
    return None
