"""What a method must offer, what it is given, and the settings and the record of a run.

A loss is a pure function of parameters, state and batch. That one rule is what lets the same file
be differentiated twice (meta-gradients), stacked over trials with ``torch.func.vmap`` and
captured in a CUDA graph: no host synchronisation, no in-place writes, no branch on a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from giw.checks import check_count, check_positive
from giw.nets.images import Augmentation
from giw.nets.kernels.devices import PRECISIONS, FunctionalNet, Params, evaluating
from giw.nets.models import as_input
from giw.support import SupportSplit

Logs = dict[str, Tensor]
Net = FunctionalNet  # as methods see it
StepLoss = tuple[Tensor, Any, Logs]  # to descend; the state after the step; scalars to log
AnyState = TypeVar("AnyState", bound="State")


@dataclass(frozen=True)
class State:
    """What a method keeps besides the net: the tensors among the fields of a subclass.

    Those that require a gradient are learnt beside the net, by the method's ``learning_rate`` and
    ``weight_decay``. The others are its memory, and take the values that the loss gives back.
    Trials side by side have their tensors stacked; all else is common to them. This one is empty.
    """

    def tensors(self) -> Params:
        """The tensors by the names of their fields."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def with_tensors(self: AnyState, tensors: Params) -> AnyState:
        """The same state with other tensors."""
        return replace(self, **tensors)


class Batch(NamedTuple):
    """What one step sees. A tuple of tensors, so that it can be stacked and sliced as one."""

    x: Tensor  # (n, ...)  training inputs, as numbers
    y: Tensor  # (n,)      training labels
    x_val: Tensor  # (m, ...)  validation inputs, as numbers
    y_val: Tensor  # (m,)      validation labels
    inside: Tensor  # (m,)      membership of each validation point in the training support
    alpha: Tensor  # ()        mean membership over the whole validation set
    progress: Tensor  # ()        share of training that is done, 0 to 1, for schedules


@dataclass(frozen=True)
class Evidence:
    """What a method may look at, once, before it trains a net.

    The net was trained on the rows marked ``seen`` and on no others, so the remaining training
    rows are to it what validation rows are: they can calibrate a split.
    """

    x_train: Tensor  # (n, ...)
    y_train: Tensor  # (n,)
    x_val: Tensor  # (m, ...)
    y_val: Tensor  # (m,)
    seen: Tensor  # (n,) bool
    hidden: Callable[[Tensor], Tensor]  # inputs → unit-norm features of the frozen net
    random_state: int
    logits: Callable[[Tensor], Tensor] | None = None  # inputs → logits of the frozen net
    layers: Callable[[Tensor], Params] | None = None  # inputs → outputs of the frozen net's layers
    weight: Tensor | None = None  # (n,) of the training rows


class Method(Protocol):
    """One way to learn from training and validation data together."""

    @property
    def name(self) -> str:
        """Short name, as used by commands and tables."""

    @property
    def pretrains(self) -> bool:
        """Whether plain training on the training data comes first."""

    @property
    def looks_ahead(self) -> bool:
        """Whether a step takes gradients of its own, which processes cannot share."""

    @property
    def learning_rate(self) -> float:
        """How fast Adam moves what the method learns beside the net."""

    @property
    def weight_decay(self) -> float:
        """L2 penalty on that."""

    def split(self, evidence: Evidence) -> SupportSplit | None:
        """Split the validation data, or None where the method needs no split."""

    def state(self, evidence: Evidence, split: SupportSplit | None) -> State:
        """What the method keeps besides the net, as it is before the first step.

        A run that goes on from a checkpoint asks again and then puts back the tensors it saved, so
        shapes may depend on the evidence and the net of a resumed run may be an untrained one.
        """

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """The scalar to descend, the state after the step, and scalars to log.

        One gradient of one scalar moves net and state: where they descend different things
        (meta-learning, adversaries), each term is detached from what it must not move.
        """


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the defaults are the paper's where the paper speaks.

    Parameters
    ----------
    epochs : int, default=100
        Passes over the training data after pretraining (the paper: 400).
    pretrain_epochs : int, default=10
        Plain passes over the training data before that, for every method but Val-only.
    batch_size : int, default=256
        Training points a step, and at most this many validation points a step.
    learning_rate : float, default=5e-4
        Of Adam.
    weight_decay : float, default=0.0
        Adam's coupled L2 penalty; more of it pulls all parameters towards zero.
    decay_every : int or None, default=None
        Multiply the learning rate by ``decay`` after each so many epochs; None means a quarter
        of ``epochs``, the paper's proportion (100 of 400).
    decay : float, default=0.1
        Factor of each such drop.
    calibration_share : float, default=0.2
        Share of training rows that pretraining does not see, so that a split can be calibrated
        on rows the features were not fitted to. They take part in training afterwards.
    max_calibration : int, default=2000
        No more rows than this are kept back; with 0 of them no split can be calibrated.
    augmentation : Augmentation or None, default=None
        Move each training and validation image about at random in every step after
        pretraining; pretraining, splitting and testing see images as they are.
    epoch_of : {"train", "val"}, default="train"
        What an epoch passes over once. With "val" it has a step for each batch of validation
        points; the training rows of a step are drawn as ever.
    test_last : int or None, default=None
        Test in so many last epochs only; None tests after every epoch.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        In which numbers nets compute; see :func:`giw.nets.kernels.devices.precision_for`.
    cuda_graph : bool, default=True
        On CUDA, record a step once and replay it. A method or net that must look at values on
        the host needs False.
    """

    epochs: int = 100
    pretrain_epochs: int = 10
    batch_size: int = 256
    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    decay_every: int | None = None
    decay: float = 0.1
    calibration_share: float = 0.2
    max_calibration: int = 2000
    augmentation: Augmentation | None = None
    epoch_of: str = "train"
    test_last: int | None = None
    precision: str = "auto"
    cuda_graph: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be trained with."""
        for name in ("epochs", "batch_size"):
            check_count(getattr(self, name), name, least=1)
        for name in ("pretrain_epochs", "max_calibration"):
            check_count(getattr(self, name), name, least=0)
        for name in ("decay_every", "test_last"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, least=1)
        for name, known in (("epoch_of", ("train", "val")), ("precision", PRECISIONS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        check_positive(self.learning_rate, "learning_rate")
        check_positive(self.decay, "decay")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must not be negative, got {self.weight_decay}")
        if not 0 < self.calibration_share < 1:
            raise ValueError(
                f"calibration_share must lie between 0 and 1, got {self.calibration_share}"
            )

    @property
    def drop_every(self) -> int:
        """Epochs between two drops of the learning rate."""
        return self.decay_every or max(1, self.epochs // 4)

    def rate_factor(self, epoch: int) -> float:
        """What the learning rate is multiplied by in an epoch, counted from 0."""
        return float(self.decay ** (epoch // self.drop_every))


@dataclass(frozen=True)
class Pretrained:
    """Where every method but Val-only starts: parameters, Adam's memory, and the rows seen."""

    params: Params
    buffers: Params
    optimizer: Params
    seen: Tensor  # (n,) bool


@dataclass(frozen=True)
class TrainingRecord:
    """The trained parameters and how they came about.

    Attributes
    ----------
    method : str
        Name of the method.
    module : torch.nn.Module
        The trained net, in evaluation mode, on the device it was trained on.
    history : dict of str to array of shape (epochs,)
        One value per epoch: ``loss``, ``learning_rate``, whatever the method logs and, where
        test data were given, ``test_accuracy`` and ``test_loss``; nan where not tested.
    split : SupportSplit or None
        How the validation data were split, where the method splits.
    seconds : float
        Wall time, pretraining not included where it was shared.
    """

    method: str
    module: nn.Module
    history: dict[str, NDArray[np.float64]]
    split: SupportSplit | None
    seconds: float

    def final_accuracy(self, last: int = 10) -> float:
        """Mean test accuracy over the last epochs, the paper's figure of merit."""
        if "test_accuracy" not in self.history:
            raise ValueError("no test data were given to this run; score predictions instead")
        return float(np.mean(self.history["test_accuracy"][-last:]))


# What nets make of many points ------------------------------------------------------------------


def predict_in_blocks(
    net: FunctionalNet, params: Params, x: Tensor, *, hidden: bool = False, block: int = 4096
) -> Tensor:
    """Logits, or hidden representation, of many points in evaluation mode, block by block."""
    with evaluating(net.module), torch.inference_mode():
        call = (lambda b: net.with_hidden(params, b)[1]) if hidden else (lambda b: net(params, b))
        out = torch.cat([call(as_input(b)) for b in x.split(block)])
    return out.clone()  # an inference tensor may not enter autograd; its copy may


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


# Losses, for methods ------------------------------------------------------------------------------


class Losses(NamedTuple):
    """Losses of both batches, and what stands for each point."""

    train: Tensor  # (n,)
    val: Tensor  # (m,)
    train_z: Tensor  # (n,) or (n, d)
    val_z: Tensor  # (m,) or (m, d)


def sample_losses(logits: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of each sample, (n,)."""
    return cross_entropy(logits, y, reduction="none")


def plain_loss(net: Net, params: Params, state: State, batch: Batch) -> StepLoss:
    """Mean training loss: what pretraining descends."""
    return sample_losses(net(params, batch.x), batch.y).mean(), state, {}


def hidden_of_both(net: Net, params: Params, batch: Batch) -> tuple[Losses, int]:
    """Losses with the unit-norm hidden layer, which carries its gradient; the number of classes."""
    (logits, z), n = net.with_hidden(params, torch.cat([batch.x, batch.x_val])), len(batch.y)
    loss = sample_losses(logits, torch.cat([batch.y, batch.y_val]))
    return Losses(loss[:n], loss[n:], z[:n], z[n:]), logits.shape[1]


def losses_of_both(net: Net, params: Params, batch: Batch, *, representation: str) -> Losses:
    """Forward both batches together and represent each point (x, y) for weighting.

    ``"loss"`` represents a point by its loss value. ``"hidden"`` represents it by the unit-norm
    hidden layer with the one-hot label beside it: two points of different labels are then as
    far apart as two orthogonal features, and weights speak of (x, y), not of x alone.
    ``"eval_loss"`` is the loss in evaluation mode, and each batch is forwarded by itself, as in the
    authors' released code; without batch statistics that is ``"loss"``.
    """
    if representation == "hidden":
        losses, c = hidden_of_both(net, params, batch)
        z = (torch.cat([z.detach(), members(y, c).to(z.dtype)], dim=1)
             for z, y in ((losses.train_z, batch.y), (losses.val_z, batch.y_val)))  # fmt: skip
        return Losses(losses.train, losses.val, *z)
    if representation == "eval_loss" and net.buffers():
        sides = (batch.x, batch.y), (batch.x_val, batch.y_val)
        with torch.no_grad(), evaluating(net.module):
            at_rest = [sample_losses(net(params, x), y) for x, y in sides]
        return Losses(*(sample_losses(net(params, x), y) for x, y in sides), *at_rest)
    logits = net(params, torch.cat([batch.x, batch.x_val]))
    loss = sample_losses(logits, torch.cat([batch.y, batch.y_val]))
    train, val = loss.split([len(batch.y), len(batch.y_val)])
    return Losses(train, val, train.detach(), val.detach())


def members(label: Tensor, n_classes: int) -> Tensor:
    """Membership in each class, (n, c); ``one_hot`` of torch looks at values and so waits."""
    return (label[:, None] == torch.arange(n_classes, device=label.device)).float()
