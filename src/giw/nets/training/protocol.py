"""What a method must offer to be trained, what it is given, and the settings of a run.

A loss is a pure function of parameters, state and batch. That one rule is what lets the same file
be differentiated twice (meta-gradients), stacked over trials with ``torch.func.vmap`` and
captured in a CUDA graph: no host synchronisation, no in-place writes, no branch on a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from torch import Tensor

from giw.checks import check_count, check_positive
from giw.nets.images import Augmentation
from giw.nets.kernels.precision import PRECISIONS
from giw.support import SupportSplit

if TYPE_CHECKING:
    from giw.nets.training.net import Net

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
        In which numbers nets compute; see :func:`giw.nets.kernels.precision.precision_for`.
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
