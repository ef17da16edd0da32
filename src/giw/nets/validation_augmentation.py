r"""Augmented validation points: images moved about, other points jittered along the data.

Random numbers come from an additive recurrence, :math:`u_{j+1} = \{u_j + \alpha\}` with the
multiples of an irrational vector: evenly spread over the cube, the same on every device, and all
its state is one point. So copies are pure functions that can be captured in a CUDA graph and
stacked over trials.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from giw.nets.augmentation import warp

MOVES = 6  # numbers that move one image
ANGLE = 0.26  # radians, 15 degrees
STRETCH = 1.2  # along each axis, or one over it
SHEAR = 0.2
SHIFT = 0.1  # in units in which the image spans −1 to 1
SMALLEST_SIDE = 16  # below this a moved image is a blurred one


def recurrence(dimensions: int, device: torch.device | str = "cpu") -> Tensor:
    """The vector of the recurrence: powers of the root of x^(d + 1) = x + 1, upside down.

    Computed where it is needed: a copy from the host could not be captured in a CUDA graph.
    """
    root = 1.5
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    power = torch.arange(1, dimensions + 1, dtype=torch.float64, device=device)
    return torch.pow(root, -power) % 1


def even_uniforms(phase: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The next points of the recurrence, (count, d), and the phase after them, (d,)."""
    step = recurrence(phase.shape[-1], phase.device).to(phase.dtype)
    ahead = torch.arange(1, count + 1, dtype=phase.dtype, device=phase.device)
    points = (phase + ahead[:, None] * step) % 1
    return points, points[-1]


def are_images(x: Tensor) -> bool:
    """Whether points are square images large enough to be moved about."""
    return x.ndim == 4 and x.shape[2] == x.shape[3] and x.shape[3] >= SMALLEST_SIDE


def moved_images(x: Tensor, uniform: Tensor) -> Tensor:
    """Turn, stretch, shear and shift each image by its own numbers.

    Parameters
    ----------
    x : Tensor of shape (n, channels, side, side)
    uniform : Tensor of shape (n, MOVES)
        Between 0 and 1; one half moves nothing.
    """
    u = 2 * uniform - 1  # (n, 6)
    cos, sin = (ANGLE * u[:, 0]).cos(), (ANGLE * u[:, 0]).sin()
    wide, high = (log(STRETCH) * u[:, 1]).exp(), (log(STRETCH) * u[:, 2]).exp()
    shear = SHEAR * u[:, 3]
    # rotation times shear times stretch, written out
    linear = torch.stack(
        [cos * wide, (cos * shear - sin) * high, sin * wide, (sin * shear + cos) * high], -1
    ).unflatten(-1, (2, 2))
    return warp(x, torch.cat([linear, SHIFT * u[:, 4:6, None]], -1))


def jittered(x: Tensor, one: Tensor, other: Tensor, amount: Tensor) -> Tensor:
    """Noise along the data: each point plus an amount of the difference of two others."""
    return x + _as_factor(amount, x) * (one - other)


def _as_factor(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(-1, *[1] * (x.ndim - 1))
