"""Triton where it is installed, and which tensors its kernels can read.

Under ``TRITON_INTERPRET=1`` kernels run as Python on tensors in the host's memory: that is how
they are tested without a GPU (``make test-kernels``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for CPU comes without it
    triton = tl = None

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def jit(function: Callable[..., Any]) -> Any:
    """Hand a function to Triton; without Triton it is of no use."""
    return function if triton is None else triton.jit(function)


def reaches(x: Tensor) -> bool:
    """Whether kernels can read a tensor: they are started on the current GPU."""
    if triton is None:
        return False
    return INTERPRETED or (x.is_cuda and x.device.index == torch.cuda.current_device())
