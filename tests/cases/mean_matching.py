"""The exact minimum of kernel mean matching by cvxopt."""

import numpy as np
from cvxopt import matrix, solvers, sparse


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


def gaussian_kernel(x, y, *, gamma):
    """By its definition, (n, m)."""
    return np.exp(-gamma * np.square(x[:, None] - y[None]).sum(-1))
