"""Processes that share the rows of every step.

Methods stay as they are: they call the net with a whole batch and get the outputs of the whole
batch, so that weights are solved for once over all of it. Each process computes its share of the
rows and receives the others' outputs, which carry no gradient there. The loss is then the same
number everywhere, each process finds the part of its gradient that comes through its own rows, and
the sum over processes is the gradient that a single process would have found, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from giw.nets.devices import first_says
from giw.nets.kernels.precision import FULL, Precision
from giw.nets.training.checkpoint import Saved, UnusableCheckpoint, asked_to_stop
from giw.nets.training.net import FunctionalNet
from giw.nets.training.protocol import Method, Params


class ShardedNet(FunctionalNet):
    """A functional net of which each process of a group computes its share of the rows.

    Parameters
    ----------
    module, precision
        As for :class:`giw.nets.training.FunctionalNet`.
    group : torch.distributed.ProcessGroup
        Processes that call with the same parameters and the same rows.
    """

    def __init__(
        self, module: nn.Module, precision: Precision = FULL, *, group: dist.ProcessGroup
    ) -> None:
        super().__init__(module, precision)
        check_shardable(module)
        self.group = group

    def __call__(self, params: Params, x: Tensor) -> Tensor:
        """Logits of all rows, (n, c)."""
        return self._shared(super().__call__(params, self._mine(x)), len(x))

    def with_hidden(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, c) and unit-norm hidden representation (n, d) of all rows."""
        logits, hidden = super().with_hidden(params, self._mine(x))
        out = torch.cat([logits, hidden.to(logits.dtype)], dim=1)  # one message
        out = self._shared(out, len(x))
        return out[:, : logits.shape[1]], out[:, logits.shape[1] :]

    @torch.no_grad()
    def summed(self, gradients: list[Tensor | None]) -> list[Tensor | None]:
        """Gradients of the parameters, summed over the processes in one message."""
        flat = torch.cat([g.reshape(-1) for g in gradients if g is not None])
        dist.all_reduce(flat, group=self.group)
        parts = iter(flat.split([g.numel() for g in gradients if g is not None]))
        return [None if g is None else next(parts).view_as(g) for g in gradients]

    def _mine(self, x: Tensor) -> Tensor:
        """Rows of this process; the last row fills up where the shares would differ in size."""
        ranks, rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        share = -(-len(x) // ranks)
        rows = torch.arange(rank * share, (rank + 1) * share, device=x.device)
        return x.index_select(0, rows.clamp(max=len(x) - 1))

    def _shared(self, out: Tensor, n: int) -> Tensor:
        """The outputs of all processes in the order of ranks; this one's carry their gradient."""
        parts = [torch.empty_like(out) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(parts, out.detach().contiguous(), group=self.group)
        parts[dist.get_rank(self.group)] = out
        return torch.cat(parts)[:n]


def check_shardable(module: nn.Module, method: Method | None = None) -> None:
    """Refuse nets whose rows depend on each other, and methods that differentiate in a step.

    A process sees its own rows only, and only the gradient of the whole loss is summed.
    """
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise ValueError(
                f"layer {name!r} is a batch normalisation, whose output depends on all rows of a "
                "batch, and each process computes some of them; use torch.nn.GroupNorm, or train "
                "in one process"
            )
    if method is not None and method.looks_ahead:
        raise ValueError(
            f"method {method.name!r} takes gradients inside of a step, and each process has those "
            "of some rows only; train in one process"
        )


def first_rank_loads(load: Callable[[], Saved | None], group: dist.ProcessGroup) -> Saved | None:
    """What the first process has saved, on every process; the others need not see its disk.

    They also hear that the file is of no use: processes that start at different epochs would wait
    for each other for ever.
    """
    found: tuple[Saved | None, str] = None, ""
    if dist.get_rank(group) == 0:
        try:
            found = load(), ""
        except UnusableCheckpoint as error:
            found = None, str(error)
    saved, refused = first_says(found, group)
    if refused:
        raise UnusableCheckpoint(refused)
    return saved


def any_rank_asked(group: dist.ProcessGroup, device: torch.device) -> bool:
    """Whether one of the processes was asked to stop; all get the same answer."""
    asked = torch.tensor(float(asked_to_stop()), device=device)
    dist.all_reduce(asked, op=dist.ReduceOp.MAX, group=group)
    return bool(asked)
