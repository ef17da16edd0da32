"""Everything that shapes a training run, in one place."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from giw.checks import check_count, check_positive
from giw.nets.images import Augmentation
from giw.nets.kernels.precision import PRECISIONS


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
        if self.epoch_of not in ("train", "val"):
            raise ValueError(f"epoch_of must be one of train, val, got {self.epoch_of!r}")
        check_positive(self.learning_rate, "learning_rate")
        check_positive(self.decay, "decay")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must not be negative, got {self.weight_decay}")
        if not 0 < self.calibration_share < 1:
            raise ValueError(
                f"calibration_share must lie between 0 and 1, got {self.calibration_share}"
            )
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}"
            )

    @property
    def drop_every(self) -> int:
        """Epochs between two drops of the learning rate."""
        return self.decay_every or max(1, self.epochs // 4)

    def rate_factor(self, epoch: int) -> float:
        """What the learning rate is multiplied by in an epoch, counted from 0."""
        return float(self.decay ** (epoch // self.drop_every))

    def as_dict(self) -> dict[str, Any]:
        """All settings by name, down to plain numbers."""
        return asdict(self)
