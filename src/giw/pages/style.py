"""One name and one colour per method, the same in every table and figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle

DATASETS = {"mnist": "MNIST", "color_mnist": "Color-MNIST", "cifar20": "CIFAR-20"}
VARIANTS = {
    "": "as it is",
    "hidden": "weights from the hidden layer",
    "input": "split on inputs",
    "fc1": "split on the hidden layer",
    "osvm_text": "published split, threshold of the text",
    "osvm_code": "published split, threshold of the code",
    "soft": "soft membership",
    "paper_bandwidth": "published kernel width",
    "wide_net": "20 and 50 channels",
    "all_rows": "pretrained on all rows",
    "median_bandwidth": "kernel width by the median",
    "oracle": "true split",
    "one_step": "one step an epoch",
    "first_release": "weights not normalised",
    "draw_ten": "all ten digits drawn",
    "eval_loss": "losses in evaluation mode",
    "unscaled": "rate cut every 100 epochs",
}

INK = "#1f2328"  # text and axes; the page swaps it for its own text colour, dark or light
LINE = "#d5d9df"  # grid lines, swapped likewise

# Okabe and Ito's colours where they keep a contrast of 3 : 1 on white and on near-black, so that
# one figure serves light and dark pages; a dash tells apart what colour alone might not.
VERMILION, BLUE, GREEN, PINK = "#d55e00", "#0072b2", "#009e73", "#c06a9a"
GREY, GOLD, VIOLET, CRIMSON = "#7a7f87", "#a67c00", "#7b61c9", "#c2255c"


@dataclass(frozen=True)
class Style:
    """How a method is drawn, and what it is called."""

    color: str
    dash: str = "-"
    name: str = ""


STYLES = {
    "giw": Style(VERMILION, "-", "GIW"),
    "diw": Style(BLUE, "-", "DIW"),
    "val_only": Style(GREEN, "-", "Val-only"),
    "pretrain_val": Style(PINK, "-", "Pretrain-val"),
    "pooled": Style(GREY, "--", "Pooled"),
    "r_diw": Style(BLUE, "--", "R-DIW"),
    "reweight": Style(GOLD, "-", "Reweight"),
    "mw_net": Style(GOLD, "--", "MW-Net"),
    "ccsa": Style(VIOLET, "-", "CCSA"),
    "dann": Style(VIOLET, "--", "DANN"),
    "train_only": Style(GREY, "-", "Train-only"),
    "giw_split": Style(VERMILION, "--", "GIW, split"),
    "giw_unsplit": Style(VERMILION, ":", "GIW, unsplit"),
    "giw_plus": Style(CRIMSON, "-", "GIW+"),
    "giw_published": Style(VERMILION, "-.", "GIW (published)"),
    "diw_published": Style(BLUE, "-.", "DIW (published)"),
    "pooled_plus": Style(GREY, "-.", "Pooled, same help"),
}
SPARE = [Style(c, d) for d in (":", "-.") for c in (VIOLET, GOLD, GREEN, PINK, BLUE, GREY)]


def name_of(method: str) -> str:
    """The name that people read; a method of one's own keeps its name as it is."""
    return STYLES[method].name if method in STYLES else method


def setting_name(dataset: str, case: str) -> str:
    """A data set and its case as people write them, such as ``MNIST (iii)``."""
    return f"{DATASETS.get(dataset, dataset)} ({case})"


def shift_name(shift: str) -> str:
    """A shift in words: ``label_noise_0.2`` is ``label noise 0.2``."""
    return "support shift" if shift == "support" else shift.replace("_", " ")


def variant_name(variant: str) -> str:
    """An ablation in words: ``n_val_40`` is ``40 validation points``."""
    if "+" in variant:
        return ", ".join(map(variant_name, variant.split("+")))
    kind, _, amount = variant.rpartition("_")
    if kind in ("n_train", "n_val") and amount.isdigit():
        what = "training" if kind == "n_train" else "validation"
        return f"{int(amount):,} {what} points"
    return VARIANTS.get(variant, variant.replace("_", " "))


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """A style for each method; known ones always have the same, others take spare ones in turn."""
    spare = cycle(SPARE)
    return {method: STYLES.get(method) or next(spare) for method in methods}
