"""What the ratio estimators share: units, Gaussian basis functions, folds, blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from giw.tables.chunks import BLOCK
from giw.weights.kernels import median_pair_distance, pairwise_squared_distances, representatives

# widths tried, as multiples of the median distance: narrow ones follow details, wide ones trends
WIDTHS = (0.25, 0.4, 0.6, 1.0, 1.5, 2.5, 5.0)
SELECTION_ROWS = 3_000  # rows of each sample that choose bandwidth and penalty


@dataclass(frozen=True)
class Units:
    """Where each feature has its zero and how large its unit is."""

    shift: Tensor  # (d,)
    scale: Tensor  # (d,)

    def __call__(self, x: Tensor) -> Tensor:
        """Features in these units, in double precision."""
        return (x.double() - self.shift) / self.scale


@dataclass(frozen=True)
class Moments:
    """Mean and variance of every feature, and its largest size."""

    mean: Tensor  # (d,)
    variance: Tensor  # (d,)
    size: Tensor  # (d,)

    @classmethod
    def of(cls, blocks: Iterable[tuple[Tensor, Tensor]]) -> Moments:
        r"""From blocks of rows and how much each row counts, in double precision.

        Block by block the means and squares are merged [1]_: no square of a large number is taken,
        and :math:`\sum x^2 - (\sum x)^2` is never formed.

        References
        ----------
        .. [1] Chan, Golub and LeVeque, The American Statistician 37:242-247, 1983.
        """
        total, found = 0.0, None
        for rows, counts in blocks:
            x, count = rows.double(), counts.double()[:, None]  # (k, d), (k, 1)
            here = float(count.sum())
            mean = (count * x).sum(0) / here
            squares, size = (count * (x - mean).square()).sum(0), x.abs().amax(0)
            if found is not None:
                gap = mean - found.mean
                share = here / (total + here)
                squares = found.variance + squares + gap.square() * total * share
                mean, size = found.mean + gap * share, torch.maximum(size, found.size)
            total, found = total + here, cls(mean, squares, size)
        if found is None:
            raise ValueError("no rows to take moments of")
        return cls(found.mean, found.variance / total, found.size)


def common_units(train: Moments, val: Moments, *, standardize: bool) -> Units:
    """Units in which every feature has variance one when both samples count the same.

    A feature that is constant over both samples says nothing; its unit is left at one.
    """
    middle = 0.5 * (train.mean + val.mean)
    if not standardize:
        return Units(middle, torch.ones_like(middle))
    around = (m.variance + (m.mean - middle).square() for m in (train, val))
    spread = (0.5 * sum(around, torch.zeros_like(middle))).sqrt()
    # the deviations of a constant column are rounding errors of its size
    varies = spread > 1e-12 * torch.maximum(train.size, val.size)
    return Units(middle, torch.where(varies, spread, 1.0))


@dataclass(frozen=True)
class GaussianBasis:
    r"""Functions :math:`\phi_b(x) = \exp(-\lVert x - c_b \rVert^2 / 2\sigma^2)`, mixed linearly.

    With ``mixing`` :math:`K_{cc}^{-1/2}` the penalty :math:`\lVert\theta\rVert^2` is the
    squared norm of :math:`\theta^\top\phi` in the kernel's function space.
    """

    centers: Tensor  # (b, d)
    width: float
    mixing: Tensor | None = None  # (b, r)

    def __call__(self, x: Tensor) -> Tensor:
        """Features of points (n, d) → (n, b) or (n, r)."""
        squares = pairwise_squared_distances(x, self.centers)
        raw = squares.mul_(-0.5 / self.width**2).exp_()
        return raw if self.mixing is None else raw @ self.mixing

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.centers) if self.mixing is None else self.mixing.shape[1]

    @classmethod
    def whitened(cls, centers: Tensor, width: float) -> GaussianBasis:
        """The basis whose penalty is the norm of the function."""
        kernel = cls(centers, width)(centers)
        value, vector = torch.linalg.eigh(kernel)
        kept = value > 1e-6 * value[-1]
        return cls(centers, width, vector[:, kept] / value[kept].sqrt())


def row_blocks(x: Tensor) -> Iterator[Tensor]:
    """Consecutive rows, few enough that their features fit in memory."""
    return iter(x.split(BLOCK))


def typical_distance(train: Tensor, val: Tensor) -> float:
    """Median distance over both samples, each counting the same; one where nothing differs."""
    both = torch.cat([representatives(train, 500), representatives(val, 500)])
    distance = float(median_pair_distance(both))
    return distance if distance > 0 else 1.0


def fold_numbers(x: Tensor, n_folds: int) -> Tensor:
    """Fold of each row, drawn for its rank along the sum of features: order does not matter.

    The draw is the same every time. Dealing out the ranks in turn would need no draw, but leaves
    folds so alike that a point held out is nearly one that was fitted, and rich models win.
    """
    draw = torch.randperm(len(x), generator=torch.Generator().manual_seed(len(x)))
    fold = torch.empty(len(x), dtype=torch.long, device=x.device)
    fold[x.sum(-1).argsort(stable=True)] = draw.to(x.device) % n_folds
    return fold


def representative_rows(x: Tensor, most: int) -> Tensor:
    """Indices of at most ``most`` rows, evenly spread along the sum of features."""
    return evenly_spread(x.sum(-1), most)


def evenly_spread(sums: Tensor, most: int) -> Tensor:
    """Indices of at most ``most`` rows, evenly spread along these sums, one per row."""
    n = len(sums)
    if n <= most:
        return torch.arange(n, device=sums.device)
    steps = torch.arange(most, device=sums.device) * n // most + n // (2 * most)
    return sums.argsort(stable=True)[steps.clamp(max=n - 1)]


def candidate_widths(
    bandwidth: str | float,
    train: Tensor,
    val: Tensor,
    *,
    factors: tuple[float, ...] = WIDTHS,
) -> list[float]:
    """The given width, or the multiples of the median distance to choose from."""
    if isinstance(bandwidth, str):
        middle = typical_distance(train, val)
        return [middle] if bandwidth == "median" else [factor * middle for factor in factors]
    return [float(bandwidth)]
