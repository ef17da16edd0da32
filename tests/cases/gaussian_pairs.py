"""Pairs of Gaussian samples whose density ratio is known."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm


@dataclass(frozen=True)
class GaussianPair:
    """Points drawn from N(0, I) and N(shift·e₁, I), and the true ratio at the training points."""

    train: np.ndarray  # (n, d)
    val: np.ndarray  # (m, d)
    ratio: np.ndarray  # (n,)

    def reduction(self, weight):
        """Share of the squared error of equal weights that these weights take away."""
        uniform = np.mean((1 - self.ratio) ** 2)
        return 1 - np.mean((np.asarray(weight) - self.ratio) ** 2) / uniform


def true_ratio(x, shift):
    """N(shift·e₁, I) over N(0, I)."""
    return np.exp(shift * x[:, 0] - shift**2 / 2)


def gaussian_pair(seed, *, n=1_000, m=200, d=1, shift=0.75):
    rng = np.random.default_rng(seed)
    train, val = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    val[:, 0] += shift
    return GaussianPair(train, val, true_ratio(train, shift))


def noiseless_pair(shift, *, n=500):
    """Evenly spaced quantiles in place of draws: no sampling noise."""
    levels = (np.arange(n)[:, None] + 0.5) / n
    train = norm.ppf(levels)
    return GaussianPair(train, norm.ppf(levels, loc=shift), true_ratio(train, shift))
