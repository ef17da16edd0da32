"""What processes that share a batch must agree on besides the batch: where to start and to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from giw.nets.training.checkpoint import Saved, UnusableCheckpoint
from giw.nets.training.stopping import asked_to_stop

STEPS_TO_AGREE = 10  # steps between two questions: each is a message, and on a GPU a wait


def first_rank_loads(load: Callable[[], Saved | None], group: dist.ProcessGroup) -> Saved | None:
    """What the first process has saved, on every process; the others need not see its disk.

    They also hear that the file is of no use: processes that start at different epochs would wait
    for each other for ever.
    """
    found: list[Any] = [None, ""]
    if dist.get_rank(group) == 0:
        try:
            found = [load(), ""]
        except UnusableCheckpoint as error:
            found = [None, str(error)]
    dist.broadcast_object_list(found, group=group, group_src=0)
    if found[1]:
        raise UnusableCheckpoint(found[1])
    saved: Saved | None = found[0]
    return saved


def any_rank_asked(group: dist.ProcessGroup, device: torch.device) -> bool:
    """Whether one of the processes was asked to stop; all get the same answer."""
    asked = torch.tensor(float(asked_to_stop()), device=device)
    dist.all_reduce(asked, op=dist.ReduceOp.MAX, group=group)
    return bool(asked)
