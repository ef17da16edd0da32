"""One run for all methods."""

from giw.nets.kernels.devices import can_stack, unit_norm
from giw.nets.models import as_input
from giw.nets.training.checkpoint import Interrupted, UnusableCheckpoint, ask_to_stop
from giw.nets.training.protocol import (
    Batch,
    Evidence,
    FunctionalNet,
    Logs,
    Losses,
    Method,
    Net,
    Params,
    State,
    StepLoss,
    TrainingConfig,
    hidden_of_both,
    losses_of_both,
    members,
    predict_in_blocks,
    sample_losses,
)
from giw.nets.training.run import (
    OnEpoch,
    Pretrained,
    TrainingRecord,
    pretrain,
    pretrain_trials,
    train,
    train_trials,
)
from giw.nets.training.step import Tensors

__all__ = [
    "Batch", "Evidence", "FunctionalNet", "Interrupted", "Logs", "Losses", "Method",
    "Net", "OnEpoch", "Params", "Pretrained", "State", "StepLoss", "Tensors", "TrainingConfig",
    "TrainingRecord", "UnusableCheckpoint", "as_input", "ask_to_stop", "can_stack",
    "hidden_of_both",
    "losses_of_both", "members", "predict_in_blocks", "pretrain", "pretrain_trials",
    "sample_losses", "train", "train_trials", "unit_norm",
]  # fmt: skip
