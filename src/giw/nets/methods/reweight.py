r"""Reweight: learning to reweight examples (Ren, Zeng, Yang and Urtasun, ICML 2018).

.. math:: \sum_i w_i \ell_i , \qquad w_i \propto \max(u_i, 0), \quad
          u_i = -\left. \frac{\partial}{\partial \varepsilon_i}
          L_{\rm val}\Big(\theta - \rho \nabla \sum_k \varepsilon_k \ell_k(\theta)\Big)
          \right|_{\varepsilon = 0} = \rho\, \nabla \ell_i^\top \nabla L_{\rm val}

A point counts as far as a step on it would lower the validation loss, and not at all where it
would raise it. The weights of a batch sum to one, or are all zero where no point helps.

Hyper-parameters: none. The size :math:`\rho` of the virtual step cancels when the weights are
normalised. Validation points steer the weights and are not trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from giw.nets.methods.meta_gradient import (
    goes_forward_mixed,
    losses_of,
    mean_gradient,
    moved_params,
    slope_along,
)
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Logs, Net, Params, as_input, sample_losses
from giw.objective import effective_share


@dataclass(frozen=True)
class Reweight(PlainMethod):
    """Train on the points whose gradients agree with that of the validation data."""

    name: ClassVar[str] = "reweight"
    pretrains: ClassVar[bool] = True

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Training loss weighted by agreement with the validation gradient."""
        weight = agreement_weights(net, params, batch)  # (n,)
        losses = sample_losses(net(params, as_input(batch.x)), batch.y)  # (n,)
        return (weight * losses).sum(), {"effective_share": effective_share(weight)}


def agreement_weights(net: Net, params: Params, batch: Batch) -> Tensor:
    """Weights of a training batch, (n,): not negative, sum one or all zero, no gradient."""
    moved = moved_params(params)
    downhill = mean_gradient(losses_of(net, params, batch.x_val, batch.y_val), moved)
    train = losses_of(net, params, batch.x, batch.y)
    gain = slope_along(train, moved, downhill, mixed=goes_forward_mixed(net)).clamp(min=0)
    total = gain.sum()
    return gain / torch.where(total > 0, total, 1.0)
