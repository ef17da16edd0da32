"""A net for the points at hand, initialised from its own seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import torch
from torch import nn

from giw.checks import as_generator
from giw.nets.models.lenet import LeNet5
from giw.nets.models.mlp import MLP
from giw.nets.models.resnet import ResNet18

RandomState = int | np.random.Generator | None
SMALL_SIDE = 16  # below this, two convolutions of 5 × 5 leave nothing to pool


def model_for(
    x_shape: Sequence[int], n_classes: int, *, random_state: RandomState = None
) -> nn.Module:
    """The net that suits the shape of ``X``.

    Flat points and images below 16 × 16 pixels get an :class:`MLP`, larger grey or colour images
    a :class:`LeNet5`. :class:`ResNet18` is never chosen by itself, because of its cost.

    Parameters
    ----------
    x_shape : sequence of int
        Shape of ``X`` with the number of points first: (n, d) or (n, channels, height, width).
    n_classes : int
    random_state : int, generator or None
        Seeds the initial parameters; torch's global seed is left alone.
    """
    shape = tuple(int(size) for size in x_shape)
    if len(shape) < 2 or min(shape[1:]) < 1:
        raise ValueError(
            f"x_shape is the shape of X, (n, d) or (n, channels, height, width); got {shape}"
        )
    point = shape[1:]
    image = len(point) == 3 and point[0] in (1, 3) and min(point[1:]) >= SMALL_SIDE
    name = "lenet5" if image else "mlp"
    return build(name, shape, n_classes, random_state=random_state)


def build(
    name: str, x_shape: Sequence[int], n_classes: int, *, random_state: RandomState = None
) -> nn.Module:
    """A net by name, sized for ``X`` of shape ``x_shape``.

    Parameters
    ----------
    name : str
        One of ``giw.nets.models.NETS``.
    x_shape, n_classes, random_state
        As in :func:`model_for`.
    """
    if name not in NETS:
        raise ValueError(f"net must be one of {', '.join(NETS)}, got {name!r}")
    if n_classes < 2:
        raise ValueError(f"a classifier needs at least two classes, got {n_classes}")
    if name != "mlp" and len(x_shape) != 4:
        raise ValueError(
            f"{name} is for images, (n, channels, height, width); got X of shape {tuple(x_shape)}"
        )
    return initialised(lambda: NETS[name](tuple(x_shape[1:]), n_classes), random_state)


def initialised(make: Callable[[], nn.Module], random_state: RandomState = None) -> nn.Module:
    """Call ``make`` under a private seed; torch's global seed is as before afterwards."""
    seed = int(as_generator(random_state).integers(2**63))
    # Only the CPU generator is forked and seeded: torch.manual_seed would reach for every GPU.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        return make()


NETS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {
    "mlp": lambda point, n_classes: MLP(prod(point), n_classes),
    "lenet5": lambda point, n_classes: LeNet5(n_classes, channels=point[0]),
    "resnet18": lambda point, n_classes: ResNet18(n_classes, channels=point[0]),
}
