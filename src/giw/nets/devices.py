"""Where a net computes: on which device, on how many threads, in how many processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from giw.checks import as_generator
from giw.threads import STREAM, one_thread

LARGE = 2_000_000  # parameters; LeNet-5 has 0.06 or 0.2 million, ResNet-18 has 11


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
