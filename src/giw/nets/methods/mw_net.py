r"""MW-Net: Meta-Weight-Net (Shu et al., NeurIPS 2019).

.. math:: \frac1n \sum_i V_\phi(\ell_i)\, \ell_i , \qquad
          \phi \text{ descends } L_{\rm val}\Big(\theta - \rho \nabla_\theta
          \frac1n \sum_i V_\phi(\ell_i)\, \ell_i(\theta)\Big)

A small net :math:`V_\phi` learns which weight a loss value deserves: the weight with which the
next step helps the validation data most. Its gradient is exact,
:math:`-\frac{\rho}{n} \sum_i \nabla_\phi V_\phi(\ell_i)\, \nabla \ell_i(\theta)^\top
\nabla L_{\rm val}(\hat\theta)`, with both inner gradients at hand before it is taken.

Hyper-parameters, from the authors' released code: one hidden layer of 100, sigmoid output,
Adam with learning rate 1e-3 and weight decay 1e-4 for :math:`\phi`, virtual step
:math:`\rho` = 0.1 (their first learning rate; Adam hardly feels it as a scale of the
gradient, so it mostly says how far ahead the validation loss is looked at).

One departure: net and weighting net move at once, so a step uses the weights of
:math:`\phi` before its own update, where the authors use those after it.

Weights are not normalised, as in the formula above. Where few points deserve weight, their mean
goes towards zero, and with it the loss; weight decay stays as it is and takes over. With
``mean_one`` they are divided by their mean in the step that is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.func import vjp

from giw.checks import check_positive
from giw.nets.methods.meta_gradient import (
    goes_forward_mixed,
    losses_of,
    mean_gradient,
    moved_params,
    slope_along,
)
from giw.nets.methods.perceptron import perceptron, perceptron_params
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Logs, Net, OwnParams, Params, as_input, sample_losses
from giw.objective import effective_share, weighted_risk


@dataclass(frozen=True)
class MWNet(PlainMethod):
    """Weights by a small net from loss to weight, trained on the validation loss one step ahead.

    Parameters
    ----------
    virtual_step : float, default=0.1
        Size of the plain gradient step after which the validation loss is looked at.
    width : int, default=100
        Hidden units of the weighting net.
    learning_rate, weight_decay : float
        How Adam moves the weighting net.
    mean_one : bool, default=False
        Scale the weights of a batch to mean one.
    """

    name: ClassVar[str] = "mw_net"
    pretrains: ClassVar[bool] = True
    virtual_step: float = 0.1
    width: int = 100
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    mean_one: bool = False

    def __post_init__(self) -> None:
        """Refuse steps that lead nowhere."""
        check_positive(self.virtual_step, "virtual_step")
        check_positive(self.width, "width")
        check_positive(self.learning_rate, "learning_rate")

    def own_params(self, net: Net, params: Params, x: Tensor, random_state: int) -> OwnParams:
        """The weighting net."""
        weighting = perceptron_params(1, self.width, like=x, random_state=random_state)
        return OwnParams(weighting, self.learning_rate, self.weight_decay)

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Weighted training loss for the net; for the weighting net, the validation loss ahead."""
        losses = sample_losses(net(params, as_input(batch.x)), batch.y)  # (n,)
        weight = loss_weights(params, losses.detach())  # (n,), moved by the weighting net only
        used = weight / weight.mean() if self.mean_one else weight  # a sigmoid is never zero
        risk = weighted_risk(losses, used)
        ahead = -self.virtual_step * (weight * self._gain(net, params, batch)).mean()
        # only the gradient of the second term is meant: its value would blur the loss curve
        logs = {"effective_share": effective_share(weight), "mean_weight": weight.mean()}
        return risk + ahead - ahead.detach(), logs

    def _gain(self, net: Net, params: Params, batch: Batch) -> Tensor:
        """Agreement of each sample's gradient with that of validation one step ahead, (n,)."""
        moved = moved_params(params)
        train = losses_of(net, params, batch.x, batch.y)
        losses, pull, *_ = vjp(train, moved)
        weight = loss_weights(params, losses).detach()
        (step,) = pull(weight / len(losses))
        ahead = {name: p - self.virtual_step * step[name] for name, p in moved.items()}
        downhill = mean_gradient(losses_of(net, params, batch.x_val, batch.y_val), ahead)
        return slope_along(train, moved, downhill, mixed=goes_forward_mixed(net))


def loss_weights(params: Params, losses: Tensor) -> Tensor:
    """What the weighting net makes of losses, (n,), between 0 and 1."""
    return perceptron(params, losses[:, None]).sigmoid()
