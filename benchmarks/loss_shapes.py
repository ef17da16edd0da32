"""Losses of a training batch and of a validation batch, as they look in training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

N_TRAIN, N_VAL = 256, 20
Losses = NDArray[np.float64]


def loss_shapes(seed: int = 0) -> dict[str, tuple[Losses, Losses]]:
    """Early and late in training, with and without a shift.

    The last three have validation losses where training losses are rare or absent.
    """
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
