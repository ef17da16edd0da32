r"""The quadratic programme of kernel mean matching, solved by an interior point method.

.. math:: \min_w \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
          \quad\text{s.t.}\quad 0 \le w \le u,\ \sqrt n \le \sum_i w_i \le 2n - \sqrt n .

The ridge is often tiny beside the eigenvalues of K, and then most directions of w hardly move the
objective: its gap says little about the weights. So the kernel's factor is cut off far below the
ridge, and the solver stops by the error that is left in the *weights*.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from giw.weights.samples import pair_squares

Array = NDArray[np.float64]
BLOCK = 65_536  # columns of F that are scaled at a time: a scaled copy of all would double memory


def pivoted_cholesky(
    x: Array,  # (n, d)
    *,
    gamma: float,
    cut: float,
    most: int,
) -> Array:  # (b + 1, n)
    """Rows F with FᵀF ≈ K for the Gaussian kernel, each taken where most of K is missing.

    Stops where less than ``cut`` is missing of every diagonal entry, or at ``most`` rows. One more
    row, of no meaning, is room for the solver.
    """
    rows = np.empty((most + 1, len(x)))
    left = np.ones(len(x))
    for b in range(most):
        pivot = left.argmax()
        missing = left.item(pivot)
        if missing < cut:
            return rows[: b + 1]
        row = np.exp(-gamma * pair_squares(x, x[[pivot]])[:, 0], out=rows[b])
        if b:
            row -= rows[:b, pivot].dot(rows[:b])
        row /= math.sqrt(missing)
        left -= row * row
    return rows


class FactoredKernel:
    """K = FᵀF, solved by Woodbury's identity, from F with its row of room."""

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


def interior_point(
    rows: Array,  # (b + 1, n)  F, and a last row that is overwritten: the sum is one more row of F
    kappa: Array,  # (n,)
    *,
    ridge: float,
    upper: float,
    tolerance: float = 1e-3,
    most_steps: int = 60,  # after which only rounding is left
) -> Array:  # (n,)
    r"""Weights that solve the programme, by a primal-dual method with Mehrotra's corrector.

    The sum is carried as one more bounded variable that follows the weights, so that one array of
    gaps, to the lower and to the upper bounds, holds all constraints.

    It stops where the root mean squared error of the weights is below ``tolerance``: the objective
    is curved by :math:`\rho` at least, so a duality gap of :math:`\tfrac12 \rho n \epsilon^2`
    proves it.
    """
    n, kernel = len(kappa), FactoredKernel(rows)
    state, move = np.empty((4, n + 1)), np.empty((4, n + 1))
    gap, dual = state[:2], state[2:]  # to the lower and to the upper bounds
    shift, turn = move[:2], move[2:]  # of gaps and of duals
    w = gap[0, :n]
    gap[0], gap[1] = 1.0, upper - 1.0  # from equal weights
    gap[:, n] = n - math.sqrt(n)  # both bounds on the sum are as far from n
    scale = float(kappa.max()) + 1.0
    goal = max(0.5 * ridge * n * tolerance**2, 1e-15 * n * scale)
    balance = max(ridge * tolerance, 1e-14 * n * scale)
    gradient = kernel.product(w) + ridge * w - kappa
    # forces of the size of those to be balanced: small where the start is near the minimum
    dual[:] = 0.1 * float(np.abs(gradient).max()) + 0.01 * scale / math.sqrt(n)
    for _ in range(most_steps):
        spare = float(np.vdot(dual, gap))
        if spare <= goal:
            force = dual[0] - dual[1]  # on the weights and on their sum
            if np.abs(gradient - force[:-1] - force[-1]).max() <= balance:
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
        bend *= min(1.0, 10 * ahead)  # a step that must be short says little of curvature
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


def _least(values: Array) -> float:
    """The minimum, faster on a few hundred numbers than ``min``."""
    flat = values.ravel()
    return flat.item(flat.argmin())
