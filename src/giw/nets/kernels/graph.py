"""A piece of work recorded once and replayed by the device itself."""

from __future__ import annotations

from collections.abc import Callable

import torch

TRIAL_RUNS = 3  # libraries choose their kernels and allocators settle before the recording


def captured(
    work: Callable[[], object], device: torch.device, rewind: Callable[[], object]
) -> Callable[[], None]:
    """Record ``work()``, which reads and writes tensors at fixed addresses, as a CUDA graph.

    Calling what comes back queues the work once more and returns at once. ``work`` is run a few
    times before it is recorded, each time after ``rewind()``: whoever asks puts the rest of the
    state back.
    """
    with torch.cuda.device(device):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(TRIAL_RUNS):
                rewind()
                work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
    return graph.replay
