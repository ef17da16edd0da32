"""Ratios by least squares: uLSIF, the relative ratio RuLSIF, and LSIF without negative terms."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from giw.weights.ratio import (
    GaussianBasis,
    LinearRatio,
    Ratio,
    held_out_values,
    with_constant,
)
from giw.weights.samples import Samples, blocks

Array = NDArray[np.float64]


def normal_equations(
    basis: GaussianBasis, samples: Samples, eta: float
) -> tuple[Array, Array]:  # (b + 1, b + 1), (b + 1,)
    r"""Second moments and target mean of the features, the constant first.

    .. math:: H = (1-\eta) E_{\rm train}[\phi\phi^\top] + \eta E_{\rm val}[\phi\phi^\top], \quad
              h = E_{\rm val}[\phi]
    """
    gram, target = np.zeros((basis.size + 1, basis.size + 1)), np.zeros(basis.size + 1)
    for part in blocks(samples.train):
        phi = with_constant(basis(part))
        gram += (1 - eta) / len(samples.train) * phi.T @ phi
    for part, share in zip(blocks(samples.val), blocks(samples.share), strict=True):
        phi = with_constant(basis(part))
        target += share @ phi
        gram += eta * (phi * share[:, None]).T @ phi
    return gram, target


def leave_one_out(
    phi_train: Array,  # (n, b)
    phi_val: Array,  # (m, b)
    share: Array,  # (m,), sums to one
    *,
    ridges: Array,  # (r,)
    eta: float = 0.0,
) -> tuple[Array, Array]:  # (r, n), (r, m)
    r"""What the model says of each point when that point is left out, in closed form.

    With :math:`\tilde\phi` the features less their mean under the denominator and C their
    covariance there, the model is :math:`1 + \tilde\phi^\top (C + \lambda I)^{-1}
    E_{\rm val}[\tilde\phi]`, for all ridges at once along the eigenvectors of C. One point changes
    C by a rank-one matrix and, if it is a validation point, the mean, so that both solutions follow
    from :math:`1 + \tilde\phi^\top (C + \lambda I)^{-1} \tilde\phi` (Sherman-Morrison). Left-out
    points are taken out without renormalising the rest.
    """
    n = len(phi_train)
    center = (1 - eta) * phi_train.mean(0) + eta * share @ phi_val
    train, val = phi_train - center, phi_val - center
    value, vector = np.linalg.eigh(
        (1 - eta) / n * train.T @ train + eta * (val * share[:, None]).T @ val
    )
    train, val = train @ vector, val @ vector
    inverse = 1 / (value.clip(0) + ridges[:, None])  # (r, b)
    theta = inverse * (share @ val)  # (r, b)
    own, own_val = (1 + inverse @ np.square(phi).T for phi in (train, val))  # (r, n), (r, m)
    out_train = (1 + theta @ train.T) / (1 - (1 - eta) / n * own).clip(1e-6)
    shifted = (1 + theta @ val.T - share * own_val) / (1 - share)  # the mean without the point
    out_val = shifted / (1 - eta * share * own_val).clip(1e-6)
    return out_train.clip(0), out_val.clip(0)


def pearson_score(
    at_train: Array,  # (..., n)
    at_val: Array,  # (..., m)
    share: Array,  # (m,)
    *,
    eta: float,
) -> Array:  # (...)
    r"""Least-squares loss of a relative ratio r, less a constant; smaller is better.

    .. math:: \tfrac{1-\eta}{2} E_{\rm train}[r^2] + \tfrac{\eta}{2} E_{\rm val}[r^2]
              - E_{\rm val}[r]

    A plain ratio w is scored by its bounded form :math:`r = w / (\tfrac12 w + \tfrac12)`. Its own
    score averages :math:`w^2`, which a handful of points in the tail decide, and then picks wiggly
    models by accident; the relative ratio lies between 0 and 2.
    """
    if eta == 0:
        at_train, at_val = (2 * w / (w + 1) for w in (at_train, at_val))
        eta = 0.5
    on_train = 0.5 * (1 - eta) * np.square(at_train).mean(-1)
    return on_train + ((0.5 * eta * np.square(at_val) - at_val) * share).sum(-1)


class ULSIF(Ratio):
    r"""Density ratio by unconstrained least squares (uLSIF [1]_).

    Models :math:`w(x) = \theta_0 + \sum_b \theta_b \exp(-\lVert x - c_b \rVert^2 / 2\sigma^2)`
    around validation points :math:`c_b` and solves

    .. math:: \min_\theta\ \tfrac12 E_{\rm train}[w^2] - E_{\rm val}[w]
              + \tfrac{\lambda}{2} \sum_{b \ge 1} \theta_b^2

    in closed form; negative values become zero, then the mean becomes one. The constant is not
    penalised, so that a strong penalty leads to equal weights and two equal samples give
    weights of one.

    Parameters
    ----------
    bandwidth : "auto", "median" or float, default="auto"
        Kernel width :math:`\sigma`; in standard deviations if ``standardize``, else in the units of
        the features. "auto" chooses it, with the ridge, by leave-one-out in closed form: a model
        is scored by the bounded ratio :math:`w / (\tfrac12 w + \tfrac12)`, because the plain
        score depends on a handful of tail points. With fewer than three validation points nothing
        can be left out, and the widest kernel and strongest ridge are taken.
    ridge : "auto" or float, default="auto"
        Penalty :math:`\lambda`; a larger one pulls all weights towards one.
    n_centers : int, default=100
        Most basis functions.
    standardize : bool, default=True
        Give every feature the same unit first; without it the feature with the largest
        numbers decides.

    References
    ----------
    .. [1] Kanamori, Hido and Sugiyama, JMLR 10:1391-1445, 2009.
    """

    takes_chunks: ClassVar[bool] = True
    ridges: ClassVar[tuple[float, ...]] = tuple(
        10.0**power for power in (2, 1, 0.5, 0, -0.5, -1, -1.5, -2, -2.5, -3, -4)
    )
    eta: float = 0.0

    def _scores(self, basis: GaussianBasis, few: Samples, ridges: list[float]) -> Array:
        phis, eta = (basis(few.train), basis(few.val)), float(self.eta)
        train, val = leave_one_out(*phis, few.share, ridges=np.array(ridges), eta=eta)
        return pearson_score(train, val, few.share, eta=eta)

    def _fit_chosen(self, basis: GaussianBasis, samples: Samples) -> LinearRatio:
        gram, target = normal_equations(basis, samples, float(self.eta))
        gram += np.diag(np.append(0.0, np.full(basis.size, self.ridge_)))
        theta: NDArray[Any] = np.linalg.solve(gram, target)
        return LinearRatio(basis, theta)


class RULSIF(ULSIF):
    r"""Relative density ratio by least squares (RuLSIF [1]_).

    Estimates :math:`r_\eta = p_{\rm val} / (\eta\, p_{\rm val} + (1-\eta)\, p_{\rm train})`, which
    never exceeds :math:`1/\eta`, with the model of :class:`giw.ULSIF` and

    .. math:: \min_\theta\ \tfrac{1-\eta}2 E_{\rm train}[r^2] + \tfrac{\eta}2 E_{\rm val}[r^2]
              - E_{\rm val}[r] + \tfrac{\lambda}{2} \sum_{b \ge 1} \theta_b^2 .

    The mean of :math:`r_\eta` is one under the mixture, and under the training data it is below
    one unless the two distributions agree. Dividing by that mean, as is done by default, keeps the
    proportions between weights, makes them comparable with other estimators' (and fit for
    learners whose regularisation feels the scale), and lets them exceed :math:`1/\eta`. With
    ``raw=True`` weights are the relative ratio itself.

    Parameters
    ----------
    eta : float, default=0.1
        Share of validation data in the denominator, 0 to 1. Zero is the plain ratio of
        :class:`giw.ULSIF`; more flattens the weights; at one they are all equal.
    bandwidth, ridge, n_centers, standardize
        As in :class:`giw.ULSIF`.
    raw : bool, default=False
        Leave the relative ratio as it is instead of rescaling it to mean one.

    References
    ----------
    .. [1] Yamada, Suzuki, Kanamori, Hachiya and Sugiyama, Neural Computation 25:1324-1370, 2013.
    """

    def __init__(
        self,
        eta: float = 0.1,
        bandwidth: str | float = "auto",
        ridge: str | float = "auto",
        n_centers: int = 100,
        raw: bool = False,
        standardize: bool = True,
    ) -> None:
        super().__init__(bandwidth, ridge, n_centers, standardize)
        self.eta = eta
        self.raw = raw

    def _scale(self, raw: Array) -> float:
        return 1.0 if self.raw else super()._scale(raw)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 <= self.eta <= 1:
            raise ValueError(f"eta must lie between 0 and 1, got {self.eta}")


def nonnegative_coefficients(gram: Array, target: Array, *, ridge: float) -> Array:  # (b + 1,)
    r"""Minimise :math:`\tfrac12\theta^\top H\theta - h^\top\theta` plus the penalty, for θ ≥ 0."""
    penalty = np.append(0.0, np.full(len(target) - 1, ridge))  # none on the constant
    # the root makes it a least-squares problem; rounding must not leave H indefinite
    root = np.linalg.cholesky(gram + np.diag(penalty + 1e-12))
    theta: Array = nnls(root.T, np.linalg.solve(root, target - penalty))[0]
    return theta


class LSIF(Ratio):
    r"""Density ratio by least squares with non-negative coefficients (LSIF [1]_).

    Models :math:`w(x) = \theta_0 + \sum_b \theta_b \exp(-\lVert x - c_b \rVert^2 / 2\sigma^2)`
    around validation points :math:`c_b` and solves

    .. math:: \min_{\theta \ge 0}\ \tfrac12 E_{\rm train}[w^2] - E_{\rm val}[w]
              + \lambda \sum_{b \ge 1} (\theta_b + \tfrac12 \theta_b^2) .

    No ratio is ever negative, and many coefficients are exactly zero. The square beside the
    original's linear penalty bounds the coefficient of a basis function that stands where there
    are next to no training points; the free constant makes equal weights the limit of a
    strong penalty.

    Parameters
    ----------
    bandwidth, ridge, n_centers, standardize
        As in :class:`giw.ULSIF`, but that "auto" chooses by five-fold cross-validation of the
        same bounded ratio.

    References
    ----------
    .. [1] Kanamori, Hido and Sugiyama, JMLR 10:1391-1445, 2009.
    """

    widths: ClassVar[tuple[float, ...]] = (0.25, 0.5, 1.0, 2.0)
    ridges: ClassVar[tuple[float, ...]] = (10.0, *(10.0 ** (-k / 2) for k in range(7)))
    selection_rows: ClassVar[int] = 1_000  # a fit for every fold, width and ridge

    def _scores(self, basis: GaussianBasis, few: Samples, ridges: list[float]) -> Array:
        def fit(phi: Array, phi_val: Array, share: Array, *, ridge: float, start: Any) -> Array:
            return nonnegative_coefficients(phi.T @ phi / len(phi), share @ phi_val, ridge=ridge)

        at_train, at_val = held_out_values(basis, few, ridges, fit, most_folds=5)
        return pearson_score(at_train, at_val, few.share, eta=0.0)

    def _fit_chosen(self, basis: GaussianBasis, samples: Samples) -> LinearRatio:
        gram, target = normal_equations(basis, samples, 0.0)
        return LinearRatio(basis, nonnegative_coefficients(gram, target, ridge=self.ridge_))


ulsif, rulsif, lsif = ULSIF.weights, RULSIF.weights, LSIF.weights
