"""A problem as tensors that live on one device."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor


class Problem(Protocol):
    """Three samples, each with inputs ``x`` and class indices ``y``."""

    @property
    def train(self) -> Any: ...

    @property
    def val(self) -> Any: ...

    @property
    def test(self) -> Any: ...


@dataclass(frozen=True)
class Tensors:
    """Training, validation and (for evaluation only) test data on one device."""

    x_train: Tensor  # (n, ...)  bytes or floats
    y_train: Tensor  # (n,)      class indices
    x_val: Tensor  # (m, ...)
    y_val: Tensor  # (m,)
    x_test: Tensor | None = None
    y_test: Tensor | None = None
    weight: Tensor | None = None  # (n,)  of the training rows; batches draw them in proportion

    @cached_property
    def checksum(self) -> int:
        """Of all that is learned from; methods are compared on the same data, so it is kept."""
        total = 0
        learnt = (self.x_train, self.y_train, self.x_val, self.y_val)
        for tensor in learnt if self.weight is None else (*learnt, self.weight):
            total = zlib.crc32(str(tuple(tensor.shape)).encode(), total)
            total = zlib.crc32(tensor.contiguous().cpu().numpy().data, total)
        return total

    @classmethod
    def from_problem(cls, problem: Problem, device: str | torch.device = "cpu") -> Tensors:
        """Copy a shift problem to ``device`` once; training never goes back to the host."""
        parts: dict[str, Any] = {}
        for name in ("train", "val", "test"):
            sample = getattr(problem, name)
            parts[f"x_{name}"] = inputs_to(sample.x, device)
            parts[f"y_{name}"] = torch.as_tensor(sample.y, dtype=torch.long, device=device)
        return cls(**parts)

    def without_test(self) -> Tensors:
        """What a method may see."""
        return replace(self, x_test=None, y_test=None)


def inputs_to(x: Any, device: str | torch.device) -> Tensor:
    """Inputs on ``device``: bytes stay bytes, everything else becomes float32."""
    tensor = torch.as_tensor(x)
    dtype = torch.uint8 if tensor.dtype == torch.uint8 else torch.float32
    return tensor.to(device=device, dtype=dtype)
