r"""Batch normalisation, shortcut and ReLU in one pass, forwards, backwards and along a direction.

With the mean :math:`\mu` and deviation :math:`\sigma` of a channel over its m places,
:math:`\hat y = (y - \mu) / \sigma`,

.. math:: z = \max(\gamma \hat y + \beta + r,\ 0), \qquad
          \frac{\partial \hat y}{\partial y} = \frac1\sigma
          \left(I - \tfrac1m 1 1^\top - \tfrac1m \hat y \hat y^\top\right) .

That matrix is symmetric: a gradient that is pulled back and a change that is pushed forward both
need two sums per channel, of it and of it times :math:`\hat y`, and then one pass.

torch's own operations are one pass over memory and more each: on a GPU they cost a ResNet as much
as its convolutions, and their forward derivative several times that, in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from giw.nets.kernels import norm_passes as passes
from giw.nets.kernels.launch import reaches

LAST = torch.channels_last
FLOAT = torch.float32  # of weights and statistics


class FusableNorm(nn.BatchNorm2d):
    """Batch normalisation that can add a shortcut and clip at zero while it is at it.

    Where :func:`fuse_norms` has switched that on, kernels do it in one pass when trained on CUDA in
    bfloat16, channels last. Everywhere else it is the three operations of torch.
    """

    fused = False  # no parameter of the constructor: how a net is computed is not what it is

    def forward(
        self,
        x: Tensor,  # (n, c, height, width)
        shortcut: Tensor | None = None,  # of the same shape
        *,
        relu: bool = False,
    ) -> Tensor:
        """``max(norm(x) + shortcut, 0)``, or less of it."""
        if self._fuses(x, shortcut):
            x = x.contiguous(memory_format=LAST)
            shortcut = None if shortcut is None else shortcut.contiguous(memory_format=LAST)
            return self._fused(x, shortcut, relu)
        z = super().forward(x)
        z = z if shortcut is None else z + shortcut
        return z.relu() if relu else z

    @property
    def may_fuse(self) -> bool:
        """Whether it is switched on for a layer that kernels exist for, where they know how."""
        return (
            self.fused
            and self.training
            and self.num_features % passes.CHANNELS == 0
            and self.affine
            and self.track_running_stats
            and self.momentum is not None
            and self.weight.dtype == FLOAT
        )

    def _fuses(self, x: Tensor, shortcut: Tensor | None) -> bool:
        same = shortcut is None or (shortcut.dtype == x.dtype and shortcut.shape == x.shape)
        return self.may_fuse and same and suits(x)

    def _fused(self, x: Tensor, shortcut: Tensor | None, relu: bool) -> Tensor:
        out: Tensor = _Norm.apply(
            x,
            self.weight,
            self.bias,
            shortcut,
            self.running_mean,
            self.running_var,
            self.num_batches_tracked,
            relu,
            self.momentum,
            self.eps,
        )[0]
        return out


def fuse_norms(module: nn.Module, on: bool) -> None:
    """Switch kernels on or off in all layers of a net that can use them."""
    for layer in module.modules():
        if isinstance(layer, FusableNorm):
            layer.fused = on


def suits(x: Tensor) -> bool:
    """Whether kernels exist for images: bfloat16, on CUDA."""
    return (
        reaches(x)
        and x.dtype == torch.bfloat16
        and x.numel() > x.shape[1]  # torch says what is wrong with a single value per channel
        and not _is_stacked(x)
    )


def norms_are_fused(module: nn.Module) -> bool:
    """Whether a net has batch normalisation, and kernels for all of it when trained in bfloat16."""
    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    return bool(norms) and all(
        isinstance(norm, FusableNorm) and norm.may_fuse and reaches(norm.weight) for norm in norms
    )


def _is_stacked(x: Tensor) -> bool:
    """Whether ``torch.func.vmap`` hides a dimension, at any depth; kernels know nothing of it."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(x):
        if functorch.is_batchedtensor(x):
            return True
        x = functorch.get_unwrapped(x)
    return False


class _Norm(torch.autograd.Function):
    """The forward pass. The running statistics are moved in place, as torch moves them."""

    @staticmethod
    def forward(
        y: Tensor,
        weight: Tensor,
        bias: Tensor,
        shortcut: Tensor | None,
        running_mean: Tensor,
        running_var: Tensor,
        batches: Tensor,
        relu: bool,
        momentum: float,
        eps: float,
    ) -> tuple[Tensor, Tensor]:
        running = running_mean, running_var, batches
        stats = passes.moments(y, running, momentum=momentum, eps=eps)
        return passes.normalise(y, stats, weight, bias, shortcut, relu), stats

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        y, weight, bias, shortcut, *_, ctx.relu, _, _ = inputs
        out, stats = output
        ctx.added = shortcut is not None
        ctx.mark_non_differentiable(stats)
        ctx.set_materialize_grads(False)
        # without a shortcut, y itself tells where ReLU is at zero
        saved = (y, stats, weight, bias, out if ctx.added and ctx.relu else None)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, _: None) -> Any:
        if gradient is None:
            return (None,) * 10
        of_y, of_weight, of_bias, *through = _Pull.apply(gradient, *ctx.saved_tensors, ctx.relu)
        of_shortcut = (through[0] if through else gradient) if ctx.added else None
        return of_y, of_weight, of_bias, of_shortcut, *[None] * 6

    @staticmethod
    def jvp(ctx: Any, *changes: Tensor | None) -> Any:
        return _Push.apply(*changes[:4], *ctx.saved_tensors, ctx.relu), None


class _Pull(torch.autograd.Function):
    """Gradients of the input, the weight, the bias and, where ReLU clips it, the shortcut."""

    @staticmethod
    def forward(
        gradient: Tensor,
        y: Tensor,
        stats: Tensor,
        weight: Tensor,
        bias: Tensor,
        out: Tensor | None,
        relu: bool,
    ) -> tuple[Tensor, ...]:
        g, through = _like(gradient, y), None
        if relu:
            total, through = passes.clipped_sums(y, stats, weight, bias, out, g)
            g = g if through is None else through
        else:
            total = passes.sums(y, stats, g)
        of_y = passes.pull(y, stats, weight, bias, g, total, relu and through is None)
        return of_y, total[1], total[0], *([] if through is None else [through])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError(
            "fused batch normalisation has no gradient of a gradient; go forward with "
            "torch.func.jvp, or train with fused_norm=False"
        )


class _Push(torch.autograd.Function):
    """Change of the output."""

    @staticmethod
    def forward(
        of_y: Tensor | None,
        of_weight: Tensor | None,
        of_bias: Tensor | None,
        of_shortcut: Tensor | None,
        y: Tensor,
        stats: Tensor,
        weight: Tensor,
        bias: Tensor,
        out: Tensor | None,
        relu: bool,
    ) -> Tensor:
        t = torch.zeros_like(y) if of_y is None else _like(of_y, y)
        changes = (
            t,
            torch.zeros_like(weight) if of_weight is None else of_weight,
            torch.zeros_like(bias) if of_bias is None else of_bias,
            None if of_shortcut is None else _like(of_shortcut, y),
        )
        total = passes.sums(y, stats, t)
        return passes.push(y, stats, weight, bias, out, relu, changes, total)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    backward = _Pull.backward


def _like(t: Tensor, y: Tensor) -> Tensor:
    return t.to(y.dtype).contiguous(memory_format=LAST)
