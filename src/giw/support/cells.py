"""Cells: parts of feature space within which held-out and validation scores may be compared.

When the distribution shifts inside the support, held-out training scores are not exchangeable with
those of validation points that lie inside: a sample of nothing but digit 2 is stranger than the
average training image. Within a cell, the class of the nearest training row, they nearly are.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor

from giw.support.scorers.knn import KNN

AGREEMENT = 0.75  # below this, the labels of neighbours say too little to make cells of them
AUDITED = 2_000  # rows on which the agreement is read off
CLUSTERED = 10_000  # rows on which cluster centres are learned


def neighbour_agreement(z: Tensor, label: Tensor, generator: np.random.Generator) -> float:
    """Share of training rows whose nearest other row has the same label.

    Low for noisy labels and for features that know nothing of the classes; in both cases classes
    of neighbours make poor cells.
    """
    rows = torch.as_tensor(generator.permutation(len(z))[:AUDITED], device=z.device)
    _, index = KNN(k=1).fit(z).neighbours(z[rows])
    return float((label[index[:, 0]] == label[rows]).double().mean())


def cluster(z: Tensor, count: int, generator: np.random.Generator) -> Tensor:
    """A k-means cluster for every row of ``z``, (n,)."""
    rows = torch.as_tensor(generator.permutation(len(z))[:CLUSTERED], device=z.device)
    sample = z[rows].cpu().numpy()
    count = min(count, len(np.unique(sample, axis=0)))
    kmeans = KMeans(count, n_init=1, random_state=int(generator.integers(2**31))).fit(sample)
    return torch.as_tensor(kmeans.predict(z.cpu().numpy()), device=z.device).long()


def merge_small_cells(
    cell: NDArray[np.int64],  # (c,) calibration rows per cell
    center: NDArray[np.float64],  # (c, d) where each cell lies
    *,
    least: int,
) -> NDArray[np.int64]:  # (c,)
    """Which cell each cell is merged into, so that all hold at least ``least`` calibration rows.

    The smallest cell joins the one with the nearest centre until none is too small.
    """
    count, center = cell.astype(np.float64), center.copy()
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
