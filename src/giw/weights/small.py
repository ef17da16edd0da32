"""The quadratic programme of kernel mean matching for a few hundred points, fast on a CPU.

Same method as :func:`giw.weights.quadratic.interior_point`, for one problem in numpy, with the
sum's bounds as plain numbers: at this size every array operation costs more than its arithmetic.
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
    columns = np.empty((most, len(x)))
    left = np.ones(len(x))
    for b in range(most):
        pivot = int(left.argmax())
        missing = float(left[pivot])
        if missing < tolerance:
            return columns[:b].T, missing
        difference = x - x[pivot]
        squares = difference[:, 0] ** 2 if x.shape[1] == 1 else (difference**2).sum(1)
        column = np.exp(-gamma * squares)  # (n,)
        if b:
            column -= columns[:b, pivot] @ columns[:b]
        column /= math.sqrt(missing)
        columns[b] = column
        left -= column * column
    return columns.T, float(left.max())


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
    columns = np.empty((n, b + 1), order="F")  # the last column carries the bounds on the sum
    columns[:, :b] = features
    features = columns[:, :b]
    scale = float(kappa.max()) + 1.0
    w = np.ones(n)
    gap, move = np.empty((2, n)), np.empty((2, n))
    dual = np.full((2, n), scale / math.sqrt(n))
    lift = press = float(dual[0, 0])  # duals of the sum's lower and upper bound
    above, below = n - bounds[0], bounds[1] - n  # its gaps to them
    for _ in range(most_steps):
        gap[0] = w
        np.subtract(upper, w, out=gap[1])
        gradient = features @ (w @ features)
        gradient += ridge * w
        gradient -= kappa
        sizes = float(np.vdot(dual, gap)) + lift * above + press * below
        objective = 0.5 * abs(float(w @ gradient) - float(w @ kappa)) + 1.0
        net = dual[0] - dual[1]
        net += lift - press
        net -= gradient
        if sizes <= tolerance * objective and max(net.max(), -net.min()) <= tolerance * scale:
            break
        ratio = dual / gap
        lifting, pressing = lift / above, press / below
        diagonal = ratio[0] + ratio[1]
        diagonal += ridge
        root = math.sqrt(lifting + pressing)
        columns[:, b] = root
        scaled = columns / diagonal[:, None]
        inner = columns.T @ scaled
        inner.ravel()[:: b + 2] += 1.0
        lower, _ = lapack.dpotrf(inner, lower=1)

        # predictor
        shared, _ = lapack.dpotrs(lower, gradient @ scaled, lower=1)
        step = scaled @ shared
        step -= gradient / diagonal
        rise = -float(shared[b]) / root  # the sum of the step, without its rounding
        move[0] = step
        np.negative(step, out=move[1])
        turn = ratio * move
        turn += dual
        np.negative(turn, out=turn)
        turn_lift, turn_press = -lift - lifting * rise, -press + pressing * rise
        ahead = 0.995 / max(
            0.995,
            -float((move / gap).min()),
            -float((turn / dual).min()),
            -rise / above,
            rise / below,
            -turn_lift / lift,
            -turn_press / press,
        )
        # ⟨gap + a·move, dual + a·turn⟩, where ⟨gap, turn⟩ + ⟨move, dual⟩ = −⟨gap, dual⟩
        crossed = float(np.vdot(move, turn)) + rise * (turn_lift - turn_press)
        after = sizes * (1 - ahead) + ahead * ahead * crossed
        target = max(sizes * (after / sizes) ** 3, 0.1 * tolerance * objective) / (2 * (n + 1))

        # corrector
        aim = move * turn
        np.subtract(target, aim, out=aim)
        aim_lift, aim_press = target - rise * turn_lift, target + rise * turn_press
        pull = aim / gap
        right = pull[0] - pull[1]
        right += aim_lift / above - aim_press / below
        right -= gradient
        shared, _ = lapack.dpotrs(lower, right @ scaled, lower=1)
        step = right / diagonal
        step -= scaled @ shared
        rise = float(shared[b]) / root
        move[0] = step
        np.negative(step, out=move[1])
        turn = pull
        turn -= ratio * move
        turn -= dual
        turn_lift = (aim_lift - lift * rise) / above - lift
        turn_press = (aim_press + press * rise) / below - press
        ahead = 0.995 / max(
            0.995,
            -float((move / gap).min()),
            -float((turn / dual).min()),
            -rise / above,
            rise / below,
            -turn_lift / lift,
            -turn_press / press,
        )
        step *= ahead
        w += step
        turn *= ahead
        dual += turn
        above, below = above + ahead * rise, below - ahead * rise
        lift += ahead * turn_lift
        press += ahead * turn_press
    return w
