"""The small net that some methods bring along: one hidden layer, one number out."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from giw.nets.training import OWN, Params


def perceptron_params(n_in: int, width: int, *, like: Tensor, random_state: int) -> Params:
    """Parameters drawn as torch draws a linear layer's, uniform within 1 / √(number of inputs).

    ``like`` lends device and dtype; the draw itself is made on the CPU, the same everywhere.
    """
    generator = torch.Generator().manual_seed(random_state)

    def draw(n_inputs: int, *shape: int) -> Tensor:
        unit = 2 * torch.rand(*shape, generator=generator) - 1
        return (unit / n_inputs**0.5).to(like)

    return {
        f"{OWN}weight1": draw(n_in, width, n_in),
        f"{OWN}bias1": draw(n_in, width),
        f"{OWN}weight2": draw(width, 1, width),
        f"{OWN}bias2": draw(width, 1),
    }


def perceptron(params: Params, x: Tensor) -> Tensor:
    """One logit for each row of (n, d), shape (n,)."""
    hidden = linear(x, params[f"{OWN}weight1"], params[f"{OWN}bias1"]).relu()  # (n, width)
    return linear(hidden, params[f"{OWN}weight2"], params[f"{OWN}bias2"])[:, 0]
