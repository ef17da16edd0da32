r"""The quadratic programme of kernel mean matching, solved by an interior point method.

.. math:: \min_w \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
          \quad\text{s.t.}\quad 0 \le w \le u,\ a \le \sum_i w_i \le b .

The ridge is often tiny beside the eigenvalues of K, and then most directions of w hardly move the
objective: its gap says little about the weights. So the kernel's factor is cut off far below the
ridge, and the solver stops by the error that is left in the *weights*.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]
BLOCK = 65_536  # columns of F that are scaled at a time: a scaled copy of all would double memory


def sum_bounds(n: int) -> tuple[float, float]:
    r"""Least and largest sum of weights: :math:`|\sum w - n| \le n (\sqrt n - 1) / \sqrt n`."""
    return math.sqrt(n), 2 * n - math.sqrt(n)


def pivoted_cholesky(
    x: Array,  # (n, d)
    *,
    gamma: float,
    cut: float,
    most: int,
) -> tuple[Array, float]:  # (b + 1, n), largest entry of what is left on the diagonal
    """Rows F with FᵀF ≈ K for the Gaussian kernel, each taken where most of K is missing.

    Stops where less than ``cut`` is missing of every diagonal entry, or at ``most`` rows. One more
    row, of no meaning, is room for :class:`FactoredKernel`.
    """
    rows = np.empty((most + 1, len(x)))
    left = np.ones(len(x))
    points = x[:, 0] if x.shape[1] == 1 else x
    for b in range(most):
        pivot = left.argmax()
        missing = left.item(pivot)
        if missing < cut:
            return rows[: b + 1], missing
        row = rows[b]
        difference = points - points[pivot]
        if points.ndim == 1:
            np.multiply(difference, difference, out=row)
        else:
            np.einsum("nd,nd->n", difference, difference, out=row)
        row *= -gamma
        np.exp(row, out=row)
        if b:
            row -= rows[:b, pivot].dot(rows[:b])
        row /= math.sqrt(missing)
        left -= row * row
    return rows, float(left.max())


class FactoredKernel:
    """K = FᵀF with few rows, solved by Woodbury's identity.

    Parameters
    ----------
    rows : array of shape (b + 1, n)
        F, and a last row that is overwritten: the constant is one more row of F.
    """

    def __init__(self, rows: Array) -> None:
        self.with_constant, self.rows = rows, rows[:-1]
        self.identity = np.eye(len(rows))
        n = rows.shape[1]
        self.blocks = [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]

    def product(self, w: Array) -> Array:
        """K w."""
        return self.rows.dot(w).dot(self.rows)

    def factor(self, diagonal: Array, constant: float) -> None:
        """Make ready to solve (K + diag(d) + c 11ᵀ) x = r."""
        self.inverse, self.root = 1.0 / diagonal, math.sqrt(constant)
        self.with_constant[-1] = self.root
        inner = self.identity
        for part in self.blocks:
            rows = self.with_constant[:, part]
            inner = inner + (rows * self.inverse[part]).dot(rows.T)
        self.lower, _ = lapack.dpotrf(inner, lower=1)

    def solve(self, right: Array, out: Array) -> None:
        """Write x and its sum into ``out``, (n,) → (n + 1,).

        The sum comes from the equations: near a bound on it, adding up the entries of x would
        leave mostly their rounding errors.
        """
        scaled = right * self.inverse
        shared, _ = lapack.dpotrs(self.lower, self.with_constant.dot(scaled), lower=1)  # [F, √c 1]x
        back = shared.dot(self.with_constant)
        back *= self.inverse
        np.subtract(scaled, back, out=out[:-1])
        out[-1] = shared.item(-1) / self.root


class DenseKernel:
    """All entries of K, (n, n), where few rows do not span it; solved by Cholesky."""

    def __init__(self, kernel: Array) -> None:
        self.kernel = kernel

    def product(self, w: Array) -> Array:
        """K w."""
        return self.kernel.dot(w)

    def factor(self, diagonal: Array, constant: float) -> None:
        """The constant by the Sherman-Morrison formula."""
        matrix = self.kernel.copy()
        matrix.ravel()[:: len(matrix) + 1] += diagonal
        self.lower, _ = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
        self.ones, _ = lapack.dpotrs(self.lower, np.ones(len(matrix)), lower=1)
        self.constant, self.slope = constant, 1 + constant * float(self.ones.sum())

    def solve(self, right: Array, out: Array) -> None:
        """Write x and its sum into ``out``."""
        free, _ = lapack.dpotrs(self.lower, right, lower=1)
        out[-1] = float(free.sum()) / self.slope
        np.subtract(free, (self.constant * out[-1]) * self.ones, out=out[:-1])


def interior_point(
    kernel: FactoredKernel | DenseKernel,
    kappa: Array,  # (n,)
    *,
    ridge: float,
    upper: float,
    total: tuple[float, float],
    tolerance: float = 1e-3,
    most_steps: int = 60,
) -> Array:  # (n,)
    r"""Weights that solve the programme, by a primal-dual method with Mehrotra's corrector.

    The sum is carried as one more bounded variable that follows the weights, so that one array of
    gaps, to the lower and to the upper bounds, holds all constraints.

    Parameters
    ----------
    kernel : FactoredKernel or DenseKernel
    kappa : array of shape (n,)
    ridge, upper : float
        The :math:`\rho` and the u of the programme.
    total : pair of float
        Least and largest sum of the weights, on either side of n.
    tolerance : float
        Root mean squared error :math:`\epsilon` of the weights at which to stop. The objective is
        curved by :math:`\rho` at least, so a duality gap of
        :math:`\tfrac12 \rho n \epsilon^2` proves it.
    most_steps : int
        Newton steps after which only rounding is left.
    """
    n = len(kappa)
    state, move = np.empty((4, n + 1)), np.empty((4, n + 1))
    gap, dual = state[:2], state[2:]  # to the lower and to the upper bounds
    shift, turn = move[:2], move[2:]  # of gaps and of duals
    w = gap[0, :n]
    w[:] = likely_weights(kernel.product(np.ones(n)), kappa, upper=upper)
    np.subtract(upper, w, out=gap[1, :n])
    gap[:, n] = n - total[0], total[1] - n
    scale = float(kappa.max()) + 1.0
    goal = max(0.5 * ridge * n * tolerance**2, 1e-15 * n * scale)
    balance = max(ridge * tolerance, 1e-14 * n * scale)
    gradient = kernel.product(w) + ridge * w - kappa
    # forces of the size of those to be balanced: small where the start is near the minimum
    dual[:] = 0.1 * float(np.abs(gradient).max()) + 0.01 * scale / math.sqrt(n)
    for _ in range(most_steps):
        spare = float(np.vdot(dual, gap))
        if spare <= goal and _imbalance(gradient, dual) <= balance:
            break
        ratio = dual / gap
        diagonal = ratio[0] + ratio[1]
        constant = diagonal.item(n)
        diagonal += ridge
        kernel.factor(diagonal[:n], constant)
        # predictor; dual + turn = −ratio · shift, so that one quotient tells both step lengths
        kernel.solve(-gradient, out=shift[0])
        np.negative(shift[0], out=shift[1])
        part = shift / gap  # of each gap that the step takes up
        ahead = 0.995 / max(0.995, -_least(part), 1 - _least(-part))
        bend = (part + 1.0) * part
        bend *= dual  # −shift · turn / gap
        # ⟨gap + a·shift, dual + a·turn⟩, where ⟨gap, turn⟩ + ⟨shift, dual⟩ = −⟨gap, dual⟩
        after = spare * (1 - ahead) - ahead * ahead * float(np.vdot(gap, bend))
        target = max(spare * (after / spare) ** 4, 0.1 * goal) / (2 * (n + 1))
        # corrector
        pull = target / gap
        pull += bend
        right = pull[0] - pull[1]
        right += right.item(n)
        kernel.solve(right[:n] - gradient, out=shift[0])
        np.negative(shift[0], out=shift[1])
        np.multiply(ratio, shift, out=turn)
        np.subtract(pull, turn, out=turn)
        turn -= dual
        move *= 0.995 / max(0.995, -_least(move / state))
        state += move
        gradient = kernel.product(w)
        gradient += ridge * w
        gradient -= kappa
    return np.minimum(w, upper)  # the last step may end a rounding error above


def _imbalance(gradient: Array, dual: Array) -> float:
    """Largest force that the duals of (weights, their sum) leave on a weight."""
    force = dual[0] - dual[1]
    return float(np.abs(gradient - force[:-1] - force[-1]).max())


def _least(values: Array) -> float:
    """The minimum, faster on a few hundred numbers than ``min``."""
    flat = values.ravel()
    return flat.item(flat.argmin())


def likely_weights(
    reach: Array,  # (n,)  K 1
    kappa: Array,  # (n,)
    *,
    upper: float,
) -> Array:  # (n,)
    r"""Weights of sum n well inside their bounds, near the ratio of two kernel densities.

    :math:`\kappa_i / (K 1)_i` is the density of the validation points over that of the training
    points, as kernels of this width see it. Held back from zero and from the upper bound it is a
    better start than equal weights: it saves the interior point method some steps.
    """
    n = len(kappa)
    ratio = kappa / (reach + 1e-3)
    total = float(ratio.sum())
    if total <= 0:  # no validation point within reach
        return np.ones(n)
    ratio *= n / total
    room = 0.6 * (upper - 1)
    np.minimum(ratio, 1 + room, out=ratio)
    ratio -= float(ratio.sum()) / n
    ratio *= min(0.7, room / max(float(ratio.max()), 1e-300))
    ratio += 1.0
    return ratio
