"""What the ratio estimators share: choose a width and a ridge, fit, weigh."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from giw.checks import as_array, as_rows, callers_level, check_auto, check_count, like_input
from giw.tables.chunks import Chunks
from giw.weights.samples import Samples, blocks, median_distance, pair_squares

Array = NDArray[np.float64]
Features = Callable[[Array], Array]  # (n, d) → (n, b)
# θ (b + 1,) from training features (n, b + 1), validation features (m, b + 1) and the shares of the
# latter, which are zero where they are held out; ridge=, start=
Fit = Callable[..., Array]
# widths tried, as multiples of the median distance: narrow ones follow details, wide ones trends
WIDTHS = (0.25, 0.4, 0.6, 1.0, 1.5, 2.5, 5.0)


class EffectiveSampleSizeWarning(UserWarning):
    """Few training points carry almost all of the weight."""


def effective_sample_size(weight: Any) -> float:
    r"""Number of equally weighted points with the same variance of a weighted mean (Kish [1]_).

    .. math:: \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    Parameters
    ----------
    weight : array-like of shape (n,)
        Not negative and not all zero; the scale does not matter.

    Returns
    -------
    float
        Between one, all weight on one point, and n, all weights equal.

    References
    ----------
    .. [1] Kish, Survey Sampling, Wiley, 1965.
    """
    w = as_array(weight, "weight")
    if w.ndim != 1 or w.size == 0:
        raise ValueError(f"weight must have shape (n,) with n ≥ 1, got {w.shape}")
    if (w < 0).any() or not (w > 0).any():
        raise ValueError(
            f"weight must not be negative nor all zero, got {w.min():.3g} to {w.max():.3g}"
        )
    w = w.astype(np.float64) / w.max()  # squares of tiny or huge weights leave the range of floats
    return float(w.sum() ** 2 / np.square(w).sum())


def warn_if_few(weight: NDArray[np.float64], what: str, fewest: float = 0.05) -> None:
    """Explain a collapse of the weights onto less than a share of the training points."""
    n, effective = len(weight), effective_sample_size(weight)
    if effective >= fewest * n:
        return
    warnings.warn(
        f"{what}: the effective sample size is {effective:.1f} of {n} training points "
        f"(under {fewest:.0%}): few points carry almost all of the weight, and a "
        "weighted mean is about as noisy as a mean of that many points. The validation data "
        "lie where training data are rare or absent: look at giw.SupportSplitter for the part "
        "outside, or use a wider bandwidth, a larger ridge or a lower upper bound",
        EffectiveSampleSizeWarning,
        stacklevel=callers_level(),
    )


class Ratio(BaseEstimator):
    """Fits a density ratio to two samples, holds mean-one weights, and weighs new points.

    Attributes
    ----------
    weight_ : array of shape (n,)
        Weights at the training points, mean one.
    model_ : callable
        The fitted ratio, in common units and before rescaling.
    """

    widths: ClassVar[tuple[float, ...]] = WIDTHS  # multiples of the median distance
    ridges: ClassVar[tuple[float, ...]]  # strong to weak
    selection_rows: ClassVar[int] = 3_000  # of each sample, that choose the two
    takes_chunks: ClassVar[bool] = False

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

    def fit(self, x_train: Any, x_val: Any, val_weight: Any | None = None) -> Any:
        """Estimate the ratio from training points (n, d) and validation points (m, d).

        Parameters
        ----------
        x_train : array-like of shape (n, d), or chunks
            Chunks are for data that do not fit in memory, where the estimator can: a list of
            matrices, any iterable of them that can be walked through several times, or a function
            that returns a new iterator.
        x_val : array-like of shape (m, d), or chunks
            Validation points; chunks are joined in memory.
        val_weight : array-like of shape (m,), optional
            Membership of each validation point, between 0 and 1; a point of weight zero counts
            for nothing.
        """
        self._check_parameters()
        samples = Samples.of(x_train, x_val, val_weight, self.standardize)
        in_pieces = isinstance(samples.train, Chunks)
        if in_pieces and not self.takes_chunks:
            raise ValueError(
                f"{type(self).__name__} needs all data in memory; giw.ULSIF and giw.RULSIF take "
                "chunks, or pass a sample of the rows as one array"
            )
        self.units_ = samples.units
        self.n_features_in_ = samples.units.n_features_in_
        self.model_ = self._fit_model(samples)
        raw = self._raw_weights(samples)
        self.scale_ = self._scale(raw)
        weight = raw / self.scale_
        warn_if_few(weight, type(self).__name__)
        self.weight_ = weight if in_pieces else like_input(weight.astype(samples.dtype), x_train)
        return self

    @classmethod
    def weights(
        cls, x_train: Any, x_val: Any, *, val_weight: Any | None = None, **parameters: Any
    ) -> Any:
        """Mean-one weights at the training points, (n,); parameters are those of the class."""
        return cls(**parameters).fit(x_train, x_val, val_weight).weight_

    def weigh(self, x_new: Any) -> Any:
        """Weights at new points (q, d), on the scale of those at the training points."""
        check_is_fitted(self, "model_")
        new = as_rows(x_new, "x_new")
        if new.shape[1] != self.n_features_in_:
            raise ValueError(
                f"x_new has {new.shape[1]} features and the estimator was fitted with "
                f"{self.n_features_in_}; pass the same columns in the same order"
            )
        raw = np.concatenate([self.model_(self.units_.transform(part)) for part in blocks(new)])
        return like_input((raw / self.scale_).astype(new.dtype), x_new)

    def _raw_weights(self, samples: Samples) -> Array:
        """Weights of the training points before rescaling, (n,)."""
        return np.concatenate([self.model_(part) for part in blocks(samples.train)])

    def _scale(self, raw: Array) -> float:
        """By what to divide, so that training points have mean one."""
        mean = float(raw.mean())
        if not mean > 0:
            raise ValueError(
                f"{type(self).__name__} finds a ratio of zero at every training point: no "
                "validation point lies within reach of the training data. Look at "
                "giw.SupportSplitter, or use a wider bandwidth"
            )
        return mean

    def _fit_model(self, samples: Samples) -> Callable[[Array], Array]:
        """Choose a width and a ridge and fit; with ``takes_chunks``, to chunks as well."""
        few = samples.few(self.selection_rows)
        bases, ridges = self._bases(samples), self._ridges()
        basis, self.ridge_ = bases[-1], ridges[0]  # widest and strongest: nothing to compare by
        if few.can_hold_out and len(bases) * len(ridges) > 1:
            scores = np.stack([self._scores(basis, few, ridges) for basis in bases])
            least = np.argwhere(scores <= scores.min() + 1e-12)[0]  # ties: narrow and strong
            basis, self.ridge_ = bases[least[0]], ridges[least[1]]
        self.bandwidth_ = basis.width
        return self._fit_chosen(basis, samples)

    def _bases(self, samples: Samples) -> list[GaussianBasis]:
        """Functions to choose from, from narrow to wide; around validation points."""
        centers = samples.some_val(self.n_centers)
        widths = candidate_widths(self.bandwidth, samples, self.widths)
        return [GaussianBasis(centers, width) for width in widths]

    @abstractmethod
    def _scores(self, basis: GaussianBasis, few: Samples, ridges: list[float]) -> Array:
        """Score of each ridge, smaller being better, on points that took no part in the fit."""

    @abstractmethod
    def _fit_chosen(self, basis: GaussianBasis, samples: Samples) -> Callable[[Array], Array]:
        """The ratio with ``ridge_``, fitted to all rows."""

    def _ridges(self) -> list[float]:
        """The given ridge, or those to choose from."""
        return list(self.ridges) if isinstance(self.ridge, str) else [float(self.ridge)]

    def _check_parameters(self) -> None:
        """Refuse impossible parameters."""
        for name, words in (("bandwidth", ("auto", "median")), ("ridge", ("auto",))):
            check_auto(getattr(self, name, "auto"), name, words)
        check_count(self.n_centers, "n_centers", least=1)


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


@dataclass(frozen=True)
class LinearRatio:
    r"""The ratio :math:`\min(u, \max(0, \theta_0 + \theta^\top \phi(x)))`."""

    features: Features
    theta: Array  # (b + 1,), the constant first
    upper: float = math.inf

    def __call__(self, x: Array) -> Array:
        """Ratio at points (n, d) → (n,)."""
        return (self.features(x) @ self.theta[1:] + self.theta[0]).clip(0, self.upper)


def with_constant(features: Array) -> Array:
    """A first column of ones, (n, b) → (n, b + 1)."""
    return np.concatenate([np.ones((len(features), 1)), features], 1)


def candidate_widths(
    bandwidth: str | float, samples: Samples, factors: tuple[float, ...] = WIDTHS
) -> list[float]:
    """The given width, or multiples of the median distance over both samples to choose from."""
    if not isinstance(bandwidth, str):
        return [float(bandwidth)]
    # both count the same; where nothing differs, any width says the same
    middle = median_distance(samples.some_of_both(500)) or 1.0
    return [middle] if bandwidth == "median" else [factor * middle for factor in factors]


def fold_numbers(x: Array, n_folds: int) -> NDArray[np.intp]:
    """Fold of each row, drawn for its rank along the sum of features: order does not matter.

    The draw is the same every time. Dealing out the ranks in turn would need no draw, but leaves
    folds so alike that a point held out is nearly one that was fitted, and rich models win.
    """
    n = len(x)
    draw = np.arange(n)
    numbers = np.random.RandomState(n).randint(0, 2**32, max(n - 1, 0), dtype=np.uint64)
    for i, number in enumerate(numbers.tolist()):  # Fisher and Yates
        j = i + number % (n - i)
        draw[i], draw[j] = draw[j], draw[i]
    fold = np.empty(n, dtype=np.intp)
    fold[x.sum(-1).argsort(kind="stable")] = draw % n_folds
    return fold


def held_out_values(
    features: Features, samples: Samples, ridges: list[float], fit: Fit, *, most_folds: int
) -> tuple[Array, Array]:  # (r, n), (r, m)
    r"""Values :math:`\theta^\top\phi(x)` of points that took no part in the fit, for every ridge.

    Each fold has at least one validation point. Ridges go from strong to weak, and every fit is
    told the coefficients of the last.
    """
    n_folds = min(most_folds, len(samples.share))
    phi_train, phi_val = (with_constant(features(x)) for x in (samples.train, samples.val))
    of_train, of_val = (fold_numbers(np.asarray(x), n_folds) for x in (samples.train, samples.val))
    at_train, at_val = (np.empty((len(ridges), len(phi))) for phi in (phi_train, phi_val))
    for number in range(n_folds):
        out, out_val = of_train == number, of_val == number
        share = np.where(out_val, 0.0, samples.share)
        # a single training point is held out and kept
        kept = out if out.all() else ~out
        theta = None
        for r, ridge in enumerate(ridges):
            theta = fit(phi_train[kept], phi_val, share / share.sum(), ridge=ridge, start=theta)
            at_train[r, out], at_val[r, out_val] = phi_train[out] @ theta, phi_val[out_val] @ theta
    return at_train, at_val
