"""In which numbers a net computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from giw.nets.models import LeNet5, ResNet18

PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Precision:
    """How a net computes; parameters, losses, weights and Adam are float32 in any case.

    Attributes
    ----------
    mixed : bool
        Convolutions and products in bfloat16 (autocast).
    tensor_cores : bool or None
        On CUDA, float32 products with operands rounded to ten bits (TF32). None leaves torch's
        own settings alone: TF32 in convolutions, not in products.
    channels_last : bool
        Images and convolution kernels in the memory format for which convolutions of few
        channels, and tensor cores, have fast kernels.
    """

    mixed: bool = False
    tensor_cores: bool | None = None
    channels_last: bool = False

    def forward(self, device: torch.device) -> AbstractContextManager[Any]:
        """Around a forward pass."""
        return torch.autocast(device.type, dtype=torch.bfloat16) if self.mixed else nullcontext()

    def products(self) -> AbstractContextManager[None]:
        """Around a net's own products, forwards and backwards.

        Weight estimation lies outside of it: kernel mean matching needs all 24 bits.
        """
        return nullcontext() if self.tensor_cores is None else _tensor_cores(self.tensor_cores)

    def images(self, x: Tensor) -> Tensor:
        """Images or kernels in the chosen memory format, anything else as it is."""
        if self.channels_last and x.ndim == 4:
            # unlike contiguous(), this also sets the strides by which a single channel is told
            return x.to(memory_format=torch.channels_last)
        return x


FULL = Precision()


@contextmanager
def _tensor_cores(on: bool) -> Iterator[None]:
    product, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = product.allow_tf32, convolution.allow_tf32
    product.allow_tf32 = convolution.allow_tf32 = on
    try:
        yield
    finally:
        product.allow_tf32, convolution.allow_tf32 = before


def precision_for(
    name: str, module: nn.Module, device: torch.device, *, stacked: bool = False
) -> Precision:
    """What ``TrainingConfig.precision`` means for a net on a device.

    "auto" is float32 on CPU; on CUDA bfloat16 for nets with batch normalisation, whose scale
    rounding cannot disturb, and TF32 for others. Nets side by side (``stacked``) keep the plain
    memory format, and so do nets of the user's own: they may ``view`` what only that format allows.
    """
    last = isinstance(module, LeNet5 | ResNet18) and not stacked
    if device.type != "cuda":
        return Precision(mixed=name == "bfloat16", channels_last=last)
    normalised = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules())
    if name == "bfloat16" or (name == "auto" and normalised):
        return Precision(mixed=True, tensor_cores=True, channels_last=last)
    return Precision(tensor_cores=name == "auto")
