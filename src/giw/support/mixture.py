r"""Two groups of p-values: uniform inside the training support, piled up near zero outside.

A validation p-value is drawn from

.. math:: f(p) = \pi f_{\rm in}(p) + (1 - \pi) f_{\rm out}(p), \qquad
          f_{\rm in} = {\rm Beta}(1, c),\quad
          f_{\rm out} = (1 - t) {\rm Beta}(a, b) + t\, {\rm Beta}(1, e),\ a \le 1 \le b

where :math:`\pi` is the share of the test distribution inside the support. Perfect calibration has
:math:`c = 1`; a shift within cells tilts the inside group a little, and how much is not known, so
:math:`c` is averaged over instead of believed: that is how calibration bias enters the interval.
How far :math:`\log c` may lie from zero is measured on training data, between the two halves of
each cell (:mod:`giw.support.halves`).
All parameters live on a grid and are averaged with their posterior weight, which works for one
validation point as for thousands: with few points the answer is wide, not wrong.

Such a model is never exactly right, and a plain posterior of thousands of points would be sure of
its own error. The likelihood of m points therefore counts as that of :math:`m / (1 + m / 500)`: a
coarsened posterior [1]_, wide enough for the calibration bias that more points cannot cure.

That :math:`\pi` can be told at all needs points from outside that seldom look ordinary. If a share
:math:`u` of them looks like anyone, p-values show :math:`\pi' = \pi + (1 - \pi) u`, and nothing
tells the two parts of it from each other, whatever the sample size. Validation data cannot show
:math:`u`; training data can, in part: a class or a cluster that is hidden from the rest is outside,
and its p-values say which :math:`f_{\rm out}` and which :math:`u` to expect
(:mod:`giw.support.separation`). Where hidden parts of training look ordinary, so may strangers, and
the interval is wide.

References
----------
.. [1] Miller and Dunson, Robust Bayesian inference via coarsening, JASA 114:1113-1125, 2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

Vector = NDArray[np.float64]

SHARE = np.concatenate([[0.0], (np.arange(60) + 0.5) / 60, [1.0]])  # grid of pi
ALL_INSIDE, ALL_OUTSIDE = 0.25, 0.05  # prior mass of cases (i)/(ii), and of disjoint supports
PILE = np.array([0.2, 0.5, 1.0])  # a: the smaller, the sharper the pile at zero
FALL = np.array([1.0, 1.4, 2.0, 5.0, 15.0, 50.0, 150.0, 500.0])  # b: how soon they die out
# b from here on, and t up to here, are expected where nothing is known of the features
SEPARATED, FAMILIAR = 2.0, 0.2
# t and its fall e: outside points that look half familiar, and how soon these die out
TAIL = ((0.0, 15.0), (0.08, 15.0), (0.2, 15.0), (0.25, 4.0), (0.5, 4.0))
TILT_STEPS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # log c in standard deviations
TRUSTED = 500  # points beyond which the error of the model itself outweighs sampling error
BLIND = np.linspace(0.0, 1.0, 17)  # grid of u: outside points that look like anyone
LEAST_WEIGHT = 1e-6  # shapes below it are left out: they cannot be seen in the result
GROUPS = ((0.02, 0.005), (0.1, 0.02))  # above the first, bins at least as wide as the second


def usual_shapes() -> Vector:
    """Weight of every shape of the outside group where nothing is known of the features, (A,)."""
    _, fall, tail = _shape_grid()
    usual = (fall >= SEPARATED) & (tail <= FAMILIAR)
    return np.asarray(usual / usual.sum())


def _shape_grid() -> tuple[Vector, Vector, Vector]:
    """a, b and t of every shape, in the order of :func:`_outside`, (A,) each."""
    tail, fall, pile = np.meshgrid([t for t, _ in TAIL], FALL, PILE, indexing="ij")
    return pile.ravel(), fall.ravel(), tail.ravel()


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of the two groups of p-values, as far as training data can tell.

    Attributes
    ----------
    tilt : float
        Prior standard deviation of log c; above zero, inside points may look a little stranger, or
        more ordinary, than the rows that calibrate them.
    shapes : array of shape (A,)
        Prior weight of every shape of the outside group, sum one.
    blind : float
        Prior probability that a part of the outside, of any size, looks like the inside.
    hidden_auroc : float or None
        How well parts of training, hidden from the rest, were told from it; None if not tried.
    """

    tilt: float = 0.15
    shapes: Vector = field(default_factory=usual_shapes)
    blind: float = 0.0
    hidden_auroc: float | None = None


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
    assumptions: Assumptions | None = None,
    confidence: float = 0.95,
) -> Mixture:
    """Posterior of the share inside and of each point's membership, by averaging over a grid."""
    known = Assumptions() if assumptions is None else assumptions
    used = np.flatnonzero(known.shapes > LEAST_WEIGHT)
    seen = ~unseen
    bins, back, times = np.unique(
        _grouped(rank[seen], count[seen]), axis=1, return_inverse=True, return_counts=True
    )
    inside = _inside(bins[0], bins[1], np.exp(known.tilt * TILT_STEPS))  # (u, C)
    outside = _outside(bins[0], bins[1])[:, used]  # (u, A)
    log_weight = _log_likelihood(inside, outside, times.astype(np.float64))  # (C, A, S)
    joint = _share_and_seen(known.blind)  # (S, S'), of the share and of what p-values show of it
    log_weight += _log_prior(known.shapes[used], joint.sum(axis=0))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()

    tail = (1 - confidence) / 2
    given_seen = joint / joint.sum(axis=0)  # of the share, given what p-values show
    of_share = given_seen @ weight.sum(axis=(0, 1))
    low, middle, high = _share_quantiles(
        of_share, int(unseen.sum()), len(rank), np.array([tail, 0.5, 1 - tail])
    )
    posterior = np.zeros(len(rank))
    really = (SHARE @ given_seen) / np.maximum(SHARE, SHARE[1] / 2)  # of those that look inside
    posterior[seen] = _membership(inside, outside, weight, really)[back.reshape(-1)]
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


def split_with_doubt(
    rank: NDArray[np.int64],  # (m,)
    count: NDArray[np.int64],  # (m,)
    unseen: NDArray[np.bool_],  # (m,)
    *,
    assumptions: Assumptions,
) -> Mixture:
    """Share and posteriors as :func:`split_mixture` has them, with the interval of assumptions.

    Estimate and posterior take strangers to look strange, as real ones mostly do. That hidden
    parts of training look less so is a reason to be unsure, not to call more points outside.
    """
    usual = split_mixture(rank, count, unseen)
    low, high = split_mixture(rank, count, unseen, assumptions=assumptions).interval
    return replace(usual, interval=(min(low, usual.share), max(high, usual.share)))


def shape_log_likelihood(rank: NDArray[np.int64], count: NDArray[np.int64]) -> Vector:
    """Log likelihood of every shape of the outside group for p-values known to be of it, (A,)."""
    bins, times = np.unique(_grouped(rank, count), axis=1, return_counts=True)
    return np.asarray(times @ np.log(_outside(bins[0], bins[1])))


def _inside(lower: Vector, upper: Vector, tilt: Vector) -> Vector:
    """Mass of the inside group in the bin of each p-value, relative to the bin's width, (u, C)."""
    lower, upper = lower[:, None], upper[:, None]
    return np.asarray(((1 - lower) ** tilt - (1 - upper) ** tilt) / (upper - lower))


def _outside(lower: Vector, upper: Vector) -> Vector:
    """The same of every shape of the outside group, (u, A)."""
    width = (upper - lower)[:, None]
    # differences of upper tails keep their digits where lower tails are all one
    a, b = (grid.ravel() for grid in np.meshgrid(PILE, FALL))
    pile = (beta.sf(lower[:, None], a, b) - beta.sf(upper[:, None], a, b)) / width  # (u, ab)
    shapes = []
    for share, fall in TAIL:
        tail = ((1 - lower) ** fall - (1 - upper) ** fall)[:, None] / width  # (u, 1)
        shapes.append((1 - share) * pile + share * tail)
    return np.maximum(np.concatenate(shapes, axis=1), 1e-12)  # nothing is impossible


def _share_and_seen(blind: float) -> Vector:
    r"""Prior of the share :math:`\pi` and of :math:`\pi' = \pi + (1 - \pi) u`, jointly, (S, S').

    With probability ``blind``, u is anything from 0 to 1; otherwise it is zero.
    """
    share = np.full(len(SHARE), (1 - ALL_INSIDE - ALL_OUTSIDE) / (len(SHARE) - 2))
    share[[0, -1]] = ALL_OUTSIDE, ALL_INSIDE
    joint = np.diag((1 - blind) * share)
    for u in BLIND:
        shown = SHARE + (1 - SHARE) * u
        above = np.clip(np.searchsorted(SHARE, shown), 1, len(SHARE) - 1)
        part = np.clip((shown - SHARE[above - 1]) / (SHARE[above] - SHARE[above - 1]), 0, 1)
        rows = np.arange(len(SHARE))
        joint[rows, above] += blind * share * part / len(BLIND)
        joint[rows, above - 1] += blind * share * (1 - part) / len(BLIND)
    return joint


def _log_prior(shapes: Vector, share: Vector) -> Vector:
    """Log prior weight of tilt, outside shape and share, (C, A, S)."""
    tilt = -0.5 * TILT_STEPS**2
    return np.asarray(tilt[:, None, None] + np.log(shapes)[:, None] + np.log(share))


def _log_likelihood(inside: Vector, outside: Vector, times: Vector) -> Vector:
    """Coarsened log likelihood on the grid of tilt, outside shape and share, (C, A, S)."""
    power = 1 / (1 + times.sum() / TRUSTED)
    result = np.empty((inside.shape[1], outside.shape[1], len(SHARE)))
    other = outside.T[:, :, None] * (1 - SHARE)  # (A, u, S)
    for c in range(inside.shape[1]):
        result[c] = power * (times @ np.log(np.outer(inside[:, c], SHARE) + other))
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


def _membership(inside: Vector, outside: Vector, weight: Vector, really: Vector) -> Vector:
    """Posterior probability of being inside for each distinct p-value, (u,)."""
    result = np.zeros(len(inside))
    for c in range(inside.shape[1]):
        one = np.outer(inside[:, c], SHARE)  # (u, S)
        for a in range(outside.shape[1]):
            if weight[c, a].sum() > 1e-9:  # the rest cannot be seen in the result
                other = np.outer(outside[:, a], 1 - SHARE)
                result += (one / (one + other)) @ (weight[c, a] * really)
    return np.clip(result, 0.0, 1.0)
