"""Per-sample losses of a training and a validation batch, from one pass."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from giw.nets.training.net import as_input
from giw.nets.training.protocol import Batch, Net, Params


class Losses(NamedTuple):
    """Losses, and the representation that weights are estimated on."""

    train: Tensor  # (n,)
    val: Tensor  # (m,)
    train_z: Tensor  # (n,) or (n, d)
    val_z: Tensor  # (m,) or (m, d)


def sample_losses(logits: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of each sample, (n,)."""
    return cross_entropy(logits, y, reduction="none")


def losses_of_both(net: Net, params: Params, batch: Batch, *, representation: str) -> Losses:
    """Forward both batches together and represent each point (x, y) for weighting.

    ``"loss"`` represents a point by its loss value. ``"hidden"`` represents it by the unit-norm
    hidden layer with the one-hot label beside it: two points of different labels are then as
    far apart as two orthogonal features, and weights speak of (x, y), not of x alone.
    ``"eval_loss"`` is the loss in evaluation mode, and each batch is forwarded by itself, as in the
    authors' released code; without batch statistics that is ``"loss"``.
    """
    if representation == "eval_loss":
        if net.buffers():
            return _losses_apart(net, params, batch)
        representation = "loss"
    n = len(batch.y)
    x, y = torch.cat([as_input(batch.x), as_input(batch.x_val)]), torch.cat([batch.y, batch.y_val])
    if representation == "loss":
        loss = sample_losses(net(params, x), y)
        z = loss.detach()
    else:
        logits, hidden = net.with_hidden(params, x)
        loss = sample_losses(logits, y)
        classes = torch.arange(logits.shape[1], device=y.device)
        label = (y[:, None] == classes).to(hidden.dtype)  # (n + m, c), without a look at values
        z = torch.cat([hidden.detach(), label], dim=1)
    return Losses(loss[:n], loss[n:], z[:n], z[n:])


def _losses_apart(net: Net, params: Params, batch: Batch) -> Losses:
    both = (batch.x, batch.y), (batch.x_val, batch.y_val)
    with torch.no_grad():
        at_rest = [sample_losses(net.at_rest(params, as_input(x)), y) for x, y in both]
    return Losses(*(sample_losses(net(params, as_input(x)), y) for x, y in both), *at_rest)


class Hidden(NamedTuple):
    """Logits and unit-norm hidden layer of both batches, with their gradients."""

    train_logits: Tensor  # (n, c)
    val_logits: Tensor  # (m, c)
    train_z: Tensor  # (n, d)
    val_z: Tensor  # (m, d)


def hidden_of_both(net: Net, params: Params, batch: Batch) -> Hidden:
    """Forward both batches together, for methods that train the hidden layer itself."""
    n = len(batch.y)
    x = torch.cat([as_input(batch.x), as_input(batch.x_val)])
    logits, z = net.with_hidden(params, x)
    return Hidden(logits[:n], logits[n:], z[:n], z[n:])


REPRESENTATIONS = ("loss", "hidden", "eval_loss")


def check_representation(representation: str) -> str:
    """One of the two representations of the paper, or its loss as the released code has it."""
    if representation not in REPRESENTATIONS:
        raise ValueError(
            f"representation must be one of {', '.join(REPRESENTATIONS)}, got {representation!r}"
        )
    return representation
