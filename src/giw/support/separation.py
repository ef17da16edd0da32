"""Do strangers look strange in these features? Hide a part of training from the rest and look.

What lies outside the training support is unknown until it comes. A class, or a cluster of one, that
the scorer is not shown is outside by construction, and its p-values tell what to expect of others:
piled up at zero where the features separate, spread out where they do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.support.calibration import Sides, calibrate, conformal_rank
from giw.support.cells import cluster
from giw.support.mixture import Assumptions, shape_log_likelihood, usual_shapes
from giw.support.rows import take
from giw.support.scorers import KNN, Scorer

MOST_KNOWN, MOST_ASKED = 2_000, 1_000  # rows shown to the scorer, and rows that it is asked about
MOST_KNOWN_SLOW = 1_000  # shown to scorers other than nearest neighbours
FEWEST = 40  # of either
FEWEST_HIDDEN = 8
MOST_HIDDEN = 8  # groups of each kind
CLUSTERS = 8  # where there are no classes to hide
TRUSTED = 30  # points of a group beyond which it says nothing more about other groups
RESERVE = 0.05  # prior weight of shapes that no hidden group had

Groups = list[tuple[NDArray[np.int64], NDArray[np.int64]]]  # rank and count of hidden points


@dataclass(frozen=True)
class Placed:
    """Training rows, their labels where there are any, and their cells."""

    z: Tensor  # (n, d)
    label: Tensor | None  # (n,)
    cell: Tensor  # (n,)

    def take(self, which: Tensor) -> Placed:
        """The rows with these numbers, or marked."""
        label = None if self.label is None else self.label[which]
        return Placed(self.z[which], label, self.cell[which])


def hidden_kinds(
    sides: Sides,
    cell: Tensor,  # (n,) of the reference rows
    scorer: Scorer,
    *,
    by_label: bool,
    classes: bool,
    generator: np.random.Generator,
) -> list[Groups]:
    """Ranks of hidden points: by part, and by class where classes are to be hidden.

    Parameters
    ----------
    sides : Sides
        Reference rows, some of which are shown to the scorer, and rows that calibrate, some of
        which it is asked about: those of a hidden group are split, the others calibrate.
    cell : Tensor of shape (n,)
    scorer : Scorer
    by_label : bool
        Whether parts are parts of classes, or of everything: labels may be noisy or missing.
    classes : bool
        Whether whole classes are hidden too.
    generator : numpy generator

    Returns
    -------
    list of groups, one for parts and one for classes; empty where there are too few rows
    """
    known, asked = _known_and_asked(sides, cell, scorer, generator)
    if min(len(known.z), len(asked.z)) < FEWEST:
        return []
    nearest = KNN(k=1, relative=0.0).fit(known.z).score_and_nearest(asked.z)[1]
    part = _parts(known if by_label else replace(known, label=None), generator)
    kinds = [(part, part[nearest])]
    if classes and known.label is not None:
        theirs = known.label[nearest] if asked.label is None else asked.label
        kinds.append((known.label, theirs))
    found = [_hide_each(known, asked, mine, theirs, scorer) for mine, theirs in kinds]
    return [groups for groups in found if groups]


def _known_and_asked(
    sides: Sides, cell: Tensor, scorer: Scorer, generator: np.random.Generator
) -> tuple[Placed, Placed]:
    """Some reference rows, and some rows that are none of them."""
    z, label = sides.reference, sides.label
    order = torch.as_tensor(generator.permutation(len(z)), device=z.device)
    asking = min(MOST_ASKED, len(z) // 3) if sides.within else 0
    most = MOST_KNOWN if isinstance(scorer, KNN) else MOST_KNOWN_SLOW

    def placed(rows: Tensor) -> Placed:
        return Placed(take(z, rows), None if label is None else label[rows], cell[rows])

    known = placed(order[asking : asking + most])
    if sides.within:
        return known, placed(order[:asking])
    own = sides.held_out_label
    some = generator.permutation(len(sides.held_out))[:MOST_ASKED]
    rows = torch.as_tensor(some, device=z.device)
    # where they lie is found by their neighbours, each time that something is hidden
    anywhere = torch.zeros(len(rows), dtype=torch.long, device=z.device)
    return known, Placed(sides.held_out[rows], None if own is None else own[rows], anywhere)


def expectations(kinds: list[Groups]) -> Assumptions:
    r"""What hidden groups let expect of strangers: shapes of their p-values, and blindness to them.

    Shapes have the mean over groups of the posterior weight that each group alone gives to them:
    the outside may be like any of the groups. Both kinds of group count the same. A little weight
    is kept for shapes that none of them had.

    Real strangers may be less strange than clusters, which lie apart by construction. Where a share
    :math:`\delta / 2` of hidden points is more ordinary than the median calibration row, so that
    Storey would call :math:`\delta` of them inside, the features may be blind to any part of the
    outside with probability :math:`\delta^2`: hardly ever where they separate, mostly where
    hidden points look ordinary themselves.
    """
    if not kinds:
        return Assumptions()
    shapes = (1 - RESERVE) * _mean_of(kinds, _shapes) + RESERVE * usual_shapes()
    blind = min(1.0, 2 * float(_mean_of(kinds, _ordinary))) ** 2
    return Assumptions(shapes=shapes, blind=blind, hidden_auroc=float(_mean_of(kinds, _auroc)))


def _mean_of(kinds: list[Groups], number: Callable[..., Any]) -> NDArray[np.float64]:
    """Mean over groups of each kind, then over kinds."""
    return np.mean([np.mean([number(*g) for g in groups], axis=0) for groups in kinds], axis=0)


def _parts(known: Placed, generator: np.random.Generator) -> Tensor:
    """Cells where they are finer than classes, halves of classes, or clusters of no class."""
    if known.label is None:
        several = len(known.cell.unique()) > 1
        return known.cell if several else cluster(known.z, CLUSTERS, generator)
    part = torch.zeros_like(known.label)
    for value in known.label.unique():
        rows = (known.label == value).nonzero()[:, 0]
        cells = known.cell[rows].unique(return_inverse=True)[1]
        several = len(cells.unique()) > 1
        within = cells if several else cluster(known.z[rows], 2, generator)
        part[rows] = within + int(part.max()) + 1
    return part


def _hide_each(
    known: Placed, asked: Placed, group: Tensor, asked_group: Tensor, scorer: Scorer
) -> Groups:
    """Hide one group after the other, at most eight of them."""
    found: Groups = []
    values = group.unique()
    which = np.linspace(0, len(values) - 1, min(MOST_HIDDEN, len(values))).round().astype(int)
    for value in values[torch.as_tensor(which, device=values.device)]:
        hidden, rest = asked_group == value, group != value
        if int(hidden.sum()) < FEWEST_HIDDEN or int((~hidden).sum()) < FEWEST:
            continue
        if int(rest.sum()) < FEWEST:
            continue
        shown, others, strangers = known.take(rest), asked.take(~hidden), asked.take(hidden)
        fold = calibrate(Sides(shown.z, shown.label, others.z, others.label), shown.cell, scorer)
        score, cell = fold.place(strangers.z, strangers.label)
        rank, count = conformal_rank([fold], [score], [cell])
        found.append((rank.cpu().numpy(), count.cpu().numpy()))
    return found


def _shapes(rank: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Posterior weight of every shape by one group, coarsened, (A,)."""
    log_weight = shape_log_likelihood(rank, count) / (1 + len(rank) / TRUSTED)
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def _ordinary(rank: NDArray[np.int64], count: NDArray[np.int64]) -> float:
    """Share of hidden points that are more ordinary than the median calibration row."""
    return float(np.mean(rank > (count + 1) / 2))


def _auroc(rank: NDArray[np.int64], count: NDArray[np.int64]) -> float:
    """Chance that a hidden point is stranger than a calibration row of its cell."""
    return float(np.mean(1 - (rank - 0.5) / (count + 1)))
