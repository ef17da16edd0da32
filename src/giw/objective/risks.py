"""Risks that weights and memberships make of per-sample losses, and of pairs of features."""

from __future__ import annotations

import torch
from torch import Tensor

from giw.objective.in_step_weights import pairwise_squared_distances


def weighted_risk(
    train_loss: Tensor,  # (n,)  loss of each training point
    weight: Tensor,  # (n,)  its estimated p_test(x, y) / p_train(x, y)
) -> Tensor:  # ()
    r"""Importance-weighted risk, the paper's :math:`\widehat J`.

    .. math:: \frac1n \sum_i w_i \ell_i

    Weights carry no gradient. Equals the test risk on average where the training support
    covers the test support, and is smaller wherever it does not (the paper's theorems 1, 2).
    """
    if weight.shape != train_loss.shape:  # a column and a row would broadcast to a matrix
        raise ValueError(
            f"need one weight per training loss, got weight of shape {tuple(weight.shape)} "
            f"for train_loss of shape {tuple(train_loss.shape)}"
        )
    return (weight.detach() * train_loss).mean()


def generalized_risk(
    train_loss: Tensor,  # (n,)  loss of each training point
    weight: Tensor,  # (n,)  its estimated p(x, y | inside) / p_train(x, y)
    val_loss: Tensor,  # (m,)  loss of each point of a validation batch
    inside: Tensor,  # (m,)  its membership in the training support, 0 to 1
    *,
    alpha: float | Tensor,  # mean of that membership over the whole validation set
) -> Tensor:  # ()
    r"""Weighted risk inside the training support plus plain risk outside it.

    .. math:: \alpha \frac1n \sum_i w_i \ell_i + \frac1m \sum_j (1 - s_j) \ell_j

    Weights carry no gradient. They are the ratio :math:`p(x, y \mid s = 1) / p_{\rm tr}(x, y)`,
    which is what validation points inside the training support estimate, and *not*
    :math:`p_{\rm te} / p_{\rm tr}`: that one would count :math:`\alpha` twice. With everything
    inside, :math:`\alpha = 1` and this is ordinary importance weighting; with nothing inside it is
    the validation mean.
    """
    if inside.shape != val_loss.shape:
        raise ValueError(
            f"need one membership per validation loss, got inside of shape {tuple(inside.shape)} "
            f"for val_loss of shape {tuple(val_loss.shape)}"
        )
    outside = 1 - inside.to(val_loss.dtype)
    return alpha * weighted_risk(train_loss, weight) + (outside * val_loss).mean()


def contrast(
    train_z: Tensor,  # (n, d)
    val_z: Tensor,  # (m, d)
    like: Tensor,  # (n, m) bool, same class
    *,
    margin: float,
    weight: Tensor | None = None,  # (n, m), of each pair
) -> tuple[Tensor, Tensor]:  # () each
    """Mean pull over like pairs and mean push over unlike pairs; zero where there are none."""
    square = pairwise_squared_distances(train_z, val_z)  # (n, m)
    # the root has no slope at zero, and rounding none worth following near it
    apart = square > 1e-6
    distance = torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)
    weight = torch.ones_like(square) if weight is None else weight
    pull = _mean_where(like, square / 2, weight)
    return pull, _mean_where(~like, (margin - distance).clamp(min=0).square() / 2, weight)


def _mean_where(chosen: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    weight = torch.where(chosen, weight, 0.0)
    total = weight.sum()
    return (weight * values).sum() / torch.where(total > 0, total, 1.0)
