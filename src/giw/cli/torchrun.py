"""Commands as one of several processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from giw.cli.common import STOPPED


@contextmanager
def torchrun_processes() -> Iterator[tuple[int, int]]:
    """Rank of this process and the number of processes; 0 and 1 unless torchrun started several.

    They form a group as long as the context lasts: over NCCL where each has a GPU of its own, over
    gloo otherwise.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    # other schedulers set WORLD_SIZE too, without saying where to meet
    if "TORCHELASTIC_RUN_ID" not in os.environ or processes == 1:
        yield 0, 1
        return
    import torch

    # Loaded after a group is made, as the first optimizer would, it keeps that group for ever:
    # gloo's threads are then alive when Python ends; one that holds a tensor aborts the process.
    import torch._dynamo
    import torch.distributed as dist

    local = int(os.environ.get("LOCAL_RANK", "0"))
    on_gpus = local < torch.cuda.device_count()
    if on_gpus:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if on_gpus else "gloo")
    rank = dist.get_rank()
    try:
        yield rank, processes
    except KeyboardInterrupt:  # all have stopped together; the first one says so
        if rank > 0:
            raise SystemExit(STOPPED) from None
        raise
    else:
        with suppress(RuntimeError):  # a process that has failed says so itself
            dist.barrier()  # whoever leaves early may take the others with it
    finally:
        dist.destroy_process_group()
