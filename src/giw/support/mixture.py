r"""Two groups of p-values: uniform inside the training support, piled up near zero outside.

A validation p-value is drawn from

.. math:: f(p) = \pi f_{\rm in}(p) + (1 - \pi) f_{\rm out}(p), \qquad
          f_{\rm in} = {\rm Beta}(1, c),\quad f_{\rm out} = {\rm Beta}(a, b),\ a < 1 \le b

where :math:`\pi` is the share of the test distribution inside the support. Perfect calibration has
:math:`c = 1`; a shift within cells tilts the inside group a little, and how much is not known, so
:math:`c` is averaged over instead of believed. All parameters live on a grid and are averaged with
their posterior weight, which works for one validation point as for thousands: with few points the
answer is wide, not wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

Vector = NDArray[np.float64]

SHARE = np.concatenate([[0.0], (np.arange(200) + 0.5) / 200, [1.0]])  # grid of pi
ALL_INSIDE, ALL_OUTSIDE = 0.25, 0.05  # prior mass of cases (i)/(ii), and of disjoint supports
PILE = np.geomspace(0.001, 0.6, 12)  # a: the smaller, the better inside and outside separate
FALL = np.array([1.0, 3.0])  # b: how soon outside p-values die out towards one
TILT = np.array([0.8, 0.9, 1.0, 1.15, 1.3, 1.5])  # c: above one, inside points look strange
TILT_SPREAD = 0.15  # prior standard deviation of log c


@dataclass(frozen=True)
class Mixture:
    """What the p-values of a validation sample say about it."""

    share: float  # posterior median of the share inside
    interval: tuple[float, float]  # 95 % credible
    posterior: Vector  # (m,) probability that each point is inside


def split_mixture(
    rank: NDArray[np.int64],  # (m,) conformal rank, 1 to count + 1
    count: NDArray[np.int64],  # (m,) calibration rows that it was ranked among
    unseen: NDArray[np.bool_],  # (m,) True where the label alone puts the point outside
    *,
    confidence: float = 0.95,
) -> Mixture:
    """Posterior of the share inside and of each point's membership, by averaging over a grid."""
    upper, lower = rank / (count + 1), (rank - 1) / (count + 1)
    seen = ~unseen
    keys, back, times = np.unique(
        np.stack([lower[seen], upper[seen]]), axis=1, return_inverse=True, return_counts=True
    )
    back = back.reshape(-1)
    inside, outside = _bin_probabilities(keys[0], keys[1])  # (u, C), (u, A)
    log_weight = _log_posterior(inside, outside, times.astype(np.int64))  # (S, C, A)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()

    tail = (1 - confidence) / 2
    levels = np.array([tail, 0.5, 1 - tail])
    of_share = weight.sum(axis=(1, 2))
    low, middle, high = _share_quantiles(of_share, int(unseen.sum()), len(rank), levels)
    posterior = np.zeros(len(rank))
    posterior[seen] = _membership(inside, outside, weight)[back]
    return Mixture(middle, (low, high), posterior)


def _bin_probabilities(lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Mass of each group in the bin of each p-value, relative to the bin's width."""
    width = (upper - lower)[:, None]
    inside = ((1 - lower[:, None]) ** TILT - (1 - upper[:, None]) ** TILT) / width
    a, b = (grid.ravel() for grid in np.meshgrid(PILE, FALL))
    outside = (beta.cdf(upper[:, None], a, b) - beta.cdf(lower[:, None], a, b)) / width
    return inside, np.maximum(outside, 1e-300)


def _share_quantiles(weight: Vector, unseen: int, m: int, levels: Vector) -> list[float]:
    """Quantiles of the share inside among all points, those with unseen labels included.

    The share is (share of seen labels) × (share inside among them); the first factor has a Beta
    posterior, the second lives on the grid.
    """
    if unseen == 0:
        value, mass = SHARE, weight
    else:
        seen = beta.ppf((np.arange(100) + 0.5) / 100, m - unseen + 0.5, unseen + 0.5)
        value, mass = np.outer(SHARE, seen).ravel(), np.repeat(weight / 100, 100)
    order = np.argsort(value, kind="stable")
    reached = np.searchsorted(np.cumsum(mass[order]), levels - 1e-12)
    return [float(v) for v in value[order][np.minimum(reached, len(value) - 1)]]


def _log_posterior(inside: Vector, outside: Vector, times: NDArray[np.int64]) -> Vector:
    """Log prior plus log likelihood on the grid of share, tilt and outside shape, (S, C, A)."""
    share_prior = np.full(len(SHARE), (1 - ALL_INSIDE - ALL_OUTSIDE) / (len(SHARE) - 2))
    share_prior[[0, -1]] = ALL_OUTSIDE, ALL_INSIDE
    log_tilt = -0.5 * (np.log(TILT) / TILT_SPREAD) ** 2
    result = np.log(share_prior)[:, None, None] + log_tilt[None, :, None]
    result = result + np.zeros((1, 1, outside.shape[1]))
    pi = SHARE[:, None, None]
    for s_in, s_out, t in zip(inside, outside, times, strict=True):
        result += t * np.log(pi * s_in[None, :, None] + (1 - pi) * s_out[None, None, :])
    return result


def _membership(inside: Vector, outside: Vector, weight: Vector) -> Vector:
    """Posterior probability of the inside group for each distinct p-value, (u,)."""
    pi = SHARE[:, None, None]
    result = np.empty(len(inside))
    for u, (s_in, s_out) in enumerate(zip(inside, outside, strict=True)):
        both = pi * s_in[None, :, None]
        result[u] = float((weight * both / (both + (1 - pi) * s_out[None, None, :])).sum())
    return np.clip(result, 0.0, 1.0)
