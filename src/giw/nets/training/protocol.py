"""What a method must offer to be trained, and what it is given.

A method is a pure function of parameters and batch. That one rule is what lets the same file
be differentiated twice (meta-gradients), stacked over trials with ``torch.func.vmap`` and
captured in a CUDA graph: no host synchronisation, no in-place writes, no branch on a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from torch import Tensor

from giw.support import SupportSplit

Params = dict[str, Tensor]
Logs = dict[str, Tensor]


OWN = "method."  # names of a method's own tensors start so; nets never see them


@dataclass(frozen=True)
class OwnParams:
    """A method's own parameters, names starting with ``OWN``, and how Adam moves them."""

    params: Params
    learning_rate: float = 1e-3
    weight_decay: float = 0.0


NO_OWN_PARAMS = OwnParams({})


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
    """What a method may look at, once, to decide which validation points are inside.

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
    augmented: bool = False  # whether images are moved about in every step
    layers: Callable[[Tensor], Params] | None = None  # inputs → outputs of the frozen net's layers
    weight: Tensor | None = None  # (n,) of the training rows
    trial: int = 0  # which of several that are trained side by side


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

    def own_params(self, net: Net, params: Params, x: Tensor, random_state: int) -> OwnParams:
        """Parameters of the method's own, trained beside the net's (a weighting net, say).

        ``x`` is a small batch of inputs, for shapes. Most methods have none:
        :data:`NO_OWN_PARAMS`.
        """
        ...

    def split(self, evidence: Evidence) -> SupportSplit | None:
        """Split the validation data, or None where the method needs no split."""
        ...

    def state(self, evidence: Evidence, split: SupportSplit | None, params: Params) -> Params:
        """Tensors of the method's own that no gradient moves: a memory from step to step.

        Their names start with ``OWN``. A step hands in the old values among ``params`` and gives
        the new ones back among the logs of :meth:`loss`. ``params`` are those that training
        starts from. Most methods keep none.
        """
        ...

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """The scalar to descend, and scalars to log; pure in ``params`` and ``batch``.

        ``params`` holds the net's parameters and, under names that start with ``OWN``, the
        method's; logs under such names are new values of the method's state. One gradient of one
        scalar moves both: where they descend different things (meta-learning, adversaries), each
        term is detached from the parameters it must not move.
        """
        ...
