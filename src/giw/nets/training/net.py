"""A torch module as a pure function of its parameters."""

from __future__ import annotations

import copy
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call

from giw.nets.kernels.precision import FULL, Precision
from giw.nets.training.protocol import OWN, Params


class FunctionalNet:
    """Call a module with parameters from outside.

    The hidden representation is ``module.features(x)`` where the module has such a method
    (and ``module.head`` to go on from there); otherwise it is the input of the last linear
    layer, which a hook reads off the same forward pass.

    Parameters
    ----------
    module : torch.nn.Module
        Maps inputs (n, ...) to logits (n, c). Its parameters are not changed: they are copied
        by :meth:`params`. Its buffers (batch norm's statistics) are, in training mode.
    precision : Precision, optional
        How products are computed, and in which memory format images come.
    """

    def __init__(self, module: nn.Module, precision: Precision = FULL) -> None:
        self.module, self.precision = module, precision
        self._hidden = _HiddenFirst(module) if _has_features(module) else _HookedHidden(module)

    def params(self) -> Params:
        """A fresh copy of the module's parameters, ready to be trained."""
        return {
            name: self.precision.images(p.detach().clone()).requires_grad_(p.requires_grad)
            for name, p in self.module.named_parameters()
        }

    def buffers(self) -> Params:
        """A copy of what the module keeps besides parameters, such as running means."""
        return {name: b.detach().clone() for name, b in self.module.named_buffers()}

    def set_buffers(self, buffers: Params) -> None:
        """Put such a copy back."""
        own = dict(self.module.named_buffers())
        with torch.no_grad():
            for name, value in buffers.items():
                own[name].copy_(value)

    def with_params(self, params: Params) -> nn.Module:
        """A copy of the module that holds ``params``, in evaluation mode."""
        module = copy.deepcopy(self.module).eval()
        with torch.no_grad():
            for name, p in module.named_parameters():
                p.copy_(params[name])
        return module

    def __call__(self, params: Params, x: Tensor) -> Tensor:
        """Logits of shape (n, c)."""
        with self.precision.products():
            return functional_call(self.module, net_params(params), (self.precision.images(x),))

    def at_rest(self, params: Params, x: Tensor) -> Tensor:
        """Logits of shape (n, c) in evaluation mode: running statistics, no dropout."""
        was_training = self.module.training
        self.module.eval()
        try:
            return self(params, x)
        finally:
            self.module.train(was_training)

    def with_hidden(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, c) and unit-norm hidden representation (n, d), from one pass."""
        named = {f"module.{name}": p for name, p in net_params(params).items()}
        with self.precision.products():
            logits, hidden = functional_call(self._hidden, named, (self.precision.images(x),))
        return logits, unit_norm(hidden)


def layer_outputs(
    net: FunctionalNet, params: Params, x: Tensor, *, block: int = 256
) -> dict[str, Tensor]:
    """What each layer hands on, after activation and pooling, (n, width) by the layer's name.

    That is what enters the next convolution or linear layer, read off in one pass in evaluation
    mode; what enters the first one are the inputs and is left out. Maps are averaged over space
    where they have more than 1,024 columns. Blocks are small and channels last, which on a CPU is
    four times faster than large contiguous ones.
    """
    images = x.ndim == 4
    moved = {
        name: p.contiguous(memory_format=torch.channels_last) if p.ndim == 4 else p
        for name, p in net_params(params).items()
    }
    was_training = net.module.training
    net.module.eval()
    parts: list[dict[str, Tensor]] = []
    try:
        with torch.no_grad(), _Listening(net.module) as caught:
            for rows in x.split(block):
                part = as_input(rows)
                if images:
                    part = part.contiguous(memory_format=torch.channels_last)
                functional_call(net.module, moved, (part,))
                parts.append(_handed_on(caught, part))
                caught.clear()
    finally:
        net.module.train(was_training)
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


MOST_COLUMNS = 1_024  # of a layer's maps; wider ones are averaged over space


class _Listening:
    """Names of the layers with weights, and what enters them, in the order of their calls."""

    def __init__(self, module: nn.Module) -> None:
        self.caught: list[tuple[str, Tensor, int]] = []
        self.hooks = [
            layer.register_forward_pre_hook(partial(self._catch, name))
            for name, layer in module.named_modules()
            if isinstance(layer, nn.Linear | nn.modules.conv._ConvNd)
        ]

    def _catch(self, name: str, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self.caught.append((name, _as_rows(inputs[0]), inputs[0].shape[1]))

    def __enter__(self) -> list[tuple[str, Tensor, int]]:
        return self.caught

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()


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


def _as_rows(z: Tensor) -> Tensor:
    """Maps (n, c, h, w) or sequences (n, t, d) as rows, averaged where they are wide."""
    if z.ndim > 2 and z[0].numel() > MOST_COLUMNS:
        z = z.flatten(2).mean(2) if z.ndim > 3 else z.mean(1)
    return z.flatten(1).contiguous().float()


def net_params(params: Params) -> Params:
    """The net's share of the parameters, without the method's own."""
    return {name: p for name, p in params.items() if not name.startswith(OWN)}


def unit_norm(z: Tensor) -> Tensor:
    """Rows flattened and scaled to length one; a row of zeros stays zero."""
    return nn.functional.normalize(z.flatten(1), dim=1, eps=1e-12)


def _has_features(module: nn.Module) -> bool:
    return callable(getattr(module, "features", None)) and callable(getattr(module, "head", None))


class _HiddenFirst(nn.Module):
    """``features`` then ``head``."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.module.features(x)  # type: ignore[operator]
        return self.module.head(hidden), hidden  # type: ignore[operator]


class _HookedHidden(nn.Module):
    """Any module: what enters its last linear layer."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
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
    was_training = net.module.training
    net.module.eval()
    try:
        with torch.inference_mode():
            call = (
                (lambda b: net.with_hidden(params, b)[1]) if hidden else (lambda b: net(params, b))
            )
            out = torch.cat([call(as_input(b)) for b in x.split(block)])
    finally:
        net.module.train(was_training)
    return out.clone()  # an inference tensor may not enter autograd; its copy may


def as_input(x: Tensor) -> Tensor:
    """Images are kept as bytes and become numbers between 0 and 1 only when they are used."""
    return x.float() / 255 if x.dtype == torch.uint8 else x
