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


def one_class_coefficients(
    kernel: csr_matrix, *, nu: float, tolerance: float = 1e-3, most_steps: int = 1_000_000
) -> Array:  # (n,)
    """Coefficients by steps that move weight from one point to another, chosen as libsvm does.

    The first guess gives a point the less weight the more others are near it. ``tolerance`` is of
    the gradients of points that could trade places, as in libsvm.
    """
    sums = np.asarray(kernel.sum(axis=1)).ravel()
    total = nu * len(sums)
    level = brentq(lambda c: (c / sums).clip(max=1).sum() - total, 0, sums.max())
    a = (level / sums).clip(max=1)
    slope = kernel @ a
    tiny = 1e-12
    for _ in range(most_steps):
        source = np.where(a > 0, slope, -np.inf).argmax()
        gain = np.where(a < 1 - tiny, slope[source] - slope, 0)
        if gain.max() < tolerance:
            break
        near = kernel[source].toarray()[0]
        curvature = np.maximum(2 - 2 * near, tiny)
        target = (gain.clip(min=0) ** 2 / curvature).argmax()
        step = min(a[source], 1 - a[target], gain[target] / curvature[target])
        a[source] -= step
        a[target] += step
        slope += step * (kernel[target].toarray()[0] - near)
    return a
