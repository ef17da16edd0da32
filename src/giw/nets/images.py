"""Pixels as nets want them, on whatever device they lie."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def unit_pixels(x: Tensor) -> Tensor:
    """``uint8`` pixels as float32 in [0, 1]; floating-point images pass as they are."""
    return x if x.is_floating_point() else x.to(torch.float32) / 255


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
