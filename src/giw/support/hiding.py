"""Hide one group of training rows from the others, and see whether a score finds it strange.

Every group asks for the same distances, only between other rows. One matrix of them serves all
groups, and nothing is read back from the device before the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.checks import as_generator
from giw.support.scorers import KNN
from giw.support.scorers.knn import (
    COPY_TOLERANCE,
    anchor_rows,
    anchor_scale,
    neighbours_of_anchors,
    relative_score,
    without_copy,
)
from giw.support.scorers.unit_norm import unit_norm

MOST_HIDDEN = 8
REST = -1  # rows that are never hidden


def hidden_auroc(
    z: Tensor,  # (n, d)
    group: NDArray[np.int64],  # (n,)
    scorer: KNN,
    *,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> float:
    """Mean AUROC of telling a hidden group from held-out rows of the others, over groups."""
    return hidden_aurocs(z, [group], scorer, random_state=random_state)[0]


def hidden_aurocs(
    z: Tensor,  # (n, d)
    groupings: Sequence[NDArray[np.int64]],  # each (n,)
    scorer: KNN,
    *,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> list[float]:
    """:func:`hidden_auroc` for several groupings of the same rows, at most eight groups of each.

    Rows of group -1 are never hidden.
    """
    distance = pairwise_distance(unit_norm(z) if scorer.unit_norm else z)  # (n, n)
    generator = as_generator(random_state)
    found = []
    for group in groupings:
        areas = []
        for value in np.unique(group[group != REST])[:MOST_HIDDEN]:
            others = generator.permutation(np.flatnonzero(group != value))
            if len(others) < 4:  # a quarter of them is to be held out
                continue
            sides = (*np.split(others, [len(others) // 4]), np.flatnonzero(group == value))
            held_out, known, hidden = (torch.as_tensor(side, device=z.device) for side in sides)
            asked = torch.cat([held_out, hidden])
            score = score_from_distances(distance, known, asked, scorer)
            areas.append(area_under_curve(score[: len(held_out)], score[len(held_out) :]))
        if not areas:
            raise ValueError(f"{len(group)} rows are too few to hide a part of them from the rest")
        found.append(torch.stack(areas).mean())
    return [float(area) for area in found]


def pairwise_distance(z: Tensor) -> Tensor:
    """Distances between all rows, (n, n); in float64, where the expansion of squares may be used.

    The difference of nearly equal squares keeps half of the digits: eight, as many as float32 has.
    """
    z = (z - z.mean(dim=0)).double()
    square = z.square().sum(dim=1)
    gap = torch.addmm(square[:, None] + square, z, z.T, alpha=-2)
    return gap.clamp(min=0).fill_diagonal_(0).sqrt()


def score_from_distances(distance: Tensor, known: Tensor, asked: Tensor, scorer: KNN) -> Tensor:
    """``scorer.fit(z[known]).score(z[asked])`` from the distances between rows of z.

    Parameters
    ----------
    distance : Tensor of shape (n, n)
        Between rows of unit norm where the scorer wants them.
    known, asked : tensors of row numbers
        Rows that the scorer is to know, and rows to be scored.
    scorer : KNN
    """
    spread = _spread(distance, known)
    score = _nearest(distance, known, asked, scorer.k, spread)[0].mean(dim=1)
    if scorer.relative == 0:
        return score
    anchor = known[anchor_rows(len(known), known.device)]  # (a,)
    scale = anchor_scale(_nearest(distance, known, anchor, scorer.k, spread)[0].mean(dim=1), spread)
    anchor_spread = spread if len(anchor) == len(known) else _spread(distance, anchor)
    among = neighbours_of_anchors(scorer.k, len(anchor))
    near = _nearest(distance, anchor, asked, among, anchor_spread)[1]  # (m, among)
    return relative_score(score, scale[near], scorer.relative)


def area_under_curve(low: Tensor, high: Tensor) -> Tensor:
    r"""Chance that a value of ``high`` exceeds one of ``low``, ties counted half: a scalar tensor.

    .. math:: \frac{1}{|L||H|} \sum_{h \in H} \#\{l < h\} + \tfrac12 \#\{l = h\}
    """
    low = low.sort().values
    below = torch.searchsorted(low, high) + torch.searchsorted(low, high, right=True)
    return below.double().mean() / (2 * len(low))


def _nearest(
    distance: Tensor, known: Tensor, asked: Tensor, k: int, spread: Tensor
) -> tuple[Tensor, Tensor]:
    """Distances to the k nearest known rows without one exact copy, and their places in known."""
    between = distance[asked[:, None], known]
    found = between.topk(min(k + 1, len(known)), dim=1, largest=False)
    return without_copy(*found, k=k, radius=COPY_TOLERANCE * spread)


def _spread(distance: Tensor, rows: Tensor) -> Tensor:
    """Root mean squared distance of rows from their mean: half the mean square between them."""
    return (distance[rows[:, None], rows].square().mean() / 2).sqrt()
