"""Figures of ablations that change one thing: a protocol, the split, the membership."""

from __future__ import annotations

from collections.abc import Sequence

from giw.pages.page import Picture
from giw.pages.style import BLUE, VERMILION, name_of, setting_name, shift_name, variant_name
from giw.paper.bench.plan import PROTOCOLS
from giw.paper.report.ablations import contest_name, contests
from giw.paper.report.cells import DATASET_CASES, Experiment, Key, Place
from giw.paper.report.panels import Dot, dot_panels
from giw.paper.shift import SHIFTS

COLORS = dict(zip(PROTOCOLS, (BLUE, VERMILION), strict=True))
SPREAD = "dots are means over trials, bars one standard deviation on either side"


def protocol_picture(experiment: Experiment) -> Picture | None:
    """Honest and published protocol, wherever a method was run as it is under both."""
    dots: dict[str, dict[str, list[Dot]]] = {}
    for method in experiment.methods:
        for pair in DATASET_CASES:
            for shift in SHIFTS:
                keys = [Key(Place(*pair, shift), protocol, method) for protocol in PROTOCOLS]
                row = [_dot(experiment, key, COLORS[key.protocol]) for key in keys]
                if None not in row:
                    panel = dots.setdefault(f"{name_of(method)} on {setting_name(*pair)}", {})
                    panel[shift_name(shift)] = [dot for dot in row if dot is not None]
    if not dots:
        return None
    return Picture(
        dot_panels(dots, legend=COLORS),
        alt="Accuracy under the honest and the published protocol; the table has the numbers.",
        caption=f"Honest and published protocol, {experiment.name}; {SPREAD}.",
        name=f"protocols-{experiment.slug}",
    )


def changed_picture(
    experiment: Experiment, name: str, words: str, families: Sequence[str], always: Sequence[str]
) -> Picture | None:
    """Variants beside the method as it is, in every setting where one was run."""
    dots: dict[str, dict[str, list[Dot]]] = {}
    for base, variants in contests(experiment, families, always).items():
        panel = dots.setdefault(contest_name(base), {})
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
