r"""Weights that are estimated once: how far to trust them, and what each point counts for.

The generalized risk of a model, with inside validation points used as well, is

.. math:: \alpha \Big[ (1 - \beta) \frac1n \sum_i w_i \ell_i
          + \beta \frac{1}{\sum_j s_j} \sum_j s_j \ell_j \Big]
          + \frac1m \sum_j (1 - s_j) \ell_j

Both means in the bracket estimate the risk inside the training support, so every share
:math:`\beta` of the validation points is right on average. :math:`\beta = 0` is GIW as published;
:math:`\beta = m_{\rm in} / (m_{\rm in} + n_{\rm eff})` lets every effective point count the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from giw.weights import effective_sample_size

Vector = NDArray[np.float64]
GRID = np.linspace(0.0, 1.0, 41)
LARGEST_SHARE = 0.8  # of validation points inside, when training data are no help at all


def shrunk(weight: Vector, trust: float) -> Vector:
    r"""Weights drawn towards uniform: :math:`1 - \rho + \rho w`, mean one as before."""
    return 1 - trust + trust * weight


def likelihood_trust(val_weight: Vector, inside: Vector) -> float:
    r"""How much of a ratio to believe, by validation points that took no part in fitting it.

    .. math:: \hat\rho = \arg\max_\rho \sum_j s_j \log(1 - \rho + \rho\, w(z_j))

    the likelihood of left-out points under the training density weighted by the shrunk ratio.
    A ratio that learnt noise loses likelihood and gets zero.

    Parameters
    ----------
    val_weight : array of shape (m,)
        Cross-fitted ratio at validation points, mean one over training points.
    inside : array of shape (m,)
        Membership of each.
    """
    believed = np.maximum(1 + GRID[:, None] * (val_weight - 1), 1e-9)  # (grid, m)
    likelihood = np.log(believed) @ inside
    return float(GRID[np.argmax(likelihood)])


def effective_trust(weight: Vector, least: float) -> float:
    """The largest trust that leaves an effective sample size of at least ``least``.

    With weights of mean one and variance v, shrinking by rho leaves n / (1 + rho² v).
    """
    variance = float(np.var(weight))
    allowed = max(len(weight) / min(least, len(weight)) - 1, 0.0)
    return 1.0 if variance <= allowed else float(np.sqrt(allowed / variance))


def mixture_share(first_loss: Vector, second_loss: Vector) -> float:
    r"""Share of a second model in the mixture of two that makes left-out points most likely.

    .. math:: \hat\lambda = \arg\max_\lambda
              \sum_j \log\big((1 - \lambda) e^{-\ell_j} + \lambda e^{-\ell'_j}\big)
    """
    first, second = np.exp(-first_loss), np.exp(-second_loss)
    mixed = np.log(first + GRID[:, None] * (second - first))  # (grid, m)
    return float(GRID[np.argmax(mixed.sum(axis=1))])


def validation_share(weight: Vector, inside: Vector, val_trust: float) -> float:
    """The share β of validation points inside the support.

    By information where training data help, and up to 0.8 as ``val_trust`` goes to one.
    """
    count = float(inside.sum())
    if count == 0:
        return 0.0
    information = count / (count + effective_sample_size(weight))
    return information + max(LARGEST_SHARE - information, 0.0) * val_trust


def sample_weights(weight: Vector, inside: Vector, share: float) -> tuple[Vector, Vector]:
    """What each training and each validation point counts for, (n,) and (m,).

    Mean one over all points that count: penalties and leaf sizes of the estimator that takes
    them are made for that scale.
    """
    n, m = len(weight), len(inside)
    alpha = float(inside.mean())
    train = alpha * (1 - share) * weight / n
    val = (1 - inside + share * inside) / m
    positive = int((train > 0).sum() + (val > 0).sum())
    scale = positive / float(train.sum() + val.sum())
    return train * scale, val * scale
