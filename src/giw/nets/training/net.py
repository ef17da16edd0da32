"""A torch module as a pure function of its parameters."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from giw.nets.images import as_input
from giw.nets.kernels.precision import FULL, Precision
from giw.nets.training.protocol import Batch, Params


class FunctionalNet:
    """Call a module with parameters from outside.

    The hidden representation is ``module.features(x)`` where the module has such a method
    (and ``module.head`` to go on from there); otherwise it is the input of the last linear
    layer, which a hook reads off the same forward pass.

    With a group of processes, each calls with the same parameters and all rows, computes its share
    of the rows, and receives the others' outputs, which carry no gradient there. So methods stay as
    they are, and weights are solved for once over the whole batch. The loss is the same number
    everywhere, each process finds the part of its gradient that comes through its own rows, and the
    sum over processes is the gradient that one process would have found, up to rounding.

    Parameters
    ----------
    module : torch.nn.Module
        Maps inputs (n, ...) to logits (n, c). Its parameters are not changed: they are copied
        by :meth:`params`. Its buffers (batch norm's statistics) are, in training mode.
    precision : Precision, optional
        How products are computed, and in which memory format images come.
    group : torch.distributed.ProcessGroup, optional
        Processes that share the rows of a call.
    """

    def __init__(
        self,
        module: nn.Module,
        precision: Precision = FULL,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        self.module, self.precision, self.group = module, precision, group
        self._hidden = _WithHidden(module)

    def params(self) -> Params:
        """A fresh copy of the module's parameters, ready to be trained."""
        return {
            name: self.precision.images(p.detach().clone()).requires_grad_(p.requires_grad)
            for name, p in self.module.named_parameters()
        }

    def buffers(self) -> Params:
        """A copy of what the module keeps besides parameters, such as running means.

        Handed in among the parameters, it takes the updates of a pass in the net's stead: so
        meta-gradients look ahead without a trace.
        """
        return {name: b.detach().clone() for name, b in self.module.named_buffers()}

    def set_buffers(self, buffers: Params) -> None:
        """Put such a copy back."""
        _fill(self.module, buffers)

    def with_params(self, params: Params, buffers: Params | None = None) -> nn.Module:
        """A copy of the module that holds ``params`` and ``buffers``, in evaluation mode."""
        module = copy.deepcopy(self.module).eval()
        _fill(module, {**params, **(buffers or {})})
        return module

    def __call__(self, params: Params, x: Tensor) -> Tensor:
        """Logits of shape (n, c)."""
        with self.precision.products():
            out = functional_call(self.module, params, (self.precision.images(self._mine(x)),))
        return self._shared(out, len(x))

    def at_rest(self, params: Params, x: Tensor) -> Tensor:
        """Logits of shape (n, c) in evaluation mode: running statistics, no dropout."""
        with evaluating(self.module):
            return self(params, x)

    def with_hidden(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, c) and unit-norm hidden representation (n, d), from one pass."""
        named = {f"module.{name}": p for name, p in params.items()}
        images = self.precision.images(self._mine(x))
        with self.precision.products():
            logits, hidden = functional_call(self._hidden, named, (images,))
        hidden = unit_norm(hidden)
        if self.group is None:
            return logits, hidden
        both = torch.cat([logits, hidden.to(logits.dtype)], dim=1)  # one message
        both = self._shared(both, len(x))
        return both[:, : logits.shape[1]], both[:, logits.shape[1] :]

    @torch.no_grad()
    def summed(self, gradients: list[Tensor | None]) -> list[Tensor | None]:
        """Gradients of the parameters, summed over the processes in one message."""
        if self.group is None:
            return gradients
        flat = torch.cat([g.reshape(-1) for g in gradients if g is not None])
        dist.all_reduce(flat, group=self.group)
        parts = iter(flat.split([g.numel() for g in gradients if g is not None]))
        return [None if g is None else next(parts).view_as(g) for g in gradients]

    def _mine(self, x: Tensor) -> Tensor:
        """Rows of this process; the last row fills up where the shares would differ in size."""
        if self.group is None:
            return x
        ranks, rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        share = -(-len(x) // ranks)
        rows = torch.arange(rank * share, (rank + 1) * share, device=x.device)
        return x.index_select(0, rows.clamp(max=len(x) - 1))

    def _shared(self, out: Tensor, n: int) -> Tensor:
        """The outputs of all processes in the order of ranks; this one's carry their gradient."""
        if self.group is None:
            return out
        parts = [torch.empty_like(out) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(parts, out.detach().contiguous(), group=self.group)
        parts[dist.get_rank(self.group)] = out
        return torch.cat(parts)[:n]


Net = FunctionalNet  # as methods see it


@torch.no_grad()
def _fill(module: nn.Module, values: Params) -> None:
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, value in values.items():
        own[name].copy_(value)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """A module in evaluation mode for a while."""
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)


def layer_outputs(
    net: FunctionalNet, params: Params, x: Tensor, *, block: int = 256, most_columns: int = 1024
) -> dict[str, Tensor]:
    """What each layer hands on, after activation and pooling, (n, width) by the layer's name.

    That is what enters the next convolution or linear layer, read off in one pass in evaluation
    mode; what enters the first one are the inputs and is left out. Maps are averaged over space
    where they have more than ``most_columns`` columns. Blocks are small and channels last, which
    on a CPU is four times faster than large contiguous ones.
    """
    last = torch.channels_last
    moved = {k: p.contiguous(memory_format=last) if p.ndim == 4 else p for k, p in params.items()}
    caught: list[tuple[str, Tensor, int]] = []

    def catch(name: str, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        caught.append((name, _as_rows(inputs[0], most_columns), inputs[0].shape[1]))

    hooks = [
        layer.register_forward_pre_hook(partial(catch, name))
        for name, layer in net.module.named_modules()
        if isinstance(layer, nn.Linear | nn.modules.conv._ConvNd)
    ]
    parts: list[dict[str, Tensor]] = []
    try:
        with torch.no_grad(), evaluating(net.module):
            for rows in x.split(block):
                part = as_input(rows)
                part = part.contiguous(memory_format=last) if x.ndim == 4 else part
                functional_call(net.module, moved, (part,))
                parts.append(_handed_on(caught, part))
                caught.clear()
    finally:
        for hook in hooks:
            hook.remove()
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _handed_on(caught: list[tuple[str, Tensor, int]], x: Tensor) -> dict[str, Tensor]:
    """What layers hand on by the name of the layer before; the inputs themselves left out."""
    out: dict[str, Tensor] = {}
    for place, (_, z, width) in enumerate(caught):
        name = caught[place - 1][0] if place else "embedding"
        is_input = place == 0 and width in (x[0].numel(), x.shape[1])
        if len(z) != len(x) or is_input:
            continue
        while name in out:  # a layer that is called several times
            name += "'"
        out[name] = z
    return out


def _as_rows(z: Tensor, most_columns: int) -> Tensor:
    """Maps (n, c, h, w) or sequences (n, t, d) as rows, averaged where they are wide."""
    if z.ndim > 2 and z[0].numel() > most_columns:
        z = z.flatten(2).mean(2) if z.ndim > 3 else z.mean(1)
    return z.flatten(1).contiguous().float()


def unit_norm(z: Tensor) -> Tensor:
    """Rows flattened and scaled to length one; a row of zeros stays zero."""
    return nn.functional.normalize(z.flatten(1), dim=1, eps=1e-12)


class _WithHidden(nn.Module):
    """A module's logits and hidden representation."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features, head = (getattr(self.module, name, None) for name in ("features", "head"))
        if callable(features) and callable(head):
            hidden = features(x)
            return head(hidden), hidden
        linear = [layer for layer in self.module.modules() if isinstance(layer, nn.Linear)]
        if not linear:
            raise ValueError(
                f"{type(self.module).__name__} has no linear layer to read a representation from; "
                "give it the methods features(x) and head(z), or do without: split on the inputs "
                "and take GIW (method='giw') rather than GIW+, whose align needs the layer"
            )
        caught: list[Tensor] = []
        hook = linear[-1].register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
        try:
            logits = self.module(x)
        finally:
            hook.remove()
        return logits, caught[-1]


def predict_in_blocks(
    net: FunctionalNet, params: Params, x: Tensor, *, hidden: bool = False, block: int = 4096
) -> Tensor:
    """Logits, or hidden representation, of many points in evaluation mode, block by block."""
    with evaluating(net.module), torch.inference_mode():
        call = (lambda b: net.with_hidden(params, b)[1]) if hidden else (lambda b: net(params, b))
        out = torch.cat([call(as_input(b)) for b in x.split(block)])
    return out.clone()  # an inference tensor may not enter autograd; its copy may


class Losses(NamedTuple):
    """Losses of both batches, and what stands for each point."""

    train: Tensor  # (n,)
    val: Tensor  # (m,)
    train_z: Tensor  # (n,) or (n, d)
    val_z: Tensor  # (m,) or (m, d)


def sample_losses(logits: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of each sample, (n,)."""
    return cross_entropy(logits, y, reduction="none")


def hidden_of_both(net: Net, params: Params, batch: Batch) -> tuple[Losses, int]:
    """Losses with the unit-norm hidden layer, which carries its gradient; the number of classes."""
    x, y = torch.cat([as_input(batch.x), as_input(batch.x_val)]), torch.cat([batch.y, batch.y_val])
    (logits, z), n = net.with_hidden(params, x), len(batch.y)
    loss = sample_losses(logits, y)
    return Losses(loss[:n], loss[n:], z[:n], z[n:]), logits.shape[1]


def losses_of_both(net: Net, params: Params, batch: Batch, *, representation: str) -> Losses:
    """Forward both batches together and represent each point (x, y) for weighting.

    ``"loss"`` represents a point by its loss value. ``"hidden"`` represents it by the unit-norm
    hidden layer with the one-hot label beside it: two points of different labels are then as
    far apart as two orthogonal features, and weights speak of (x, y), not of x alone.
    ``"eval_loss"`` is the loss in evaluation mode, and each batch is forwarded by itself, as in the
    authors' released code; without batch statistics that is ``"loss"``.
    """
    if representation == "eval_loss" and net.buffers():
        sides = (as_input(batch.x), batch.y), (as_input(batch.x_val), batch.y_val)
        with torch.no_grad():
            at_rest = [sample_losses(net.at_rest(params, x), y) for x, y in sides]
        return Losses(*(sample_losses(net(params, x), y) for x, y in sides), *at_rest)
    if representation == "hidden":
        losses, c = hidden_of_both(net, params, batch)
        z = (torch.cat([z.detach(), members(y, c).to(z.dtype)], dim=1)
             for z, y in ((losses.train_z, batch.y), (losses.val_z, batch.y_val)))  # fmt: skip
        return Losses(losses.train, losses.val, *z)
    x, y = torch.cat([as_input(batch.x), as_input(batch.x_val)]), torch.cat([batch.y, batch.y_val])
    train, val = sample_losses(net(params, x), y).split([len(batch.y), len(batch.y_val)])
    return Losses(train, val, train.detach(), val.detach())


def members(label: Tensor, n_classes: int) -> Tensor:
    """Membership in each class, (n, c); ``one_hot`` of torch looks at values and so waits."""
    return (label[:, None] == torch.arange(n_classes, device=label.device)).float()


REPRESENTATIONS = ("loss", "hidden", "eval_loss")


def check_representation(representation: str) -> str:
    """One of the two representations of the paper, or its loss as the released code has it."""
    if representation not in REPRESENTATIONS:
        raise ValueError(
            f"representation must be one of {', '.join(REPRESENTATIONS)}, got {representation!r}"
        )
    return representation
