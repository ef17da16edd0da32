"""What the ratio estimators share: Gaussian basis functions, widths, folds, Newton's method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.weights.kernels import median_distance, pair_squares
from giw.weights.ratio import Ratio
from giw.weights.samples import Samples, blocks

Array = NDArray[np.float64]
# widths tried, as multiples of the median distance: narrow ones follow details, wide ones trends
WIDTHS = (0.25, 0.4, 0.6, 1.0, 1.5, 2.5, 5.0)
LARGEST_LOG = 60.0  # of a ratio: exp(60) is further than any density ratio that can be estimated
MEDIAN_ROWS = 500  # of each sample, between which the median distance is taken


@dataclass(frozen=True)
class GaussianBasis:
    r"""Functions :math:`\phi_b(x) = \exp(-\lVert x - c_b \rVert^2 / 2\sigma^2)`, mixed linearly.

    With ``mixing`` :math:`K_{cc}^{-1/2}` the penalty :math:`\lVert\theta\rVert^2` is the
    squared norm of :math:`\theta^\top\phi` in the kernel's function space.
    """

    centers: Array  # (b, d)
    width: float
    mixing: Array | None = None  # (b, r)

    def __call__(self, x: Array) -> Array:
        """Features of points (n, d) → (n, b) or (n, r)."""
        raw = pair_squares(x, self.centers)
        raw *= -0.5 / self.width**2
        np.exp(raw, out=raw)
        return raw if self.mixing is None else raw @ self.mixing

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.centers) if self.mixing is None else self.mixing.shape[1]

    @classmethod
    def whitened(cls, centers: Array, width: float) -> GaussianBasis:
        """The basis whose penalty is the norm of the function."""
        value, vector = np.linalg.eigh(cls(centers, width)(centers))
        kept = value > 1e-6 * value[-1]
        return cls(centers, width, vector[:, kept] / np.sqrt(value[kept]))


def with_constant(features: Array) -> Array:
    """A first column of ones, (n, b) → (n, b + 1)."""
    return np.concatenate([np.ones((len(features), 1)), features], 1)


def feature_blocks(features: Callable[[Array], Array], samples: Samples) -> Iterator[Array]:
    """Features of the training points, a block of rows at a time."""
    return (features(part) for part in blocks(samples.train))


def centers_of_both(samples: Samples, most: int) -> Array:
    """At most so many points of each sample, evenly spread."""
    return np.concatenate([samples.some_train(most), samples.some_val(most)])


def candidate_widths(
    bandwidth: str | float, samples: Samples, factors: tuple[float, ...] = WIDTHS
) -> list[float]:
    """The given width, or multiples of the median distance over both samples to choose from."""
    if not isinstance(bandwidth, str):
        return [float(bandwidth)]
    # both count the same; where nothing differs, any width says the same
    middle = median_distance(centers_of_both(samples, MEDIAN_ROWS)) or 1.0
    return [middle] if bandwidth == "median" else [factor * middle for factor in factors]


def fold_numbers(x: Array, n_folds: int) -> NDArray[np.int64]:
    """Fold of each row, drawn for its rank along the sum of features: order does not matter.

    The draw is the same every time. Dealing out the ranks in turn would need no draw, but leaves
    folds so alike that a point held out is nearly one that was fitted, and rich models win.
    """
    n = len(x)
    twister = np.random.RandomState(n).randint(0, 2**32, max(n - 1, 0), dtype=np.uint64)
    draw = np.arange(n)
    for i, number in enumerate(twister.tolist()):  # Fisher and Yates, as torch.randperm draws
        j = i + number % (n - i)
        draw[i], draw[j] = draw[j], draw[i]
    fold = np.empty(n, dtype=np.int64)
    fold[x.sum(-1).argsort(kind="stable")] = draw % n_folds
    return fold


@dataclass(frozen=True)
class Fold:
    """Which points of two samples are held out, and what remains."""

    out_train: NDArray[np.bool_]  # (n,)
    out_val: NDArray[np.bool_]  # (m,)
    kept_train: NDArray[np.bool_]  # (n,)
    share: Array  # (m,), zero where held out, sums to one


def folds_of(samples: Samples, most: int) -> Iterator[Fold]:
    """At most so many folds, each with at least one validation point."""
    n_folds = min(most, len(samples.share))
    train, val = (fold_numbers(np.asarray(x), n_folds) for x in (samples.train, samples.val))
    for number in range(n_folds):
        out = train == number
        share = np.where(val == number, 0.0, samples.share)
        # a single training point is held out and kept
        yield Fold(out, val == number, out if out.all() else ~out, share / share.sum())


def best_of(
    few: Samples,
    bases: list[GaussianBasis],
    ridges: list[float],
    scores: Callable[[GaussianBasis, Samples, list[float]], Any],
) -> tuple[GaussianBasis, float]:
    """The basis and ridge with the least score on held-out points; ties go to the stronger ridge.

    Where no validation point can be left out, nothing can be compared: widest and strongest.

    Parameters
    ----------
    few : Samples
        As many rows as are enough to choose.
    bases : list of GaussianBasis
        From narrow to wide.
    ridges : list of float
        From strong to weak.
    scores : callable
        One number per ridge for a basis, of points that took no part in the fit.
    """
    best, best_score = (bases[-1], ridges[0]), math.inf
    if len(bases) * len(ridges) == 1 or not few.can_hold_out:
        return best
    for basis in bases:
        for ridge, score in zip(ridges, scores(basis, few, ridges), strict=True):
            if score < best_score - 1e-12:
                best, best_score = (basis, ridge), float(score)
    return best


class KernelRatio(Ratio):
    """A ratio made of Gaussian functions, with a width and a ridge to choose."""

    def __init__(
        self,
        bandwidth: str | float = "auto",
        ridge: str | float = "auto",
        n_centers: int = 100,
        standardize: bool = True,
    ) -> None:
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_centers = n_centers
        self.standardize = standardize

    def _ridges(self, strong_to_weak: tuple[float, ...]) -> list[float]:
        """The given ridge, or those to choose from."""
        return list(strong_to_weak) if isinstance(self.ridge, str) else [float(self.ridge)]


def newton(
    look: Callable[[Array], tuple[float, Array, Array]],
    start: Array,
    *,
    tolerance: float,
    most_steps: int = 40,
) -> Array:
    """Minimise a convex function by Newton steps that are halved while they go too far.

    Parameters
    ----------
    look : callable
        Value, gradient and curvature at a point.
    start : array of shape (b,)
    tolerance : float
        Decrease that a step promises below which to stop.
    most_steps : int
    """
    theta = start
    loss, gradient, curvature = look(theta)
    for _ in range(most_steps):
        step = np.linalg.solve(curvature, gradient)
        decrease = float(gradient @ step)
        if decrease < tolerance:
            break
        length = 1.0
        found = look(theta - step)
        while not found[0] <= loss - 1e-4 * length * decrease and length >= 1e-4:
            length *= 0.5
            found = look(theta - length * step)
        theta, (loss, gradient, curvature) = theta - length * step, found
    return theta
