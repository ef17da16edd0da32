r"""A start for methods that tune all layers: the first block, fitted to validation data alone.

.. math:: \min_{\theta_1} \frac1m \sum_j \ell(x_j, y_j;\ \theta_1, \theta_{>1})

A shift in the input, such as another colour, can be undone by the first layers alone, and a dozen
points are enough to say how (surgical fine-tuning, Lee et al., ICLR 2023). Tuned all at once,
later layers learn the same points by heart before the first ones have moved. So the first block
goes first, from where pretraining left the net, and then all layers go on together.
"""

from __future__ import annotations

from math import cos, pi

import torch
from torch import Tensor

from giw.methods.blocks import parameter_blocks
from giw.training import Net, Params, sample_losses


def tuned_first_block(
    net: Net,
    params: Params,
    x: Tensor,  # (m, ...)  validation inputs
    y: Tensor,  # (m,)
    *,
    steps: int,
    learning_rate: float,
) -> Params:
    """Parameters of which those of the first block are fitted to a few points.

    Adam, its rate falling to zero along a cosine.
    """
    learns = {
        name: params[name].detach().clone().requires_grad_() for name in parameter_blocks(params)[0]
    }
    others = {name: p.detach() for name, p in params.items()}
    optimizer = torch.optim.Adam(learns.values(), lr=learning_rate)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (1 + cos(pi * step / steps)) / 2
        loss = sample_losses(net(others | learns, x), y).mean()
        gradients = torch.autograd.grad(loss, list(learns.values()))
        for p, gradient in zip(learns.values(), gradients, strict=True):
            p.grad = gradient
        optimizer.step()
    return {
        name: learns[name].detach().requires_grad_(p.requires_grad) if name in learns else p
        for name, p in params.items()
    }
