"""Cells: parts of feature space within which held-out and validation scores may be compared.

When the distribution shifts inside the support, held-out training scores are not exchangeable with
those of validation points that lie inside: a sample of nothing but digit 2 is stranger than the
average training image. Within a cell, the class of the nearest training row, they nearly are.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor

from giw.support.copies import distinct_rows
from giw.support.rows import Rows, only, per_row, take
from giw.support.scorers.knn import KNN, nearest

AGREEMENT = 0.75  # below this, the labels of neighbours say too little to make cells of them
AUDITED = 1_000  # rows on which the agreement is read off
CLUSTERED = 5_000  # rows on which cluster centres are learned
CLUSTERS = 4  # per class, as far as there are rows enough
ROWS_PER_CLUSTER = 150  # calibration rows
LEAST_SHARE = 0.15  # of its class: a small cluster gathers stragglers, and strangers join them


def choose_cells(
    kind: str,
    z: Rows,  # (n, d)
    label: Tensor | None,  # (n,)
    *,
    n_clusters: int,
    calibration_rows: int,
    generator: np.random.Generator,
) -> tuple[str, Tensor]:
    """The kind of cell in use, and the cell of every row before small ones are merged, (n,).

    "auto" takes classes where neighbours agree on them, and clusters otherwise.
    """
    if kind == "class" and label is None:
        raise ValueError("cells='class' needs y_train; pass labels or use cells='cluster'")
    if kind == "auto":
        trusted = label is not None and neighbour_agreement(z, label, generator) >= AGREEMENT
        kind = "class" if trusted else "cluster"
    if kind == "class" and label is not None:
        cell = cells_within(z, label, calibration_rows=calibration_rows, generator=generator)
    elif kind == "cluster":
        cell = cluster(z, n_clusters, generator)
    else:
        cell = torch.zeros(len(z), dtype=torch.long, device=z.device)
    return kind, cell


def neighbour_agreement(z: Rows, label: Tensor, generator: np.random.Generator) -> float:
    """Share of training rows whose nearest other row has the same label.

    Low for noisy labels and for features that know nothing of the classes; in both cases classes
    of neighbours make poor cells.
    """
    rows = torch.as_tensor(generator.permutation(len(z))[:AUDITED], device=z.device)
    _, index = KNN(k=1, relative=0).fit(z).score_and_nearest(take(z, rows))
    return float((label[index] == label[rows]).double().mean())


def cells_within(
    z: Rows,  # (n, d)
    label: Tensor,  # (n,)
    *,
    calibration_rows: int,
    generator: np.random.Generator,
) -> Tensor:  # (n,)
    """Up to four clusters within each class, as many as its calibration rows can feed.

    A class may itself be a mixture (odd digits are ones and threes), and then shift within it.
    Clusters that hold little of their class are merged: they gather what is strange in training,
    and points from outside would find themselves in good company there.
    """
    cell = torch.zeros_like(label)
    for value in label.unique():
        rows = (label == value).nonzero()[:, 0]
        feeds = int(len(rows) / len(z) * calibration_rows / ROWS_PER_CLUSTER)
        within = cluster(only(z, label == value), min(CLUSTERS, max(1, feeds)), generator)
        cell[rows] = within + int(cell.max()) + 1
    return cell - 1


def cluster(z: Rows, count: int, generator: np.random.Generator) -> Tensor:
    """A k-means cluster for every row of ``z``, small ones merged, (n,)."""
    if count < 2:
        return torch.zeros(len(z), dtype=torch.long, device=z.device)
    rows = torch.as_tensor(generator.permutation(len(z))[:CLUSTERED], device=z.device)
    some = take(z, rows)
    sample = some.cpu().numpy()
    count = min(count, distinct_rows(some))
    kmeans = KMeans(count, n_init=3, random_state=int(generator.integers(2**31))).fit(sample)
    center = torch.as_tensor(kmeans.cluster_centers_, dtype=z.dtype, device=z.device)
    # where the data are, not on the host
    found = per_row(z, lambda block: nearest(block, center, 1)[1][:, 0]).cpu().numpy()
    least = math.ceil(LEAST_SHARE * CLUSTERS / max(count, CLUSTERS) * len(z))
    target = merge_small_cells(
        np.bincount(found, minlength=count), kmeans.cluster_centers_.astype(float), least=least
    )
    return torch.as_tensor(np.unique(target[found], return_inverse=True)[1], device=z.device)


def merge_small_cells(
    rows: NDArray[np.int64],  # (c,) calibration rows per cell
    center: NDArray[np.float64],  # (c, d) where each cell lies
    *,
    least: int,
) -> NDArray[np.int64]:  # (c,)
    """Which cell each cell is merged into, so that all hold at least ``least`` calibration rows.

    The smallest cell joins the one with the nearest centre until none is too small.
    """
    count, center = rows.astype(np.float64), center.copy()
    target = np.arange(len(count))
    while len(alive := np.unique(target)) > 1:
        small = alive[np.argmin(count[alive])]
        if count[small] >= least:
            break
        others = alive[alive != small]
        other = others[np.argmin(np.square(center[others] - center[small]).sum(axis=1))]
        both = max(count[small] + count[other], 1.0)
        center[other] = (count[small] * center[small] + count[other] * center[other]) / both
        count[other] += count[small]
        target[target == small] = other
    return target
