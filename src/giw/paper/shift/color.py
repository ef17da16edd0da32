"""Color-MNIST: digits are red in training and of three colors in the test distribution."""

from __future__ import annotations

import numpy as np

from giw.checks import as_generator
from giw.paper.readers.mnist import COLORS, RED, colored
from giw.paper.readers.sample import Sample
from giw.paper.shift.dealing import (
    PUBLISHED_SEED,
    Draw,
    Protocol,
    check_draw_and_protocol,
    deal,
    density_by_group,
    equal_counts,
)
from giw.paper.shift.problem import ShiftProblem, Truth, mean_one


def color_shift(
    sample: Sample,
    *,
    test: Sample,
    n_val: int = 20,
    draw: Draw = "stratified",
    protocol: Protocol = "honest",
    random_state: int | np.random.Generator | None = None,
) -> tuple[ShiftProblem, Truth]:
    """Paint training images red, and validation and test images red, green or blue evenly.

    Case (iii) of the paper. The test image in row i has color i mod 3.

    Parameters
    ----------
    sample : Sample
        Grey images from which training and validation are drawn.
    test : Sample
        Grey images for the test.
    n_val : int, default=20
        Number of validation points.
    draw : {"stratified", "iid"}
        ``"stratified"``: as many of each class as of any other (two per digit for 20) and, in
        random order, as many of each color, red first where it does not divide; then the true α is
        the share of red in the draw, 7 of 20 or 0.35. ``"iid"``: images and colors independently
        and uniformly; then the true α is 1/3.
    protocol, random_state
        As in :func:`~giw.paper.shift.support_shift`.
    """
    check_draw_and_protocol(draw, protocol)
    rng = as_generator(PUBLISHED_SEED if protocol == "published" else random_state)
    order = rng.permutation(len(sample))
    n_colors = len(COLORS)
    if draw == "stratified":
        counts = equal_counts(np.unique(sample.y), n_val)
        val_color = rng.permutation(np.arange(n_val) % n_colors)
        share = float(np.mean(val_color == RED))
    else:
        counts = None
        val_color = rng.integers(n_colors, size=n_val)
        share = 1 / n_colors
    val_rows = deal(order, sample.y, n_val, counts)
    train_rows = np.arange(len(sample))
    if protocol == "honest":
        train_rows = np.setdiff1d(train_rows, val_rows)

    train = colored(sample.take(train_rows), RED)
    val = colored(sample.take(val_rows), val_color)
    test = colored(test, np.arange(len(test)) % n_colors)
    density = density_by_group(sample.y, np.unique(sample.y), counts)  # here by class
    truth = Truth(
        inside=val.group == RED,
        weight=mean_one(density[train.y]),
        flipped=np.zeros(len(train), dtype=bool),
        support_share=share,
        train_group=train.group,
        val_group=val.group,
        test_group=test.group,
    )
    return ShiftProblem(train, val, test), truth
