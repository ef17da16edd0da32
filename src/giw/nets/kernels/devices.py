"""Where a net computes and in which numbers: device, threads, processes, random streams, TF32.

And the net as a function of its parameters, which computes there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.func import functional_call

from giw.checks import as_generator
from giw.threads import STREAM, one_thread

LARGE = 2_000_000  # parameters; LeNet-5 has 0.06 or 0.2 million, ResNet-18 has 11
PRECISIONS = ("auto", "float32", "bfloat16")
Params = dict[str, Tensor]


def as_device(name: str | torch.device) -> torch.device:
    """A device that is there; "auto" is the GPU if there is one."""
    if isinstance(name, str) and name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("tensors there have shapes and no values")
        torch.empty(0, device=device)  # a GPU that is not there is missed only now
    except (RuntimeError, TypeError, AssertionError) as error:
        said = (str(error).splitlines() or ["no such device"])[0]
        raise ValueError(
            f"device {name!r} cannot be used: {said}; pass 'auto', 'cpu' or the name of a GPU that "
            "is there, such as 'cuda:0'"
        ) from error
    return device


@contextmanager
def threads_for(module: nn.Module, device: torch.device) -> Iterator[None]:
    """One thread while a net of fewer than two million parameters is on a CPU.

    A step of a small net takes milliseconds at most; split over threads, it waits for the slowest
    of them at every layer, and beside other busy processes it waits ten times longer than it
    computes. The caller's settings, torch's and those of numpy's libraries, are put back.
    """
    if device.type != "cpu" or sum(p.numel() for p in module.parameters()) >= LARGE:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_thread():
            yield
    finally:
        torch.set_num_threads(before)


def default_group() -> dist.ProcessGroup | None:
    """The processes that torch.distributed knows of; None where there is only this one."""
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "distributed=True but torch.distributed has no process group; start the program with "
            "torchrun and call torch.distributed.init_process_group() first"
        )
    return dist.group.WORLD if dist.get_world_size() > 1 else None


def shared_seed(random_state: Any, ranks: dist.ProcessGroup | None) -> int:
    """A seed that all processes have; without ``random_state`` each would draw its own."""
    return int(first_says(int(as_generator(random_state).integers(2**31)), ranks))


def first_says(value: Any, ranks: dist.ProcessGroup | None) -> Any:
    """What the first process holds, on every process; tensors in it are on the host."""
    held = [value]
    if ranks is not None:
        dist.broadcast_object_list(held, group=ranks, group_src=0)
    return held[0]


@contextmanager
def seeded_stream(seed: int, device: torch.device) -> Iterator[None]:
    """The global stream of torch seeded for a while, for layers that draw from no other.

    Only the streams of the processor and of ``device`` are touched, and both are put back;
    ``torch.manual_seed`` would seed those of all GPUs, and leave them so.
    """
    cuda = device.type == "cuda"
    with STREAM, torch.random.fork_rng(devices=[device] if cuda else []):
        torch.default_generator.manual_seed(seed)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Where the global streams of the processor and of ``device`` stand."""
    state = {"cpu": torch.random.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Put them there."""
    torch.random.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


def seeded_generator(random_state: int, purpose: str) -> torch.Generator:
    """Independent streams of randomness for each purpose, from one number."""
    words = np.random.SeedSequence([random_state, *purpose.encode()]).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(words[0]) << 31 | int(words[1]) >> 1)


def can_stack(module: nn.Module, device: torch.device | str = "cuda") -> bool:
    """Whether trials of a net run side by side by default.

    They do unless the net draws random numbers of its own (dropout), or is large enough to fill a
    GPU by itself. On a CPU, which one net keeps busy, nets with convolutions go one after the
    other, which is faster; nets of small products still gain, because a step is then fewer
    operations.
    """
    random = any(isinstance(layer, nn.modules.dropout._DropoutNd) for layer in module.modules())
    convolves = any(isinstance(layer, nn.modules.conv._ConvNd) for layer in module.modules())
    size = sum(p.numel() for p in module.parameters())
    return not random and size <= LARGE and not (convolves and torch.device(device).type == "cpu")


def check_shardable(module: nn.Module, method: Any) -> None:
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
    if method.looks_ahead:
        raise ValueError(
            f"method {method.name!r} takes gradients inside of a step, and each process has those "
            "of some rows only; train in one process"
        )


# Numbers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Precision:
    """How a net computes; parameters, losses, weights and Adam are float32 in any case.

    Attributes
    ----------
    mixed : bool
        Convolutions and products in bfloat16 (autocast).
    tensor_cores : bool or None
        On CUDA, float32 products with operands rounded to ten bits (TF32). None leaves torch's
        own settings alone: TF32 in convolutions, not in products.
    channels_last : bool
        Images and convolution kernels in the memory format for which convolutions of few
        channels, and tensor cores, have fast kernels.
    """

    mixed: bool = False
    tensor_cores: bool | None = None
    channels_last: bool = False

    def forward(self, device: torch.device) -> AbstractContextManager[Any]:
        """Around a forward pass."""
        return torch.autocast(device.type, dtype=torch.bfloat16) if self.mixed else nullcontext()

    def products(self) -> AbstractContextManager[None]:
        """Around a net's own products, forwards and backwards.

        Weight estimation lies outside of it: kernel mean matching needs all 24 bits.
        """
        return nullcontext() if self.tensor_cores is None else _tensor_cores(self.tensor_cores)

    def images(self, x: Tensor) -> Tensor:
        """Images or kernels in the chosen memory format, anything else as it is."""
        if self.channels_last and x.ndim == 4:
            # unlike contiguous(), this also sets the strides by which a single channel is told
            return x.to(memory_format=torch.channels_last)
        return x


FULL = Precision()


@contextmanager
def _tensor_cores(on: bool) -> Iterator[None]:
    product, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = product.allow_tf32, convolution.allow_tf32
    product.allow_tf32 = convolution.allow_tf32 = on
    try:
        yield
    finally:
        product.allow_tf32, convolution.allow_tf32 = before


def precision_for(
    name: str, module: nn.Module, device: torch.device, *, stacked: bool = False
) -> Precision:
    """What ``TrainingConfig.precision`` means for a net on a device.

    "auto" is float32 on CPU; on CUDA bfloat16 for nets with batch normalisation, whose scale
    rounding cannot disturb, and TF32 for others. Nets side by side (``stacked``) keep the plain
    memory format, and so do nets of the user's own: they may ``view`` what only that format allows.
    """
    from giw.nets.models import LeNet5, ResNet18  # which are drawn by the stream above

    last = isinstance(module, LeNet5 | ResNet18) and not stacked
    if device.type != "cuda":
        return Precision(mixed=name == "bfloat16", channels_last=last)
    normalised = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules())
    if name == "bfloat16" or (name == "auto" and normalised):
        return Precision(mixed=True, tensor_cores=True, channels_last=last)
    return Precision(tensor_cores=name == "auto")


# A module as a pure function of its parameters ----------------------------------------------------


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
