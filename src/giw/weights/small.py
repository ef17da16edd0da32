"""The quadratic programme of kernel mean matching for a few hundred points, fast on a CPU.

Same method as :func:`giw.weights.quadratic.interior_point`, for one problem in numpy: at this size
every call costs more than its arithmetic, so the code saves calls. The sum's bounds are plain
numbers, gaps and duals are one array, features are rows, ``argmin`` and ``dot`` stand for the
slower ``min`` and ``@``, and the start is a guess of the ratio.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Vector = NDArray[np.float64]


def pivoted_cholesky(
    x: Vector,  # (n, d)
    *,
    gamma: float,
    tolerance: float = 1e-5,
    most: int = 64,
) -> tuple[Vector, float]:  # (n, b), largest entry of what is left on the diagonal
    """Features F with F Fᵀ ≈ K for the Gaussian kernel, each column where most is missing."""
    rows = np.empty((most, len(x)))
    left = np.ones(len(x))
    points = x[:, 0] if x.shape[1] == 1 else x
    for b in range(most):
        pivot = left.argmax()
        missing = left.item(pivot)
        if missing < tolerance:
            return rows[:b].T, missing
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
    return rows.T, float(left.max())


def likely_weights(
    features: Vector,  # (b, n)
    kappa: Vector,  # (n,)
    *,
    upper: float,
) -> Vector:  # (n,)
    r"""Weights of sum n well inside their bounds, near the ratio of two kernel densities.

    :math:`\kappa_i / (K 1)_i` is the density of the validation points over that of the training
    points, as kernels of this width see it. Held back from zero and from the upper bound it is a
    better start than equal weights: it saves the interior point method some steps.
    """
    n = len(kappa)
    ratio = kappa / (features.sum(1).dot(features) + 1e-3)
    total = float(ratio.sum())
    if total == 0:  # no validation point within reach
        return np.ones(n)
    ratio *= n / total
    room = 0.6 * (upper - 1)
    np.minimum(ratio, 1 + room, out=ratio)
    ratio -= float(ratio.sum()) / n
    ratio *= min(0.7, room / max(ratio.item(ratio.argmax()), 1e-300))
    ratio += 1.0
    return ratio


def small_interior_point(
    features: Vector,  # (n, b)
    kappa: Vector,  # (n,)
    *,
    ridge: float,
    upper: float,
    bounds: tuple[float, float],
    tolerance: float = 1e-4,
    most_steps: int = 60,
) -> Vector:  # (n,)
    """Minimise ½ wᵀ(FFᵀ + ρI)w − κᵀw within the bounds; see the general method for the story."""
    n, b = features.shape
    rows = np.empty((b + 1, n))  # the last row carries the bounds on the sum
    rows[:b] = features.T
    features = rows[:b]
    scale = float(kappa.max()) + 1.0
    state, move = np.empty((4, n)), np.empty((4, n))
    gap, dual = state[:2], state[2:]  # to the lower and to the upper bounds
    shift, turn = move[:2], move[2:]  # of gaps and of duals
    w, step = gap[0], move[0]
    w[:] = likely_weights(features, kappa, upper=upper)
    np.subtract(upper, w, out=gap[1])
    gradient = _gradient(w, features, kappa, ridge)
    # forces of the size of those to be balanced: small where the start is near the minimum
    force = 0.1 * float(np.abs(gradient).max()) + 0.01 * scale / math.sqrt(n)
    dual[:] = force
    lift = press = force  # duals of the sum's lower and upper bound
    above, below = n - bounds[0], bounds[1] - n  # its gaps to them
    for _ in range(most_steps):
        sizes = float(np.vdot(dual, gap)) + lift * above + press * below
        objective = 0.5 * abs(float(w.dot(gradient)) - float(w.dot(kappa))) + 1.0
        if sizes <= tolerance * objective:
            net = dual[0] - dual[1] + (lift - press) - gradient
            if float(np.abs(net).max()) <= max(tolerance, 1e-7) * scale:
                break
        ratio = dual / gap
        lifting, pressing = lift / above, press / below
        diagonal = ratio[0] + ratio[1]
        diagonal += ridge
        root = math.sqrt(lifting + pressing)
        rows[b] = root
        inverse = 1.0 / diagonal
        scaled = rows * inverse
        inner = scaled.dot(rows.T)
        inner.ravel()[:: b + 2] += 1.0
        lower, _ = lapack.dpotrf(inner, lower=1)

        # predictor; dual + turn = −ratio · shift, so that one quotient tells both step lengths
        shared, _ = lapack.dpotrs(lower, scaled.dot(gradient), lower=1)
        direct = shared.dot(scaled)
        direct -= gradient * inverse
        rise = -shared.item(b) / root  # the sum of the step, without its rounding
        part = direct / gap  # of each gap that the step takes up
        np.negative(part[1], out=part[1])
        part_lift, part_press = rise / above, -rise / below
        flat = part.ravel()
        least = min(flat.item(flat.argmin()), part_lift, part_press)
        most = max(flat.item(flat.argmax()), part_lift, part_press)
        ahead = 0.995 / max(0.995, -least, 1 + most)
        # −shift · turn / gap
        bend = part + 1.0
        bend *= part
        bend *= dual
        bend_lift = lift * part_lift * (1 + part_lift)
        bend_press = press * part_press * (1 + part_press)
        # ⟨gap + a·shift, dual + a·turn⟩, where ⟨gap, turn⟩ + ⟨shift, dual⟩ = −⟨gap, dual⟩
        crossed = float(np.vdot(gap, bend)) + bend_lift * above + bend_press * below
        after = sizes * (1 - ahead) - ahead * ahead * crossed
        target = max(sizes * (after / sizes) ** 4, 0.1 * tolerance * objective) / (2 * (n + 1))

        # corrector
        pull = target / gap
        pull += bend
        pull_lift, pull_press = target / above + bend_lift, target / below + bend_press
        right = pull[0] - pull[1]
        right += pull_lift - pull_press
        right -= gradient
        shared, _ = lapack.dpotrs(lower, scaled.dot(right), lower=1)
        np.multiply(right, inverse, out=step)
        step -= shared.dot(scaled)
        rise = shared.item(b) / root
        np.negative(step, out=move[1])
        np.multiply(ratio, shift, out=turn)
        np.subtract(pull, turn, out=turn)
        turn -= dual
        turn_lift = pull_lift - lifting * rise - lift
        turn_press = pull_press + pressing * rise - press
        flat = (move / state).ravel()
        ahead = 0.995 / max(
            0.995,
            -flat.item(flat.argmin()),
            -rise / above,
            rise / below,
            -turn_lift / lift,
            -turn_press / press,
        )
        move *= ahead
        state += move
        above, below = above + ahead * rise, below - ahead * rise
        lift += ahead * turn_lift
        press += ahead * turn_press
        gradient = _gradient(w, features, kappa, ridge)
    return w.copy()


def _gradient(w: Vector, features: Vector, kappa: Vector, ridge: float) -> Vector:
    gradient = features.dot(w).dot(features)
    gradient += ridge * w
    gradient -= kappa
    return gradient
