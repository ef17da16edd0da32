"""How strange a row is: by its distance to training rows, and by levels that they never show.

Scores become p-values among those of held-out training rows, and several p-values one. Rows are
numpy arrays on a CPU, without torch, and tensors where they already lie on another device.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from giw.checks import as_rows, check_count, is_tensor

Matrix = Any  # a numpy array of shape (n, d), or a tensor that does not lie on the CPU
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MANY_VALUES = 16  # a column with more different values measures something; fewer may be categories
LOOKED_AT = 2_000  # rows in which they are counted: a column of numbers shows many at once
BLOCK_ELEMENTS = 2**24  # distances held at a time on another device: 64 MB in float32
COPY = 1e-5  # of the reference's spread; two passes of a net over one row agree to that
FLOOR = 1e-4  # of the mean distance: where rows repeat, the logarithm of no distance is asked
TIE = 1e-9  # scores that differ by less are equal: rounding must not break ties
MOST = 10.0  # times the median weight: a representation that hardly varies must not decide alone
TINY = 1e-12  # where held-out scores are equal, any other is far out
FARTHEST = 600.0  # times the mean excess, before numbers are too large


def on_host(value: Any) -> NDArray[Any]:
    """A numpy array of what may be a tensor, a series or a list."""
    return np.asarray(value.detach().cpu().numpy() if is_tensor(value) else value)


def as_matrix(value: Any, name: str) -> Matrix:
    """Finite real numbers of shape (n, d); tensors stay on a device that is not the CPU."""
    if not is_tensor(value) or value.device.type == "cpu":
        return np.ascontiguousarray(as_rows(value, name))
    as_rows(value[:1], name)  # shapes are checked there
    z = value.detach() if value.dtype.itemsize >= 4 and value.is_floating_point() else value.float()
    if not bool((z - z).sum() == 0):
        as_rows(value, name)
    return z


def unit_norm(z: Matrix) -> Matrix:
    """Every row divided by its Euclidean length; a row of zeros stays as it is."""
    length = ((z * z).sum(1) ** 0.5)[:, None]
    return z / (length + (length == 0))


def row_key(z: Matrix) -> Floats:
    """One number per row: the same for equal rows, and different for others in practice, (n,).

    It depends on nothing but the row, so that sorting by it forgets the order rows came in.
    """
    direction = np.random.default_rng(0).normal(size=z.shape[1])  # any fixed one would do
    if isinstance(z, np.ndarray):
        blocks = (z[i : i + 10_000] for i in range(0, len(z), 10_000))
        return np.concatenate([(block * direction).sum(axis=1) for block in blocks])
    torch = sys.modules["torch"]
    along = torch.as_tensor(direction, device=z.device, dtype=z.dtype)
    return on_host((z * along).sum(dim=1)).astype(np.float64)


def rows_repeat_by_nature(z: Matrix) -> bool:
    """Whether no column takes many values, as in tables of categories, where equal rows are new."""
    some = on_host(z[np.unique(np.linspace(0, len(z) - 1, LOOKED_AT).astype(int))])
    return all(len(np.unique(column)) <= MANY_VALUES for column in some.T)


def nearest(
    z: Matrix,  # (m, d)
    reference: Matrix,  # (n, d)
    k: int,
) -> tuple[Floats, Ints]:  # (m, min(k, n)) twice
    """Distances to the k nearest rows of ``reference``, ascending, and which rows they are.

    On a CPU this is scikit-learn's brute force, which walks both matrices in blocks; rows on
    another device are searched there.
    """
    k = min(k, len(reference))
    if not isinstance(reference, np.ndarray):
        return _nearest_on_device(z, reference, k)
    found = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(reference)
    distance, index = found.kneighbors(np.asarray(z, dtype=reference.dtype))
    return distance.astype(np.float64), index


def _nearest_on_device(z: Any, reference: Any, k: int) -> tuple[Floats, Ints]:
    torch = sys.modules["torch"]
    z, square = z.to(reference), (reference * reference).sum(dim=1)  # (n,) computed once
    parts = []
    for block in z.split(max(1, BLOCK_ELEMENTS // len(reference))):
        near = torch.addmm(square, block, reference.T, alpha=-2).topk(k, dim=1, largest=False)
        # from differences: the expansion of squares loses the digits of small distances
        gap = torch.linalg.vector_norm(block[:, None] - reference[near.indices], dim=2)
        gap, order = gap.sort(dim=1, stable=True)
        parts.append((gap.double().cpu().numpy(), near.indices.gather(1, order).cpu().numpy()))
    distance, index = (np.concatenate(column) for column in zip(*parts, strict=True))
    return distance, index


def without_copy(
    near: tuple[Floats, Ints],  # (m, k + 1) twice, from `nearest`
    radius: float,
) -> tuple[Floats, Ints]:  # (m, k) twice
    """The nearest rows without the first where that is an exact copy, else without the last."""
    distance, index = near
    if distance.shape[1] < 2:
        return near
    copied = distance[:, :1] <= radius
    return (
        np.where(copied, distance[:, 1:], distance[:, :-1]),
        np.where(copied, index[:, 1:], index[:, :-1]),
    )


@dataclass(frozen=True)
class KNN:
    r"""Mean distance to the k nearest training rows, partly relative to what is usual there.

    .. math:: s(z) = \log d_k(z) - \rho \log \bar d_k(z)

    where :math:`d_k` is the mean distance to the k nearest training rows and :math:`\bar d_k(z)`
    its mean over the held-out training rows nearest to z.

    Parameters
    ----------
    k : int, default=5
        More neighbours smooth the score and blur small islands of the support.
    relative : float, default=0.5
        The exponent :math:`\rho`. At 0 sparse parts of the support look strange, at 1 strange
        points look ordinary wherever training is sparse too.
    around : int, default=20
        Held-out rows that say what distance is usual; more of them look farther.
    prior_rows : float, default=20
        Scores are centred, scaled and ranked within classes. As many rows of all classes are added
        to each, so that small ones follow the others.
    """

    k: int = 5
    relative: float = 0.5
    around: int = 20
    prior_rows: float = 20.0

    def __post_init__(self) -> None:
        """Refuse what is no number of neighbours or no exponent."""
        for name in ("k", "around"):
            check_count(getattr(self, name), name, least=1)
        if not 0 <= self.relative <= 1:
            raise ValueError(f"relative must lie between 0 and 1, got {self.relative}")


class Scored:
    """One representation: held-out training rows with their scores, ready to rank others.

    ``cell`` is that of each reference row, counted from 0; a point lies in the cell of its nearest
    one. ``within`` says that the held-out rows are reference rows too, so that none scores itself;
    ``skip_copies`` leaves out one exact copy of any point.

    Columns that are constant over the reference add one and the same number to all of a point's
    squared distances. They are folded into one column, which leaves every distance as it was.

    Attributes
    ----------
    score : array of shape (r,)
        Of the held-out rows; a larger one is farther from training.
    near : int array of shape (r, around)
        Held-out rows around each of them.
    variance : float
        Of the logarithms of their distances, within cells.
    """

    def __init__(
        self,
        z: Matrix,
        held_out: Matrix,
        cell: Ints,
        *,
        knn: KNN,
        unit: bool,
        within: bool,
        skip_copies: bool,
    ) -> None:
        self.knn, self.cell, self.unit, self.skip_copies = knn, cell, unit, skip_copies
        # a power of two changes no digit
        self.scale = 2.0 ** -math.frexp(float(max(z.max(), -z.min())))[1]
        z = self._in_units(z)
        self.middle = z.mean(0)  # smaller numbers cancel less
        self.varies = (z != z[0]).any(0)
        self.middle[~self.varies] = z[0][~self.varies]  # without rounding
        self.reference = self._folded(z, own=True)  # (n, columns that vary + 1)
        square = on_host((self.reference * self.reference).sum(0)).astype(np.float64)
        self.copy_radius = COPY * float(np.sqrt(square.sum() / len(z)))
        self.held_out = self._folded(self._in_units(held_out))
        distance, in_cell = self._distance(self.held_out, skip_copy=within or skip_copies)
        self.floor = FLOOR * float(distance.mean()) + TINY
        self.distance = np.maximum(distance, self.floor)  # (r,)
        self.near = self._near(self.held_out, own=True)
        raw = self._relative(self.distance, self.near)
        # held-out rows are not left out of their own cell's mean: equal scores have to stay equal
        prior, cells = knn.prior_rows, int(cell.max()) + 1
        rows = prior + np.bincount(in_cell, minlength=cells)  # (cells,)
        self.center = (prior * raw.mean() + np.bincount(in_cell, raw, cells)) / rows
        apart = (raw - self.center[in_cell]) ** 2  # (r,)
        square = prior * (raw.var() + TINY) + np.bincount(in_cell, apart, cells)
        self.spread = np.sqrt(square / rows)
        self.score = (raw - self.center[in_cell]) / self.spread[in_cell]
        self.variance = float(apart.mean())

    def of(self, z: Matrix) -> tuple[Floats, Ints]:
        """Scores of new rows, (m,), and the held-out rows around each, (m, around)."""
        rows = self._folded(self._in_units(z))
        distance, cell = self._distance(rows, skip_copy=self.skip_copies)
        near = self._near(rows, own=False)
        raw = self._relative(np.maximum(distance, self.floor), near)
        return np.asarray((raw - self.center[cell]) / self.spread[cell]), near

    def _in_units(self, z: Matrix) -> Matrix:
        """Rows of a size whose squares are numbers, or of length one."""
        z = z * self.scale
        return unit_norm(z) if self.unit else z

    def _folded(self, z: Matrix, *, own: bool = False) -> Matrix:
        """Centred; columns that are constant over the reference as one, 0 in its own rows."""
        if bool(self.varies.all()):
            return z - self.middle
        kept = z[:, self.varies] - self.middle[self.varies]
        rest = 0 * kept[:, :1] if own else z[:, ~self.varies] - self.middle[~self.varies]
        length = (rest * rest).sum(1)[:, None] ** 0.5
        xp = np if isinstance(z, np.ndarray) else sys.modules["torch"]
        return xp.concatenate([kept, length], axis=1)

    def _distance(self, rows: Matrix, *, skip_copy: bool) -> tuple[Floats, Ints]:
        """Mean distance to the k nearest reference rows, and the cell of the nearest."""
        near = nearest(rows, self.reference, self.knn.k + skip_copy)
        distance, index = without_copy(near, self.copy_radius) if skip_copy else near
        return distance.mean(axis=1), self.cell[index[:, 0]]

    def _near(self, rows: Matrix, *, own: bool) -> Ints:
        """The held-out rows around each; a held-out row itself comes first and is left out."""
        return nearest(rows, self.held_out, self.knn.around + own)[1][:, -self.knn.around :]

    def _relative(self, distance: Floats, near: Ints) -> Floats:
        """Logarithm of the distance, less a part of what is usual around the row, (m,)."""
        usual = self.distance[near].mean(axis=1)
        return np.asarray(np.log(distance) - self.knn.relative * np.log(usual))


def conformal_p(
    score: Floats,  # (m,)
    held_out: Floats,  # (r,)
    weight: Floats | None = None,  # (r,)
) -> Floats:  # (m,)
    r"""Rank of each score among those of held-out training rows; a larger score is farther off.

    .. math:: p = \frac{1 + \sum_i w_i 1[s_i \ge s]}{1 + \sum_i w_i}

    Ties count as farther, so that with equal weights :math:`P(p \le u) \le u` for a point
    that is exchangeable with the held-out rows.
    """
    order = np.argsort(held_out)
    sorted_weight = np.ones(len(order)) if weight is None else weight[order]
    above = np.append(np.cumsum(sorted_weight[::-1])[::-1], 0.0)
    return (1 + above[np.searchsorted(held_out[order], score - TIE)]) / (1 + above[0])


def evidence(
    score: Floats,  # (m,)
    held_out: Floats,  # (r,)
) -> Floats:  # (m,)
    r"""Evidence of each score against "inside": the e-value :math:`1 / (2 \sqrt p)`.

    Beyond the largest held-out score, p goes on as an exponential tail with the mean excess of the
    :math:`\sqrt r` largest ones, so that a point which is far out in one representation outweighs
    all others. (Scores are logarithms of distances, and this is Hill's estimator.)
    """
    order, k = np.sort(held_out), math.ceil(math.sqrt(len(held_out)))
    excess = (order[-k:] - order[max(len(order) - k - 1, 0)]).mean() + TINY
    beyond = np.clip((score - order[-1]) / excess, 0, FARTHEST)
    return np.asarray(0.5 / np.sqrt(conformal_p(score, held_out) * np.exp(-beyond)))


def mean_evidence(
    each: Sequence[Floats],  # K of shape (m,)
    variance: Sequence[float],  # (K,)
) -> Floats:  # (m,)
    r"""Arithmetic times geometric mean of the evidence of several representations.

    .. math:: E = \Bigl(\sum_k v_k E_k\Bigr) \prod_k E_k^{v_k}, \qquad v_k \propto 1 / \sigma_k^2

    The arithmetic mean of e-values is an e-value, however they depend on each other [1]_; one that
    is very large is enough. The geometric mean is large where many are rather large.
    :math:`\sigma_k^2` is the variance of logarithms of distances: where they vary little, a point
    that is farther away by some factor says more.

    References
    ----------
    .. [1] Vovk and Wang, E-values: calibration, combination and applications, Annals of Statistics
       49:1736-1754, 2021.
    """
    spread = np.maximum(variance, np.median(variance) / MOST) + TINY
    share = spread.min() / spread
    share, stacked = share / share.sum(), np.stack(each)
    return np.asarray((share @ stacked) * np.exp(share @ np.log(stacked)))


class Levels:
    """How rare an unseen level is where nothing shifts.

    A training row that is held out shows an unseen level where it alone has that level. Their
    share, column by column, is the score: a code with thousands of levels has many such rows, a
    column with three hospitals none. ``counts`` of shape (n, c) says how many training rows have
    the same level as each, itself among them.
    """

    def __init__(self, counts: Ints) -> None:
        self.lone_share = (counts == 1).mean(axis=0)  # (c,)
        self.score = self._score(counts == 1)  # (n,) of held-out training rows

    def p_value(self, counts: Ints) -> Floats:
        """Share of held-out training rows with an unseen level as rare as this one, or 1, (m,).

        Of ``counts`` (m, c) training rows with the same level; with none it is one more lone row.
        """
        score = self._score(counts == 0, 1 / len(self.score))
        return np.where(score > -1, conformal_p(score, self.score), 1.0)

    def put_first(self, p_value: Floats, others: Floats, level: float) -> Floats:
        """Points with a rare unseen level come first, and others share what they leave of p, (m,).

        A point is flagged where its ``p_value`` is at most ``level``. Among held-out rows that is a
        share f, so that f + (1 - f) p is a p-value for the others. Flags that are more common than
        ``level`` say nothing.
        """
        flagged = (self.score > -1) & (conformal_p(self.score, self.score) <= level)
        share = float(flagged.mean())
        rest = share + (1 - share) * others
        return np.where(p_value <= level, np.minimum(p_value, others), rest)

    def _score(self, unseen: NDArray[np.bool_], more: float = 0.0) -> Floats:
        """Minus the share of the rarest kind of unseen level, or -1 without one."""
        return -np.where(unseen, self.lone_share + more, 1.0).min(axis=1)
