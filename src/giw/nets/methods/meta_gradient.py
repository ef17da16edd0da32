r"""Weights learnt from the validation loss one step ahead: Reweight [1]_ and MW-Net [2]_.

Meta-learning asks how the validation loss would change if a training point counted a little
more in the next step of plain gradient descent. With :math:`\theta(\varepsilon) = \theta - \rho
\sum_i \varepsilon_i \nabla \ell_i(\theta)` the answer is an inner product,

.. math:: \partial L_{\rm val}(\theta(\varepsilon)) / \partial \varepsilon_i =
          -\rho\, \nabla \ell_i(\theta)^\top \nabla L_{\rm val}(\theta(\varepsilon)) ,

and all n of them are one directional derivative of the training losses along the validation
gradient: a forward-mode product, exact, without the graph of a gradient.

*Reweight* descends :math:`\sum_i w_i \ell_i` with :math:`w_i \propto \max(u_i, 0)`,
:math:`u_i = \nabla \ell_i^\top \nabla L_{\rm val}`: a point counts as far as a step on it would
lower the validation loss, and not at all where it would raise it. The weights of a batch sum to
one, or are all zero where no point helps. No constants: :math:`\rho` cancels.

*MW-Net* descends :math:`\frac1n \sum_i V_\phi(\ell_i)\, \ell_i`, where a small net
:math:`V_\phi` learns which weight a loss value deserves: the one with which the next step helps
the validation data most. Its gradient is exact, :math:`-\frac{\rho}{n} \sum_i \nabla_\phi
V_\phi(\ell_i)\, \nabla \ell_i(\theta)^\top \nabla L_{\rm val}(\hat\theta)`, with both inner
gradients at hand before it is taken. Constants are those of the authors' code. One departure: net
and weighting net move at once, so a step uses the weights of :math:`\phi` before its own update,
where the authors use those after it. Weights of a batch are divided by their mean in both steps, as
in their later script; without that, their mean goes towards zero where few points deserve weight.

Validation points steer the weights and are not trained on.

References
----------
.. [1] Ren, Zeng, Yang and Urtasun, Learning to reweight examples for robust deep learning,
       ICML 2018.
.. [2] Shu et al., Meta-Weight-Net: learning an explicit mapping for sample weighting, NeurIPS 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.func import grad, jvp, vjp

from giw.checks import check_positive
from giw.nets.methods.plain import Perceptron, PlainMethod
from giw.nets.training import (
    Batch,
    Evidence,
    Net,
    Params,
    StepLoss,
    as_input,
    sample_losses,
)
from giw.objective import effective_share, weighted_risk
from giw.support import SupportSplit

LossesOf = Callable[[Params], Tensor]


@dataclass(frozen=True)
class Reweight(PlainMethod):
    """Train on the points whose gradients agree with that of the validation data."""

    name: ClassVar[str] = "reweight"
    looks_ahead: ClassVar[bool] = True

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Training loss weighted by agreement with the validation gradient."""
        weight = agreement_weights(net, params, batch)  # (n,)
        losses = sample_losses(net(params, as_input(batch.x)), batch.y)  # (n,)
        return (weight * losses).sum(), state, {"effective_share": effective_share(weight)}


def agreement_weights(net: Net, params: Params, batch: Batch) -> Tensor:
    """Weights of a training batch, (n,): not negative, sum one or all zero, no gradient."""
    moved = moved_params(params)
    downhill = mean_gradient(losses_of(net, params, batch.x_val, batch.y_val), moved)
    train = losses_of(net, params, batch.x, batch.y)
    gain = slope_along(train, moved, downhill).clamp(min=0)
    total = gain.sum()
    return gain / torch.where(total > 0, total, 1.0)


@dataclass(frozen=True)
class MWNet(PlainMethod):
    """Weights by a small net from loss to weight, trained on the validation loss one step ahead.

    Parameters
    ----------
    virtual_step : float, default=0.1
        Size of the plain gradient step after which the validation loss is looked at.
    learning_rate, weight_decay : float
        How Adam moves the weighting net.
    normalise : bool, default=True
        Scale the weights of a batch to mean one.
    """

    name: ClassVar[str] = "mw_net"
    looks_ahead: ClassVar[bool] = True
    virtual_step: float = 0.1
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    normalise: bool = True

    def __post_init__(self) -> None:
        """Refuse steps that lead nowhere."""
        check_positive(self.virtual_step, "virtual_step")
        check_positive(self.learning_rate, "learning_rate")

    def state(self, evidence: Evidence, split: SupportSplit | None) -> Perceptron:
        """The weighting net, from loss to logit of a weight."""
        like = as_input(evidence.x_train[:1])
        return Perceptron.drawn(1, like=like, random_state=evidence.random_state)

    def loss(self, net: Net, params: Params, state: Perceptron, batch: Batch) -> StepLoss:
        """Weighted training loss for the net; for the weighting net, the validation loss ahead."""
        losses = sample_losses(net(params, as_input(batch.x)), batch.y)  # (n,)
        raw = loss_weights(state, losses.detach())  # (n,), moved by the weighting net only
        weight = self._scaled(raw)
        risk = weighted_risk(losses, weight)
        ahead = -self.virtual_step * (weight * self._gain(net, params, state, batch)).mean()
        # only the gradient of the second term is meant: its value would blur the loss curve
        logs = {"effective_share": effective_share(weight), "mean_weight": raw.mean()}
        return risk + ahead - ahead.detach(), state, logs

    def _gain(self, net: Net, params: Params, state: Perceptron, batch: Batch) -> Tensor:
        """Agreement of each sample's gradient with that of validation one step ahead, (n,)."""
        moved = moved_params(params)
        train = losses_of(net, params, batch.x, batch.y)
        losses, pull, *_ = vjp(train, moved)
        weight = self._scaled(loss_weights(state, losses)).detach()
        (step,) = pull(weight / len(losses))
        ahead = {name: p - self.virtual_step * step[name] for name, p in moved.items()}
        downhill = mean_gradient(losses_of(net, params, batch.x_val, batch.y_val), ahead)
        return slope_along(train, moved, downhill)

    def _scaled(self, weight: Tensor) -> Tensor:
        return weight / weight.mean() if self.normalise else weight  # a sigmoid is never zero


def loss_weights(weighting: Perceptron, losses: Tensor) -> Tensor:
    """What the weighting net makes of losses, (n,), between 0 and 1."""
    return weighting(losses[:, None]).sigmoid()


def moved_params(params: Params) -> Params:
    """The net's parameters that training moves, cut off from any graph; all if none is marked."""
    moved = {name: p.detach() for name, p in params.items() if p.requires_grad}
    return moved or {name: p.detach() for name, p in params.items()}


def losses_of(net: Net, params: Params, x: Tensor, y: Tensor) -> LossesOf:
    """Loss of each sample as a function of the parameters that training moves.

    Buffers are fresh copies in every call: a step that is not taken leaves no trace in the
    running statistics of batch normalisation.
    """
    still = {name: p.detach() for name, p in params.items()}
    return lambda moved: sample_losses(net({**still, **moved, **net.buffers()}, as_input(x)), y)


def mean_gradient(losses: LossesOf, moved: Params) -> Params:
    """Gradient of the mean loss."""
    return {k: g.detach() for k, g in grad(lambda p: losses(p).mean())(moved).items()}


def slope_along(losses: LossesOf, moved: Params, direction: Params) -> Tensor:
    """Inner product of each sample's gradient with a direction, (n,), itself without one.

    In forward mode: about two forward passes, nothing kept. The other road, the gradient of a
    gradient, leads to the same numbers, but through derivatives of convolutions that libraries
    have slow kernels for: twenty plain steps of ResNet-18 on a GPU.

    In float32: the forward derivative of torch's batch normalisation is float32 even where its
    value is bfloat16, and the next convolution refuses the pair.
    """
    device = next(iter(moved.values())).device.type
    with torch.autocast(device, enabled=False):
        return jvp(losses, (moved,), (direction,))[1].detach()
