"""One run for all methods."""

from giw.nets.images import as_input
from giw.nets.training.batches import Tensors
from giw.nets.training.checkpoint import Interrupted, UnusableCheckpoint, ask_to_stop
from giw.nets.training.net import (
    FunctionalNet,
    Losses,
    Net,
    check_representation,
    hidden_of_both,
    losses_of_both,
    members,
    predict_in_blocks,
    sample_losses,
    unit_norm,
)
from giw.nets.training.protocol import (
    Batch,
    Evidence,
    Logs,
    Method,
    Params,
    State,
    StepLoss,
    TrainingConfig,
)
from giw.nets.training.run import (
    OnEpoch,
    Pretrained,
    TrainingRecord,
    can_stack,
    pretrain,
    pretrain_trials,
    train,
    train_trials,
)

__all__ = [
    "Batch", "Evidence", "FunctionalNet", "Interrupted", "Logs", "Losses", "Method",
    "Net", "OnEpoch", "Params", "Pretrained", "State", "StepLoss", "Tensors", "TrainingConfig",
    "TrainingRecord", "UnusableCheckpoint", "as_input", "ask_to_stop", "can_stack",
    "check_representation", "hidden_of_both",
    "losses_of_both", "members", "predict_in_blocks", "pretrain", "pretrain_trials",
    "sample_losses", "train", "train_trials", "unit_norm",
]  # fmt: skip
