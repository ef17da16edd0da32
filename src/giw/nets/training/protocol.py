"""What a method must offer to be trained, and what it is given.

A loss is a pure function of parameters, state and batch. That one rule is what lets the same file
be differentiated twice (meta-gradients), stacked over trials with ``torch.func.vmap`` and
captured in a CUDA graph: no host synchronisation, no in-place writes, no branch on a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

from torch import Tensor

from giw.support import SupportSplit

Params = dict[str, Tensor]
Logs = dict[str, Tensor]
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

    x: Tensor  # (n, ...)  training inputs
    y: Tensor  # (n,)      training labels
    x_val: Tensor  # (m, ...)  validation inputs
    y_val: Tensor  # (m,)      validation labels
    inside: Tensor  # (m,)      membership of each validation point in the training support
    alpha: Tensor  # ()        mean membership over the whole validation set
    progress: Tensor  # ()        share of training that is done, 0 to 1, for schedules


class Net(Protocol):
    """A net as a pure function of its parameters."""

    def __call__(self, params: Params, x: Tensor) -> Tensor:
        """Logits of shape (n, c)."""
        ...

    def at_rest(self, params: Params, x: Tensor) -> Tensor:
        """Logits in evaluation mode: with running statistics and without dropout."""
        ...

    def with_hidden(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, c) and unit-norm hidden representation (n, d), from one pass."""
        ...

    def buffers(self) -> Params:
        """A copy of what the net keeps besides parameters, such as running means.

        Handed in among the parameters, it takes the updates of a pass in the net's stead: so
        meta-gradients look ahead without a trace.
        """
        ...


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
        ...

    @property
    def pretrains(self) -> bool:
        """Whether plain training on the training data comes first."""
        ...

    @property
    def looks_ahead(self) -> bool:
        """Whether a step takes gradients of its own, which processes cannot share."""
        ...

    @property
    def learning_rate(self) -> float:
        """How fast Adam moves what the method learns beside the net."""
        ...

    @property
    def weight_decay(self) -> float:
        """L2 penalty on that."""
        ...

    def split(self, evidence: Evidence) -> SupportSplit | None:
        """Split the validation data, or None where the method needs no split."""
        ...

    def state(self, evidence: Evidence, split: SupportSplit | None) -> State:
        """What the method keeps besides the net, as it is before the first step.

        A run that goes on from a checkpoint asks again and then puts back the tensors it saved, so
        shapes may depend on the evidence and the net of a resumed run may be an untrained one.
        """
        ...

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """The scalar to descend, the state after the step, and scalars to log.

        One gradient of one scalar moves net and state: where they descend different things
        (meta-learning, adversaries), each term is detached from what it must not move.
        """
        ...
