r"""Two groups of p-values: uniform inside the training support, piled up near zero outside.

A validation p-value is drawn from

.. math:: f(p) = \pi f_{\rm in}(p) + (1 - \pi) f_{\rm out}(p), \qquad
          f_{\rm in} = {\rm Beta}(1, c),\quad
          f_{\rm out} = (1 - t) {\rm Beta}(a, b) + t\, {\rm Beta}(1, 15),\ a \le 1 < b

where :math:`\pi` is the share of the test distribution inside the support. Perfect calibration has
:math:`c = 1`; a shift within cells tilts the inside group a little, and how much is not known, so
:math:`c` is averaged over instead of believed: that is how calibration bias enters the interval.
All parameters live on a grid and are averaged with their posterior weight, which works for one
validation point as for thousands: with few points the answer is wide, not wrong.

Such a model is never exactly right, and a plain posterior of thousands of points would be sure of
its own error. The likelihood of m points therefore counts as that of :math:`m / (1 + m / 500)`: a
coarsened posterior [1]_, wide enough for the calibration bias that more points cannot cure.

That :math:`\pi` can be told at all rests on one assumption: points from outside seldom look as
ordinary as the median training point (:math:`b` well above one). Where inside and outside hardly
differ in the features, no sample size helps and the share is too large.

References
----------
.. [1] Miller and Dunson, Robust Bayesian inference via coarsening, JASA 114:1113-1125, 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

Vector = NDArray[np.float64]

SHARE = np.concatenate([[0.0], (np.arange(60) + 0.5) / 60, [1.0]])  # grid of pi
ALL_INSIDE, ALL_OUTSIDE = 0.25, 0.05  # prior mass of cases (i)/(ii), and of disjoint supports
PILE = np.array([0.2, 0.5, 1.0])  # a: the smaller, the sharper the pile at zero
FALL = np.array([2.0, 5.0, 15.0, 50.0, 150.0, 500.0])  # b: how soon outside p-values die out
TAIL = np.array([0.0, 0.08, 0.2])  # t: outside points that look half familiar
TAIL_FALL = 15.0
TILT = np.exp(np.linspace(-0.3, 0.3, 5))  # c: above one, inside points look strange
TILT_SPREAD = 0.15  # prior standard deviation of log c
TRUSTED = 500  # points beyond which the error of the model itself outweighs sampling error
GROUPS = ((0.02, 0.005), (0.1, 0.02))  # above the first, bins at least as wide as the second


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
    seen = ~unseen
    bins, back, times = np.unique(
        _grouped(rank[seen], count[seen]), axis=1, return_inverse=True, return_counts=True
    )
    inside, outside = _bin_probabilities(bins[0], bins[1])  # (u, C), (u, A)
    log_weight = _log_posterior(inside, outside, times.astype(np.float64))  # (C, A, S)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()

    tail = (1 - confidence) / 2
    of_share = weight.sum(axis=(0, 1))
    low, middle, high = _share_quantiles(
        of_share, int(unseen.sum()), len(rank), np.array([tail, 0.5, 1 - tail])
    )
    posterior = np.zeros(len(rank))
    posterior[seen] = _membership(inside, outside, weight)[back.reshape(-1)]
    return Mixture(middle, (low, high), posterior)


def _grouped(rank: NDArray[np.int64], count: NDArray[np.int64]) -> Vector:
    """The bin ((rank - 1), rank) / (count + 1) of each p-value, (2, m).

    Away from zero both densities are smooth and wider bins do: thousands of points then fall into
    about a hundred bins.
    """
    upper, lower = rank / (count + 1), (rank - 1) / (count + 1)
    for above, width in GROUPS:
        group = np.minimum(np.floor((lower + upper) / 2 / width), np.round(1 / width) - 1)
        smooth = (lower >= above) & (upper - lower < width)
        lower = np.where(smooth, group * width, lower)
        upper = np.where(smooth, (group + 1) * width, upper)
    return np.stack([lower, upper]).round(12)


def _bin_probabilities(lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Mass of each group in the bin of each p-value, relative to the bin's width."""
    width = (upper - lower)[:, None]
    inside = ((1 - lower[:, None]) ** TILT - (1 - upper[:, None]) ** TILT) / width
    # differences of upper tails keep their digits where lower tails are all one
    a, b = (grid.ravel() for grid in np.meshgrid(PILE, FALL))
    pile = (beta.sf(lower[:, None], a, b) - beta.sf(upper[:, None], a, b)) / width  # (u, ab)
    tail = ((1 - lower) ** TAIL_FALL - (1 - upper) ** TAIL_FALL)[:, None] / width  # (u, 1)
    outside = np.concatenate([(1 - t) * pile + t * tail for t in TAIL], axis=1)  # (u, A)
    return inside, np.maximum(outside, 1e-12)  # nothing is impossible


def _log_posterior(inside: Vector, outside: Vector, times: Vector) -> Vector:
    """Log prior plus log likelihood on the grid of tilt, outside shape and share, (C, A, S)."""
    share_prior = np.full(len(SHARE), (1 - ALL_INSIDE - ALL_OUTSIDE) / (len(SHARE) - 2))
    share_prior[[0, -1]] = ALL_OUTSIDE, ALL_INSIDE
    power = 1 / (1 + times.sum() / TRUSTED)
    result = np.empty((inside.shape[1], outside.shape[1], len(SHARE)))
    other = outside.T[:, :, None] * (1 - SHARE)  # (A, u, S)
    for c, log_c in enumerate(np.log(TILT)):
        prior = np.log(share_prior) - 0.5 * (log_c / TILT_SPREAD) ** 2  # (S,)
        log_density = np.log(np.outer(inside[:, c], SHARE) + other)  # (A, u, S)
        result[c] = prior + power * (times @ log_density)
    return result


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
    return _interpolated(value[order], mass[order], levels)


def _interpolated(value: Vector, mass: Vector, levels: Vector) -> list[float]:
    """Quantiles of a grid distribution, linear between grid points; atoms at 0 and 1 stay sharp."""
    cumulative = np.cumsum(mass) / mass.sum()
    middle = cumulative - mass / mass.sum() / 2
    middle[0], middle[-1] = cumulative[0], cumulative[-2]
    return [float(np.clip(np.interp(q, middle, value), value[0], value[-1])) for q in levels]


def _membership(inside: Vector, outside: Vector, weight: Vector) -> Vector:
    """Posterior probability of the inside group for each distinct p-value, (u,)."""
    result = np.zeros(len(inside))
    for c in range(inside.shape[1]):
        one = np.outer(inside[:, c], SHARE)  # (u, S)
        for a in range(outside.shape[1]):
            if weight[c, a].sum() > 1e-9:  # the rest cannot be seen in the result
                other = np.outer(outside[:, a], 1 - SHARE)
                result += (one / (one + other)) @ weight[c, a]
    return np.clip(result, 0.0, 1.0)
