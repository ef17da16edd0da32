r"""Processes that share the rows of every step, and what else they must agree on.

Methods stay as they are: they call the net with a whole batch and get the outputs of the whole
batch, so that weights are solved for once over all of it. Four functions make every derivative
right, in two pairs each of which is the other's transpose when all processes hold the same value:

==============  =====================  =====================
function        forward                backward
==============  =====================  =====================
``_Lend``       the same value         sum over processes
``_Sum``        sum over processes     the same value
``_Gather``     all processes' rows    this process's rows
``_Take``       this process's rows    all processes' rows
==============  =====================  =====================

Parameters are lent to the net and its outputs gathered; the gradient of any function of the
outputs is then the gradient that a single process would have found, up to rounding, and a gradient
of a gradient likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function

from giw.nets.kernels.precision import FULL, Precision
from giw.nets.training.checkpoint import Saved, UnusableCheckpoint, asked_to_stop
from giw.nets.training.net import FunctionalNet
from giw.nets.training.protocol import Params


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
        self._lent = {name for name, _ in module.named_parameters()}

    def __call__(self, params: Params, x: Tensor) -> Tensor:
        """Logits of all rows, (n, c)."""
        return self._shared(super().__call__, params, x)

    def with_hidden(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, c) and unit-norm hidden representation (n, d) of all rows."""

        def both(params: Params, x: Tensor) -> Tensor:  # beside each other: one message
            logits, hidden = super(ShardedNet, self).with_hidden(params, x)
            self._classes = logits.shape[1]
            return torch.cat([logits, hidden.to(logits.dtype)], dim=1)

        out = self._shared(both, params, x)
        return out[:, : self._classes], out[:, self._classes :]

    def _shared(
        self, call: Callable[[Params, Tensor], Tensor], params: Params, x: Tensor
    ) -> Tensor:
        names = [name for name in params if name in self._lent]
        lent = _Lend.apply(self.group, *(params[name] for name in names))
        mine = x.index_select(0, self._rows(len(x), x.device))
        out = call({**params, **dict(zip(names, lent, strict=True))}, mine)
        return _Gather.apply(self.group, out)[: len(x)]

    def _rows(self, n: int, device: torch.device) -> Tensor:
        """Rows of this process; the last row fills up where the shares would differ in size."""
        ranks, rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        share = -(-n // ranks)
        return torch.arange(rank * share, (rank + 1) * share, device=device).clamp(max=n - 1)


def check_shardable(module: nn.Module) -> None:
    """Refuse nets whose rows depend on each other: a process sees its own rows only."""
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise ValueError(
                f"layer {name!r} is a batch normalisation, whose output depends on all rows of a "
                "batch, and each process computes some of them; use torch.nn.GroupNorm, or train "
                "in one process"
            )


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


class _Linear(Function):
    """A linear function: another one is its transpose, and tangents go the way of values."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.group = inputs[0]
        ctx.set_materialize_grads(False)  # a parameter that is not used stays without a gradient


class _Lend(_Linear):
    """The same tensors; gradients are summed over the processes, in one message."""

    @staticmethod
    def forward(group: dist.ProcessGroup, *values: Tensor) -> tuple[Tensor, ...]:
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        found = [gradient for gradient in gradients if gradient is not None]
        summed = iter(_Sum.apply(ctx.group, *found) if found else ())
        return None, *(None if g is None else next(summed) for g in gradients)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> Any:
        return tuple(None if t is None else t.view_as(t) for t in tangents)


class _Sum(_Linear):
    """Sums over the processes, in one message."""

    @staticmethod
    def forward(group: dist.ProcessGroup, *values: Tensor) -> tuple[Tensor, ...]:
        flat = torch.cat([value.reshape(-1) for value in values])
        dist.all_reduce(flat, group=group)
        parts = flat.split([value.numel() for value in values])
        return tuple(part.reshape(v.shape) for part, v in zip(parts, values, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, *_Lend.apply(ctx.group, *gradients)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor) -> Any:
        return _Sum.apply(ctx.group, *tangents)


class _Gather(_Linear):
    """The rows of all processes, in the order of ranks."""

    @staticmethod
    def forward(group: dist.ProcessGroup, part: Tensor) -> Tensor:
        found = [torch.empty_like(part) for _ in range(dist.get_world_size(group))]
        dist.all_gather(found, part.contiguous(), group=group)
        return torch.cat(found)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, _Take.apply(ctx.group, gradient)

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: Tensor) -> Any:
        return _Gather.apply(ctx.group, tangent)


class _Take(_Linear):
    """A process's share of rows that all processes hold."""

    @staticmethod
    def forward(group: dist.ProcessGroup, whole: Tensor) -> Tensor:
        share = len(whole) // dist.get_world_size(group)
        rank = dist.get_rank(group)
        return whole[rank * share : (rank + 1) * share].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, _Gather.apply(ctx.group, gradient)

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: Tensor) -> Any:
        return _Take.apply(ctx.group, tangent)
