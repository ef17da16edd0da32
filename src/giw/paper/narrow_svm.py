"""The published one-class support vector machine, fitted through near pairs alone."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from giw.checks import is_tensor
from giw.support import SupportSplitter
from giw.support.neighbours import Matrix, on_host, unit_norm

Array = NDArray[np.float64]

LEAST = 1e-7  # kernel values below this count as none: a thousand of them do not move a score
BLOCK = 512  # rows whose products with all others are held at a time
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
        self.z_ = unit_norm(z)
        kernel = near_kernel(self.z_, self.z_, self.gamma)
        self.coef_ = one_class_coefficients(*on_its_device(kernel, self.z_), nu=self.nu)
        return self

    def score_samples(self, z: Matrix) -> NDArray[np.float64]:
        """Scores of features of shape (m, d); the score of a far point is zero."""
        if is_tensor(self.z_):
            z = sys.modules["torch"].as_tensor(z, device=self.z_.device)
        return np.asarray(near_kernel(unit_norm(z), self.z_, self.gamma) @ self.coef_)


def near_kernel(z: Matrix, others: Matrix, gamma: float) -> csr_matrix:  # (m, n)
    """The Gaussian kernel of unit-norm rows, where it is not negligible."""
    parts, edge = [], 1 + np.log(LEAST) / (2 * gamma)
    others = in_double(others)
    for start in range(0, len(z), BLOCK):
        alike = in_double(z[start : start + BLOCK]) @ others.T  # ‖a − b‖² = 2 − 2ab
        near = alike > edge
        value = np.exp(2 * gamma * (on_host(alike[near]) - 1))
        places = on_host(near).nonzero()
        parts.append(csr_matrix((value.clip(max=1), places), shape=tuple(alike.shape)))
    return vstack(parts, format="csr")


def in_double(z: Matrix) -> Matrix:
    """The same numbers in double precision, where they are."""
    return z.double() if is_tensor(z) else z.astype(np.float64)


def on_its_device(kernel: csr_matrix, z: Matrix) -> tuple[Callable[[Array], Array], Array]:
    """The product with a kernel, taken where its points are, and the sums of its rows."""
    sums = np.asarray(kernel.sum(axis=1)).ravel()
    if not is_tensor(z):
        return kernel.__matmul__, sums
    torch = sys.modules["torch"]
    parts = (torch.as_tensor(p, device=z.device) for p in (kernel.indptr, kernel.indices))
    there = torch.sparse_csr_tensor(*parts, torch.as_tensor(kernel.data, device=z.device))
    return lambda a: on_host(there @ torch.as_tensor(a, device=z.device)), sums


def one_class_coefficients(
    product: Callable[[Array], Array], sums: Array, *, nu: float
) -> Array:  # (n,)
    """Coefficients by accelerated gradient, with a step of its own for each.

    A kernel without negative entries is no larger than the diagonal of its row sums. Momentum
    starts afresh where it has overshot.
    """
    rate, total = 1 / sums, nu * len(sums)
    a = point = np.full(len(sums), nu)
    slope = at_point = product(a)  # the kernel's products with both
    momentum = 1.0
    for _ in range(MOST_STEPS):
        if slope[a > 0].max() - slope[a < 1].min(initial=np.inf) < TOLERANCE:
            break
        moved = _onto_the_box(point - rate * at_point, rate, total)
        if (point - moved) * sums @ (moved - a) > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / following
        reached = product(moved)
        point, at_point = moved + push * (moved - a), reached + push * (reached - slope)
        a, slope, momentum = moved, reached, following
    return a


def _onto_the_box(a: Array, rate: Array, total: float) -> Array:
    """The nearest point between 0 and 1 with this sum, distances being measured over ``rate``."""
    low, high, middle = ((a - 1) / rate).min(), (a / rate).max(), 0.0  # multiplier of the sum
    for _ in range(100):
        moved = (a - middle * rate).clip(0, 1)
        over = moved.sum() - total
        if abs(over) <= 1e-9 * total:
            break
        low, high = (middle, high) if over > 0 else (low, middle)
        slope = rate[(moved > 0) & (moved < 1)].sum()  # Newton, and halves where it leaves
        middle = middle + over / slope if slope > 0 else low
        middle = middle if low < middle < high else (low + high) / 2
    return moved
