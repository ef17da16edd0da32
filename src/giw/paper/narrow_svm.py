"""The published one-class support vector machine, fitted through near pairs alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_matrix
from sklearn.neighbors import NearestNeighbors

from giw.support import SupportSplitter
from giw.support.one_class_svm import unit_rows
from giw.support.scores import Matrix

Array = NDArray[np.float64]

LEAST = 1e-7  # kernel values below this count as none: a thousand of them do not move a score
TOLERANCE = 1e-3  # of the gradients of points that could trade places, as in libsvm
MOST_STEPS = 5_000


class PublishedSplitter(SupportSplitter):
    """The split of ``SupportSplitter("osvm")``, in seconds where that takes minutes."""

    def _machine(self, z: Matrix) -> NarrowOneClassSVM:
        return NarrowOneClassSVM().fit(z)


class NarrowOneClassSVM:
    r"""One-class SVM with a narrow kernel, on unit-norm features.

    .. math:: \min_a \tfrac12 \sum_{ij} a_i a_j k_{ij}, \quad 0 \le a_i \le 1, \quad
              \sum_i a_i = \nu n, \quad k_{ij} = \exp(-\gamma \lVert z_i - z_j \rVert^2),

    and the score of z is :math:`\sum_i a_i k(z, z_i)`. The kernel is kept where it is not zero.
    """

    def __init__(self, *, gamma: float = 10_000.0, nu: float = 0.5) -> None:
        self.gamma, self.nu = gamma, nu

    def fit(self, z: Matrix) -> NarrowOneClassSVM:
        """Find the coefficients from training features of shape (n, d)."""
        radius = np.sqrt(-np.log(LEAST) / self.gamma)
        self.near_ = NearestNeighbors(radius=radius, algorithm="brute").fit(unit_rows(z))
        self.coef_ = one_class_coefficients(self._kernel(z), nu=self.nu)
        return self

    def score_samples(self, z: Matrix) -> Array:
        """Scores of features of shape (m, d); the score of a far point is zero."""
        return np.asarray(self._kernel(z) @ self.coef_)

    def _kernel(self, z: Matrix) -> csr_matrix:  # (m, n)
        """The Gaussian kernel with the training points, where it is not negligible."""
        kernel = self.near_.radius_neighbors_graph(unit_rows(z), mode="distance")
        kernel.data = np.exp(-self.gamma * kernel.data**2)
        return kernel


def one_class_coefficients(kernel: csr_matrix, *, nu: float) -> Array:  # (n,)
    """Coefficients by accelerated gradient, with a step of its own for each.

    A kernel without negative entries is no larger than the diagonal of its row sums. Momentum
    starts afresh where it has overshot.
    """
    sums = np.asarray(kernel.sum(axis=1)).ravel()
    rate, total = 1 / sums, nu * len(sums)
    a = point = np.full(len(sums), nu)
    slope = at_point = kernel @ a  # the kernel's products with both
    momentum = 1.0
    for _ in range(MOST_STEPS):
        if slope[a > 0].max() - slope[a < 1].min(initial=np.inf) < TOLERANCE:
            break
        moved = _onto_the_box(point - rate * at_point, rate, total)
        if (point - moved) * sums @ (moved - a) > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / following
        reached = kernel @ moved
        point, at_point = moved + push * (moved - a), reached + push * (reached - slope)
        a, slope, momentum = moved, reached, following
    return a


def _onto_the_box(a: Array, rate: Array, total: float) -> Array:
    """The nearest point between 0 and 1 with this sum, distances being measured over ``rate``."""

    def too_many(multiplier: float) -> float:
        return float((a - multiplier * rate).clip(0, 1).sum() - total)

    found = brentq(too_many, ((a - 1) / rate).min(), (a / rate).max(), xtol=1e-12)
    return (a - found * rate).clip(0, 1)
