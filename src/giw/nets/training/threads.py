"""How many CPU threads a net deserves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

SMALL_STEP = 2**25  # multiply-adds below which handing work over costs more than it saves


@contextmanager
def threads_for(module: nn.Module, batch_size: int, device: torch.device) -> Iterator[None]:
    """One thread while a small fully connected net is trained, as many as before otherwise.

    A step of a small perceptron takes microseconds; split over threads it waits for each of them
    in turn, and on a busy machine it waits a hundred times longer than it computes.
    """
    convolves = any(isinstance(layer, nn.modules.conv._ConvNd) for layer in module.modules())
    work = batch_size * sum(p.numel() for p in module.parameters())
    before = torch.get_num_threads()
    few = device.type == "cpu" and not convolves and work < SMALL_STEP
    if few:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if few:
            torch.set_num_threads(before)
