"""One name and one colour per method, the same in every table and figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NAMES = {
    "giw": "GIW",
    "diw": "DIW",
    "r_diw": "R-DIW",
    "reweight": "Reweight",
    "mw_net": "MW-Net",
    "ccsa": "CCSA",
    "dann": "DANN",
    "val_only": "Val-only",
    "pretrain_val": "Pretrain-val",
    "pooled": "Pooled",
}

INK = "#1f2328"  # text and axes; the page swaps it for its own text colour, dark or light
LINE = "#d5d9df"  # grid lines, swapped likewise

# Okabe and Ito's colours where they keep a contrast of 3 : 1 on white and on near-black, so that
# one figure serves light and dark pages; a dash tells apart what colour alone might not.
VERMILION, BLUE, GREEN, PINK = "#d55e00", "#0072b2", "#009e73", "#c06a9a"
GREY, GOLD, VIOLET = "#7a7f87", "#a67c00", "#7b61c9"


@dataclass(frozen=True)
class Style:
    """How a method is drawn."""

    color: str
    dash: str = "-"


STYLES = {
    "giw": Style(VERMILION),
    "diw": Style(BLUE),
    "val_only": Style(GREEN),
    "pretrain_val": Style(PINK),
    "pooled": Style(GREY, "--"),
    "r_diw": Style(BLUE, "--"),
    "reweight": Style(GOLD),
    "mw_net": Style(GOLD, "--"),
    "ccsa": Style(VIOLET),
    "dann": Style(VIOLET, "--"),
}
SPARE = [Style(c, d) for d in (":", "-.") for c in (VIOLET, GOLD, GREEN, PINK, BLUE, GREY)]


def name_of(method: str) -> str:
    """The name that people read; a method of one's own keeps its name as it is."""
    return NAMES.get(method, method)


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """A style for each method; known ones always have the same, others take spare ones in turn."""
    styles: dict[str, Style] = {}
    strangers = 0
    for method in methods:
        if method in STYLES:
            styles[method] = STYLES[method]
        else:
            styles[method] = SPARE[strangers % len(SPARE)]
            strangers += 1
    return styles
