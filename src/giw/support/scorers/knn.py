"""Distance to the nearest training features: exact, in blocks, on any device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from giw.support.chunks import Chunks
from giw.support.rows import Rows, center_of, spread_of, take
from giw.support.scorers.unit_norm import unit_norm

BLOCK_ELEMENTS = 2**23  # distances held at a time: 32 MB in float32
SPARE = 2  # candidates beyond k + 1, so that rounding in the search cannot lose a neighbour
COPY_TOLERANCE = 1e-5  # of the features' spread; float32 passes of one net agree to that
ANCHORS = 2_000  # training rows at which the local scale is read off
ANCHOR_SHARE = 0.01  # share of the anchors that a point's local scale averages
SCALE_FLOOR = 0.01  # of the mean scale: repeated rows have no distance between them


def nearest(z: Tensor, reference: Rows, k: int) -> tuple[Tensor, Tensor]:
    r"""Distances to the k nearest rows of ``reference``, ascending, and which rows they are.

    Candidates are found from :math:`\lVert r \rVert^2 - 2 z^\top r` block by block, so that no
    (m, n) matrix is ever held; their distances are then computed again from differences, because
    the expansion loses all digits for close neighbours.

    Parameters
    ----------
    z : Tensor of shape (m, d)
    reference : Tensor of shape (n, d), or Chunks
        Chunks are walked through once, and a block of them is in memory at a time.
    k : int
        At most n neighbours are returned.

    Returns
    -------
    distance, index : tensors of shape (m, min(k, n))
    """
    center = center_of(reference)
    z = z - center  # smaller numbers cancel less
    k = min(k, len(reference))
    if not isinstance(reference, Chunks):
        distance, index = _nearest_candidates(z, reference - center, k + SPARE)
        return distance[:, :k], index[:, :k]
    start = 0
    distance, index = z.new_empty(len(z), 0), torch.empty(len(z), 0, dtype=torch.long).to(z.device)
    for block in reference:
        gap, where = _nearest_candidates(z, block.to(z.dtype) - center, k + SPARE)
        # of equal distances the earlier row comes first, as in one search over all rows
        distance, order = torch.cat([distance, gap], 1).sort(dim=1, stable=True)
        index = torch.cat([index, where + start], 1).gather(1, order)[:, :k]
        distance = distance[:, :k]
        start += len(block)
    return distance, index


def _nearest_candidates(z: Tensor, reference: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Distances and indices of k rows, ascending; fewer where there are fewer."""
    rows = max(1, min(len(z), 2048))
    count = min(k, len(reference))
    found = [_nearest_rows(part, reference, count) for part in z.split(rows)]
    distance, index = (torch.cat(parts) for parts in zip(*found, strict=True))  # (m, k)
    return distance, index


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
    r"""Mean distance to the k nearest training features, partly relative to the local scale.

    .. math:: s(z) = d_k(z) \Big/ \bar d_k(z)^{\,\rho}

    where :math:`d_k` is the mean distance to the k nearest training rows and
    :math:`\bar d_k(z)` its average over training rows near z. With :math:`\rho = 0` sparse parts of
    the support look strange, with :math:`\rho = 1` strange parts of the plane look ordinary
    wherever the nearest training rows are sparse too; ``benchmarks/support.py scorers`` compares
    them.

    An exact copy of a training row says nothing about new data, so one copy at distance zero is
    not counted as a neighbour: a validation point that *is* a training point is scored as if its
    twin were left out, like any held-out point. Where rows repeat (tables of categories) the other
    copies still count.

    Parameters
    ----------
    k : int, default=5
        More neighbours smooth the score and blur small islands of the support.
    relative : float, default=0.5
        Exponent :math:`\rho` of the local scale, 0 to 1.
    unit_norm : bool, default=False
        Compare directions only: every row is divided by its length first. Good for hidden layers
        after ReLU.
    """

    leaves_one_out: ClassVar[bool] = True  # a training row's own copy is never its neighbour

    k: int = 5
    relative: float = 0.5
    unit_norm: bool = False
    reference: Rows | None = None  # (n, d)
    copy_radius: float = 0.0
    anchors: KNN | None = None  # some training rows, to look up the local scale
    anchor_scale: Tensor | None = None  # (a,)

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k must be at least 1 neighbour, got {self.k}")
        if not 0 <= self.relative <= 1:
            raise ValueError(f"relative must lie between 0 and 1, got {self.relative}")

    def fit(self, z: Rows, label: Tensor | None = None) -> KNN:
        """Keep the training features, and measure how dense they lie at some of them."""
        reference = z
        if self.unit_norm:
            reference = z.through(unit_norm) if isinstance(z, Chunks) else unit_norm(z)
        spread = spread_of(reference, center_of(reference))
        fitted = replace(self, reference=reference, copy_radius=COPY_TOLERANCE * float(spread))
        if self.relative == 0:
            return fitted
        rows = anchor_rows(len(z), z.device)
        points = take(reference, rows)  # (a, d)
        scale = anchor_scale(fitted._search(points)[0].mean(dim=1), spread)  # (a,)
        anchors = KNN(k=neighbours_of_anchors(self.k, len(rows)), relative=0.0)
        return replace(fitted, anchors=anchors.fit(points), anchor_scale=scale)

    def score(self, z: Tensor, label: Tensor | None = None) -> Tensor:
        """Mean distance to the k nearest training rows over the local scale, (m,)."""
        return self.score_and_nearest(z)[0]

    def score_and_nearest(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Score of each point and the index of its nearest training row, (m,) and (m,)."""
        if self.reference is None:
            raise ValueError("this scorer has seen no training features; call fit(z) first")
        reference = self.reference
        z = (unit_norm(z) if self.unit_norm else z).to(reference.device, reference.dtype)
        distance, index = self._search(z)
        score = distance.mean(dim=1)
        if self.anchors is not None and self.anchor_scale is not None:
            near = self.anchors._search(z)[1]  # (m, q)
            score = relative_score(score, self.anchor_scale[near], self.relative)
        return score, index[:, 0]

    def _search(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The k nearest training rows without one exact copy: distances and indices, (m, k)."""
        reference = z if self.reference is None else self.reference
        distance, index = nearest(z, reference, self.k + 1)
        return without_copy(distance, index, k=self.k, radius=self.copy_radius)


def without_copy(
    distance: Tensor,  # (m, k + 1), ascending
    index: Tensor,  # (m, k + 1)
    *,
    k: int,
    radius: float | Tensor,
) -> tuple[Tensor, Tensor]:  # (m, k) and (m, k)
    """Leave out the nearest row where it is an exact copy, the farthest one elsewhere."""
    if distance.shape[1] == 1:  # a single training row has no second neighbour
        return distance, index
    copy = distance[:, :1] <= radius  # (m, 1)
    last = min(k, distance.shape[1])
    return (
        torch.where(copy, _shifted(distance), distance)[:, :last],
        torch.where(copy, _shifted(index), index)[:, :last],
    )


def anchor_rows(n: int, device: torch.device) -> Tensor:
    """Evenly spaced training rows, so that the score needs no random numbers, (a,)."""
    return torch.linspace(0, n - 1, min(ANCHORS, n), device=device).round().long()


def neighbours_of_anchors(k: int, anchors: int) -> int:
    """How many anchors a point's local scale averages."""
    return max(k, round(ANCHOR_SHARE * anchors))


def anchor_scale(scale: Tensor, spread: Tensor) -> Tensor:
    """Mean neighbour distance at each anchor, kept from vanishing where rows repeat, (a,)."""
    return scale.clamp(min=torch.maximum(SCALE_FLOOR * scale.mean(), COPY_TOLERANCE * spread))


def relative_score(score: Tensor, near_scale: Tensor, relative: float) -> Tensor:
    """Score over a power of the mean scale of the anchors near each point, (m,)."""
    return score / near_scale.mean(dim=1) ** relative


def _shifted(columns: Tensor) -> Tensor:
    """Every column moved one to the left, the last one kept."""
    return torch.cat([columns[:, 1:], columns[:, -1:]], dim=1)
