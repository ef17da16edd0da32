r"""A histogram of losses for each class that runs along with training.

A loss :math:`\ell` is put at one minus the probability of its label,
:math:`t = 1 - e^{-\ell} \in [0, 1]`: bounded, and the same for every net. A histogram has a fixed
shape, so that it can be kept from step to step, stacked over trials and captured in a CUDA graph,
and it forgets smoothly: no batch decides alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 64


def loss_nodes(loss: Tensor) -> Tensor:
    """How much of a loss falls to each of ``BINS`` + 1 nodes between 0 and 1, (n, BINS + 1).

    A point between two nodes is shared between them, so that nothing jumps as losses move.
    """
    place = BINS * -torch.expm1(-loss.float())  # (n,)
    nodes = torch.arange(BINS + 1, device=loss.device)
    return (1 - (place[:, None] - nodes).abs()).clamp(min=0)


def one_hot(label: Tensor, n_classes: int) -> Tensor:
    """Labels as rows of zeros and a one, (n, c), without a look at values."""
    return (label[:, None] == torch.arange(n_classes, device=label.device)).float()


def loss_histogram(nodes: Tensor, classes: Tensor) -> Tensor:
    """Share of a batch at each node of each class, (c, BINS + 1), sum one.

    Parameters
    ----------
    nodes : Tensor of shape (n, BINS + 1)
        Of :func:`loss_nodes`.
    classes : Tensor of shape (n, c)
        Of :func:`one_hot`.
    """
    return classes.mT @ nodes / len(nodes)


def moved_histogram(histogram: Tensor, batch: Tensor, *, window: float) -> Tensor:
    """A histogram that forgets: its memory is about ``window`` batches long."""
    return histogram + (batch - histogram) / window


def at_points(values: Tensor, nodes: Tensor, classes: Tensor) -> Tensor:
    """Values at nodes of classes, (c, BINS + 1), read off at points, (n,)."""
    return ((classes @ values) * nodes).sum(-1)
