"""Losses of a training batch and of a validation batch, and the exact minimum by cvxopt."""

import numpy as np
from cvxopt import matrix, solvers, sparse

N_TRAIN, N_VAL = 256, 20


def loss_shapes(seed=0):
    """What losses look like early and late in training, with and without a shift; the last three
    have validation losses where training losses are rare or absent."""
    rng = np.random.default_rng(seed)
    n, m = N_TRAIN, N_VAL
    easy = rng.random(n) < 0.6
    rare = np.arange(n) < 6
    return {
        "same": (rng.exponential(1, n), rng.exponential(1, m)),
        "skewed": (rng.lognormal(-2, 1.5, n), rng.lognormal(-1, 1.5, m)),
        "two_modes": (
            np.where(easy, rng.exponential(0.05, n), rng.normal(3, 0.7, n)),
            rng.exponential(0.1, m),
        ),
        "tiny": (rng.exponential(0.001, n), rng.exponential(0.002, m)),
        "early": (rng.normal(2.3, 0.1, n), rng.normal(2.4, 0.3, m)),
        "larger": (rng.exponential(0.5, n), 1 + rng.exponential(1.5, m)),
        "rare": (
            np.where(rare, rng.normal(4, 0.5, n), rng.normal(0.1, 0.02, n)),
            rng.normal(4, 0.5, m),
        ),
        "far": (rng.exponential(0.5, n), rng.normal(8, 0.5, m)),
    }


def minimum_by_cvxopt(kernel, kappa, *, ridge, upper, tolerance=1e-9):
    """The weights before rescaling, by an independent solver with sparse constraints."""
    n = len(kappa)
    slack = (np.sqrt(n) - 1) / np.sqrt(n)
    rows = np.r_[np.ones((1, n)), -np.ones((1, n)), np.eye(n), -np.eye(n)]
    limits = np.r_[n * (1 + slack), n * (slack - 1), upper * np.ones(n), np.zeros(n)]
    options = {"show_progress": False, "abstol": tolerance, "reltol": tolerance}
    solution = solvers.qp(
        matrix(kernel + ridge * np.eye(n)),
        matrix(-kappa),
        sparse(matrix(rows)),
        matrix(limits),
        options=options,
    )
    return np.array(solution["x"])[:, 0]


def objective(w, kernel, kappa, *, ridge):
    """½ wᵀ(K + ρI)w − κᵀw."""
    return 0.5 * w @ kernel @ w + 0.5 * ridge * w @ w - kappa @ w
