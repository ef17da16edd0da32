r"""Images moved about and resized.

Every transformation of the paper is an affine map of the plane, and so is their composition: the
random part draws one matrix per image, the other part samples the batch once along those matrices.
The two are apart so that the sampling, a pure function, can be captured in a CUDA graph or stacked
over trials while the numbers are drawn outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor
from torch.nn import functional


def resize_images(x: Tensor, size: int) -> Tensor:
    """Images of shape (..., channels, height, width) resized to ``size`` × ``size``, bilinearly.

    ``uint8`` images come back rounded to ``uint8``, as an image library does it.
    """
    if x.shape[-2:] == (size, size):
        return x
    flat = x.reshape(-1, *x.shape[-3:])
    pixels = flat if flat.is_floating_point() else flat.to(torch.float32)
    resized = functional.interpolate(pixels, (size, size), mode="bilinear", align_corners=False)
    if not x.is_floating_point():
        resized = resized.round().to(x.dtype)
    return resized.reshape(*x.shape[:-2], size, size)


@dataclass(frozen=True)
class Augmentation:
    """How far images are moved about, each one by its own draw.

    Parameters
    ----------
    rotations : tuple of float
        Largest angle of each rotation, in degrees; each is uniform between minus and plus it.
    translate : float
        Largest shift along each axis as a share of the side, uniform.
    scale : tuple of float
        Smallest and largest magnification, uniform.
    flip_horizontal, flip_vertical : bool
        Mirror half of the images, left to right or upside down.
    crop_padding : int
        Pad by so many black pixels and crop at random to the old size: a shift by whole pixels.
    """

    rotations: tuple[float, ...] = ()
    translate: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)
    flip_horizontal: bool = False
    flip_vertical: bool = False
    crop_padding: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.scale[0] <= self.scale[1]:
            raise ValueError(f"scale goes from a positive number upwards, got {self.scale}")
        if self.translate < 0 or self.crop_padding < 0:
            raise ValueError("translate and crop_padding must not be negative")

    def draw(self, n: int, side: int, *, generator: torch.Generator) -> Tensor:
        """One random map per image, (n, 2, 3), on the generator's device.

        Parameters
        ----------
        n : int
        side : int
            Height and width of the images in pixels; ``crop_padding`` is in pixels.
        generator : torch.Generator
        """

        def uniform(low: float, high: float) -> Tensor:
            u = torch.rand(n, generator=generator, device=generator.device)
            return low + (high - low) * u

        def signs(flip: bool) -> Tensor:
            return 1 - 2 * (uniform(0, 1) < 0.5 * flip).to(torch.float32)

        angle = torch.zeros(n, device=generator.device)
        for largest in self.rotations:
            angle = angle + uniform(-largest, largest) * (pi / 180)
        scale = uniform(*self.scale)
        mirror = torch.stack([signs(self.flip_horizontal), signs(self.flip_vertical)], -1)  # (n, 2)
        # The image spans −1 to 1, so that a share of the side counts twice.
        shift = torch.stack([uniform(-self.translate, self.translate) for _ in range(2)], -1) * 2
        if self.crop_padding:
            whole = torch.randint(
                -self.crop_padding,
                self.crop_padding + 1,
                (n, 2),
                generator=generator,
                device=generator.device,
            )
            shift = shift + whole * (2 / side)  # (n, 2)
        return affine_maps(angle, scale, mirror, shift)


def affine_maps(
    angle: Tensor,  # (n,)  radians, counter-clockwise as one looks at the image
    scale: Tensor,  # (n,)
    mirror: Tensor,  # (n, 2)  ±1 for x and y
    shift: Tensor,  # (n, 2)  in units in which the image spans −1 to 1
) -> Tensor:  # (n, 2, 3)
    r"""Where each output pixel comes from, when an image is mirrored, rotated, scaled and shifted.

    Forwards :math:`p' = s R M p + t`; a sampler needs the inverse,
    :math:`p = M R^\top (p' - t) / s`.
    """
    cos, sin = angle.cos() / scale, angle.sin() / scale
    # Rows of an image count downwards, which turns the sense of rotation around.
    rotation = torch.stack([cos, -sin, sin, cos], -1).reshape(-1, 2, 2)  # (n, 2, 2)
    linear = mirror[:, :, None] * rotation
    offset = -(linear @ shift[:, :, None])  # (n, 2, 1)
    return torch.cat([linear, offset], -1)


def warp(x: Tensor, maps: Tensor) -> Tensor:
    """Sample floating-point images bilinearly along affine maps; outside is black.

    Parameters
    ----------
    x : tensor of shape (n, channels, side, side)
    maps : tensor of shape (n, 2, 3)
        From :meth:`Augmentation.draw`.
    """
    side = x.shape[-1]
    center = (2 * torch.arange(side, device=x.device, dtype=x.dtype) + 1) / side - 1  # (side,)
    row, column = torch.meshgrid(center, center, indexing="ij")
    pixel = torch.stack([column, row, torch.ones_like(row)], -1).reshape(-1, 3)  # (side², 3)
    # Written out because torch's affine_grid has no batching rule for vmap.
    grid = (pixel @ maps.to(x.dtype).mT).reshape(-1, side, side, 2)
    return functional.grid_sample(x, grid, align_corners=False)
