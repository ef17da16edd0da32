"""Where a net computes and in which numbers: device, threads, processes, random stream, TF32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from giw.checks import as_generator
from giw.threads import STREAM, one_thread

LARGE = 2_000_000  # parameters; LeNet-5 has 0.06 or 0.2 million, ResNet-18 has 11
PRECISIONS = ("auto", "float32", "bfloat16")


def as_device(name: str | torch.device) -> torch.device:
    """A device that is there; "auto" is the GPU if there is one."""
    if isinstance(name, str) and name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("tensors there have shapes and no values")
        torch.empty(0, device=device)  # a GPU that is not there is missed only now
    except (RuntimeError, TypeError, AssertionError) as error:
        said = (str(error).splitlines() or ["no such device"])[0]
        raise ValueError(
            f"device {name!r} cannot be used: {said}; pass 'auto', 'cpu' or the name of a GPU that "
            "is there, such as 'cuda:0'"
        ) from error
    return device


@contextmanager
def threads_for(module: nn.Module, device: torch.device) -> Iterator[None]:
    """One thread while a net of fewer than two million parameters is on a CPU.

    A step of a small net takes milliseconds at most; split over threads, it waits for the slowest
    of them at every layer, and beside other busy processes it waits ten times longer than it
    computes. The caller's settings, torch's and those of numpy's libraries, are put back.
    """
    if device.type != "cpu" or sum(p.numel() for p in module.parameters()) >= LARGE:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_thread():
            yield
    finally:
        torch.set_num_threads(before)


def default_group() -> dist.ProcessGroup | None:
    """The processes that torch.distributed knows of; None where there is only this one."""
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "distributed=True but torch.distributed has no process group; start the program with "
            "torchrun and call torch.distributed.init_process_group() first"
        )
    return dist.group.WORLD if dist.get_world_size() > 1 else None


def shared_seed(random_state: Any, ranks: dist.ProcessGroup | None) -> int:
    """A seed that all processes have; without ``random_state`` each would draw its own."""
    return int(first_says(int(as_generator(random_state).integers(2**31)), ranks))


def first_says(value: Any, ranks: dist.ProcessGroup | None) -> Any:
    """What the first process holds, on every process; tensors in it are on the host."""
    held = [value]
    if ranks is not None:
        dist.broadcast_object_list(held, group=ranks, group_src=0)
    return held[0]


@contextmanager
def seeded_stream(seed: int, device: torch.device) -> Iterator[None]:
    """The global stream of torch seeded for a while, for layers that draw from no other.

    Only the streams of the processor and of ``device`` are touched, and both are put back;
    ``torch.manual_seed`` would seed those of all GPUs, and leave them so.
    """
    cuda = device.type == "cuda"
    with STREAM, torch.random.fork_rng(devices=[device] if cuda else []):
        torch.default_generator.manual_seed(seed)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


# Numbers ------------------------------------------------------------------------------------------


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
    from giw.nets.models import LeNet5, ResNet18  # which are drawn by the stream above

    last = isinstance(module, LeNet5 | ResNet18) and not stacked
    if device.type != "cuda":
        return Precision(mixed=name == "bfloat16", channels_last=last)
    normalised = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules())
    if name == "bfloat16" or (name == "auto" and normalised):
        return Precision(mixed=True, tensor_cores=True, channels_last=last)
    return Precision(tensor_cores=name == "auto")
