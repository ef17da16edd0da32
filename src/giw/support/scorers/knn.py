"""Distance to the nearest training features: exact, in blocks, on any device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from giw.support.scorers.unit_norm import unit_norm

BLOCK_ELEMENTS = 2**23  # distances held at a time: 32 MB in float32
SPARE = 2  # candidates beyond k + 1, so that rounding in the search cannot lose a neighbour
COPY_TOLERANCE = (
    1e-5  # in units of the training features' spread; float32 forward passes agree so far
)


def nearest(z: Tensor, reference: Tensor, k: int) -> tuple[Tensor, Tensor]:
    r"""Distances to the k nearest rows of ``reference``, ascending, and which rows they are.

    Candidates are found from :math:`\lVert r \rVert^2 - 2 z^\top r` block by block, so that no
    (m, n) matrix is ever held; their distances are then computed again from differences, because
    the expansion loses all digits for close neighbours.

    Parameters
    ----------
    z : Tensor of shape (m, d)
    reference : Tensor of shape (n, d)
    k : int
        At most n neighbours are returned.

    Returns
    -------
    distance, index : tensors of shape (m, min(k, n))
    """
    center = reference.mean(dim=0)
    z, reference = z - center, reference - center  # smaller numbers cancel less
    k = min(k, len(reference))
    candidates = min(k + SPARE, len(reference))
    rows = max(1, min(len(z), 2048))
    found = [_nearest_rows(part, reference, candidates) for part in z.split(rows)]
    distance, index = (torch.cat(parts) for parts in zip(*found, strict=True))  # (m, k + SPARE)
    return distance[:, :k], index[:, :k]


def _nearest_rows(z: Tensor, reference: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Walk the reference in blocks and keep the k best so far."""
    columns = max(k, BLOCK_ELEMENTS // len(z))
    value, index = z.new_empty(len(z), 0), torch.empty(len(z), 0, dtype=torch.long, device=z.device)
    for start in range(0, len(reference), columns):
        part = reference[start : start + columns]
        gap = torch.addmm((part * part).sum(dim=1), z, part.T, alpha=-2)  # (rows, columns)
        new_value, new_index = gap.topk(min(k, len(part)), dim=1, largest=False)
        value, index = torch.cat([value, new_value], 1), torch.cat([index, new_index + start], 1)
        value, keep = value.topk(min(k, value.shape[1]), dim=1, largest=False)
        index = index.gather(1, keep)
    # from differences, a column at a time: (rows, d) in memory and not (rows, k, d)
    gaps = [torch.linalg.vector_norm(z - reference[rows], dim=1) for rows in index.T]
    distance, order = torch.stack(gaps, dim=1).sort(dim=1, stable=True)
    return distance, index.gather(1, order)


@dataclass(frozen=True)
class KNN:
    r"""Distance to the k-th nearest training feature.

    An exact copy of a training row says nothing about new data, so one copy at distance zero is
    not counted as a neighbour: a validation point that *is* a training point is scored as if its
    twin were left out, like any held-out point. Where rows repeat (tables of categories) the other
    copies still count.

    Parameters
    ----------
    k : int, default=5
        More neighbours smooth the score and blur small islands of the support.
    unit_norm : bool, default=False
        Compare directions only: every row is divided by its length first.
    """

    leaves_one_out: ClassVar[bool] = True  # a training row's own copy is never its neighbour

    k: int = 5
    unit_norm: bool = False
    reference: Tensor | None = None  # (n, d)
    copy_radius: float = 0.0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k must be at least 1 neighbour, got {self.k}")

    def fit(self, z: Tensor, label: Tensor | None = None) -> KNN:
        """Keep the training features; that is all a neighbour search needs."""
        reference = unit_norm(z) if self.unit_norm else z
        spread = float((reference - reference.mean(dim=0)).square().sum(dim=1).mean().sqrt())
        return replace(self, reference=reference, copy_radius=COPY_TOLERANCE * spread)

    def score(self, z: Tensor, label: Tensor | None = None) -> Tensor:
        """Distance to the k-th nearest training row that is not the point's own copy, (m,)."""
        return self.neighbours(z)[0][:, -1]

    def neighbours(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The k nearest training rows without one exact copy: distances and indices, (m, k)."""
        if self.reference is None:
            raise ValueError("this scorer has seen no training features; call fit(z) first")
        z = unit_norm(z) if self.unit_norm else z
        distance, index = nearest(z.to(self.reference), self.reference, self.k + 1)
        if distance.shape[1] == 1:  # a single training row has no second neighbour
            return distance, index
        copy = distance[:, 0] <= self.copy_radius  # (m,)
        return (
            torch.where(copy[:, None], distance[:, 1:], distance[:, :-1]),
            torch.where(copy[:, None], index[:, 1:], index[:, :-1]),
        )
