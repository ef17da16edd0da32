"""The risk of generalized importance weighting."""

from __future__ import annotations

from torch import Tensor

from giw.objective.weighted import weighted_risk


def generalized_risk(
    train_loss: Tensor,  # (n,)  loss of each training point
    weight: Tensor,  # (n,)  its estimated p(x, y | inside) / p_train(x, y)
    val_loss: Tensor,  # (m,)  loss of each validation point
    inside: Tensor,  # (m,)  its membership in the training support, 0 to 1
    *,
    alpha: float | Tensor,  # mean membership over the whole validation set
) -> Tensor:  # ()
    r"""Weighted risk inside the training support plus plain risk outside it.

    .. math:: \alpha \frac1n \sum_i w_i \ell_i + \frac1m \sum_j (1 - s_j) \ell_j

    Weights carry no gradient. With everything inside, :math:`\alpha = 1` and this is
    ordinary importance weighting; with nothing inside it is the validation mean.

    Parameters
    ----------
    train_loss, weight : Tensor of shape (n,)
        Per-sample losses and the ratio :math:`p(x, y \mid s = 1) / p_{\rm tr}(x, y)`, which is
        what validation points inside the training support estimate. It is *not*
        :math:`p_{\rm te} / p_{\rm tr}`: that one would count :math:`\alpha` twice.
    val_loss, inside : Tensor of shape (m,)
        Per-sample losses of a validation batch and the membership :math:`s_j` of each point.
    alpha : float
        Mean of the very membership that ``inside`` is a batch of, over *all* validation points.
    """
    if inside.shape != val_loss.shape:
        raise ValueError(
            f"need one membership per validation loss, got inside of shape {tuple(inside.shape)} "
            f"for val_loss of shape {tuple(val_loss.shape)}"
        )
    outside = 1 - inside.to(val_loss.dtype)
    return alpha * weighted_risk(train_loss, weight) + (outside * val_loss).mean()
