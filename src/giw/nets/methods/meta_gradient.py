r"""Meta-gradients: the change of the validation loss by the weight of each training point.

Meta-learning asks how the validation loss would change if a training point counted a little
more in the next step of plain gradient descent. With :math:`\theta(\varepsilon) = \theta - \rho
\sum_i \varepsilon_i \nabla \ell_i(\theta)` the answer is an inner product,

.. math:: \partial L_{\rm val}(\theta(\varepsilon)) / \partial \varepsilon_i =
          -\rho\, \nabla \ell_i(\theta)^\top \nabla L_{\rm val}(\theta(\varepsilon)) ,

and all n of them are one directional derivative of the training losses along the validation
gradient: a forward-mode product, exact, without the graph of a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.func import grad, jvp

from giw.nets.kernels.fused_norm import norms_are_fused
from giw.nets.training import Net, Params, as_input, net_params, sample_losses

LossesOf = Callable[[Params], Tensor]


def moved_params(params: Params) -> Params:
    """The net's parameters that training moves, cut off from any graph; all if none is marked."""
    own = net_params(params)
    moved = {name: p.detach() for name, p in own.items() if p.requires_grad}
    return moved or {name: p.detach() for name, p in own.items()}


def losses_of(net: Net, params: Params, x: Tensor, y: Tensor) -> LossesOf:
    """Loss of each sample as a function of the parameters that training moves.

    Buffers are fresh copies in every call: a step that is not taken leaves no trace in the
    running statistics of batch normalisation.
    """
    still = {name: p.detach() for name, p in net_params(params).items()}
    return lambda moved: sample_losses(net({**still, **moved, **net.buffers()}, as_input(x)), y)


def mean_gradient(losses: LossesOf, moved: Params) -> Params:
    """Gradient of the mean loss."""
    return {k: g.detach() for k, g in grad(lambda p: losses(p).mean())(moved).items()}


def slope_along(
    losses: LossesOf, moved: Params, direction: Params, *, mixed: bool = False
) -> Tensor:
    """Inner product of each sample's gradient with a direction, (n,), itself without one.

    In forward mode: about two forward passes, nothing kept. The other road, the gradient of a
    gradient, leads to the same numbers, but through derivatives of convolutions that libraries
    have slow kernels for: twenty plain steps of ResNet-18 on a GPU.

    With ``mixed`` the derivative may be computed in the mixed precision that surrounds the call,
    see :func:`goes_forward_mixed`.
    """
    device = next(iter(moved.values())).device.type
    with nullcontext() if mixed else torch.autocast(device, enabled=False):
        return jvp(losses, (moved,), (direction,))[1].detach()


def goes_forward_mixed(net: Net) -> bool:
    """Whether a net's forward derivative exists in mixed precision.

    That of torch's batch normalisation is float32 even where its value is bfloat16, and the next
    convolution refuses the pair.
    """
    module = getattr(net, "module", None)
    return isinstance(module, nn.Module) and norms_are_fused(module)
