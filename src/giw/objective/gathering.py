"""Rows that are spread over processes, brought together without gradient.

Losses are one number per point, so that gathering those of a whole batch costs next to nothing
beside the gradients that data-parallel training sends anyway.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import accumulate

import torch
import torch.distributed as dist
from torch import Tensor


@torch.no_grad()
def gather_rows(*shards: Tensor, group: dist.ProcessGroup) -> tuple[list[Tensor], list[slice]]:
    """The rows of every process, in the order of ranks, and where this process's own are in them.

    For several tensors (rows, ...) of floats at once, in two messages: how many rows each process
    has, and all of the rows in one vector. Processes may have different numbers of rows, but not
    different shapes of a row.
    """
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    dtype = reduce(torch.promote_types, (shard.dtype for shard in shards))
    shapes = [[len(shard), math.prod(shard.shape[1:])] for shard in shards]
    rows = torch.tensor(shapes, device=shards[0].device)  # (tensors, 2)
    counts = torch.stack(_all_gather(rows, ranks, group)).cpu()  # (ranks, tensors, 2)
    if bool((counts[:, :, 1] != counts[0, :, 1]).any()):
        raise ValueError(
            f"rows have different shapes on different processes: {counts[:, :, 1].tolist()} "
            "numbers per row, process by process; pass the same representation everywhere"
        )
    lengths = counts.prod(dim=2)  # (ranks, tensors) numbers
    flat = torch.cat([shard.detach().reshape(-1).to(dtype) for shard in shards])
    room = flat.new_zeros(int(lengths.sum(dim=1).max()))  # shards of unequal size are filled up
    room[: len(flat)] = flat
    parts = [
        vector[: sum(sizes)].split(sizes)
        for vector, sizes in zip(_all_gather(room, ranks, group), lengths.tolist(), strict=True)
    ]
    whole, mine = [], []
    for number, shard in enumerate(shards):
        joined = torch.cat([part[number] for part in parts]).reshape(-1, *shard.shape[1:])
        starts = [0, *accumulate(counts[:, number, 0].tolist())]
        whole.append(joined.to(shard.dtype))
        mine.append(slice(starts[rank], starts[rank + 1]))
    return whole, mine


@torch.no_grad()
def first_rank_says(*tensors: Tensor, group: dist.ProcessGroup) -> list[Tensor]:
    """What the group's first process holds, on every process, in one message."""
    flat = torch.cat([t.detach().reshape(-1).to(tensors[0].dtype) for t in tensors])
    dist.broadcast(flat, group=group, group_src=0)
    parts = flat.split([t.numel() for t in tensors])
    return [part.reshape(t.shape).to(t.dtype) for part, t in zip(parts, tensors, strict=True)]


def _all_gather(tensor: Tensor, ranks: int, group: dist.ProcessGroup) -> list[Tensor]:
    found = [torch.empty_like(tensor) for _ in range(ranks)]
    dist.all_gather(found, tensor.contiguous(), group=group)
    return found
