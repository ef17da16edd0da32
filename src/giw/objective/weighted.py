"""Ordinary importance weighting."""

from __future__ import annotations

from torch import Tensor


def weighted_risk(
    train_loss: Tensor,  # (n,)  loss of each training point
    weight: Tensor,  # (n,)  its estimated p_test(x, y) / p_train(x, y)
) -> Tensor:  # ()
    r"""Importance-weighted risk, the paper's :math:`\widehat J`.

    .. math:: \frac1n \sum_i w_i \ell_i

    Weights carry no gradient. Equals the test risk on average where the training support
    covers the test support, and is smaller wherever it does not (the paper's theorems 1, 2).
    """
    check_one_weight_per_loss(train_loss, weight)
    return (weight.detach() * train_loss).mean()


def check_one_weight_per_loss(train_loss: Tensor, weight: Tensor) -> None:
    """A column of weights against a row of losses would broadcast to a matrix, silently."""
    if weight.shape != train_loss.shape:
        raise ValueError(
            f"need one weight per training loss, got weight of shape {tuple(weight.shape)} "
            f"for train_loss of shape {tuple(train_loss.shape)}"
        )
