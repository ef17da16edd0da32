"""Several real processes that talk over gloo, for the tests of what is shared among them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def in_processes(work: Callable[..., Any], folder: Path, *, count: int = 2) -> list[Any]:
    """What ``work(rank)`` returns in each of ``count`` processes; the first failure is raised."""
    mp.spawn(_work, args=(work, str(folder), count), nprocs=count)
    return [pickle.loads((folder / f"found {rank}").read_bytes()) for rank in range(count)]


def _work(rank: int, work: Callable[..., Any], folder: str, count: int) -> None:
    torch.set_num_threads(1)
    meeting = (Path(folder) / "meeting").as_uri()
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=count)
    try:
        found = work(rank)
        (Path(folder) / f"found {rank}").write_bytes(pickle.dumps(found))
        dist.barrier()  # whoever leaves early may take the others with it
    finally:
        dist.destroy_process_group()
