"""Which small arrays a result keeps: those that a figure of the report is drawn from, and no more.

A few hundred results are to stay small enough to be committed.
"""

from __future__ import annotations

from collections.abc import Mapping

from giw.paper.bench.plan import Run

KERNEL_SHIFTS = ("support", "label_noise_0.2")  # the paper shows kernels under these, in colour


def shows_kernels(run: Run) -> bool:
    """Whether the first layer of this run is drawn."""
    return run.dataset == "color_mnist" and run.shift in KERNEL_SHIFTS and not run.variant


def shows_images(run: Run) -> bool:
    """Whether sample images are drawn from this run; one in the grid is enough."""
    usual = run.method == "giw" and run.protocol == "honest" and not run.variant
    return run.dataset == "color_mnist" and run.shift == "support" and usual


def shows_scores(run: Run) -> bool:
    """Whether the scores of this run's split are drawn."""
    return run.shift == "support" and run.variant in ("", "osvm_text", "osvm_code")


def for_figures(run: Run, extra: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """The arrays among some that a figure needs."""
    needed: set[str] = set()
    if run.trial == 0 and shows_kernels(run):
        needed |= {"kernels", "kernels_shape"}
    if run.trial == 0 and shows_images(run):
        needed |= {"train_images", "train_images_shape", "val_images", "val_images_shape"}
    if shows_scores(run):
        needed |= {"p_value", "score", "inside"}
    return {name: values for name, values in extra.items() if name in needed}
