"""One loop for all methods."""

from giw.nets.training.checkpoint import UnusableCheckpoint
from giw.nets.training.config import TrainingConfig
from giw.nets.training.forward import (
    Hidden,
    Losses,
    check_representation,
    hidden_of_both,
    losses_of_both,
    sample_losses,
)
from giw.nets.training.loop import OnEpoch, accuracy, pretrain, train
from giw.nets.training.net import FunctionalNet, as_input, net_params, predict_in_blocks, unit_norm
from giw.nets.training.pretrained import Pretrained
from giw.nets.training.protocol import (
    NO_OWN_PARAMS,
    OWN,
    Batch,
    Evidence,
    Logs,
    Method,
    Net,
    OwnParams,
    Params,
)
from giw.nets.training.record import TrainingRecord
from giw.nets.training.stopping import Interrupted, ask_to_stop
from giw.nets.training.tensors import Tensors, inputs_to
from giw.nets.training.trials import can_stack, pretrain_trials, train_trials

__all__ = [
    "NO_OWN_PARAMS",
    "OWN",
    "Batch",
    "Evidence",
    "FunctionalNet",
    "Hidden",
    "Interrupted",
    "Logs",
    "Losses",
    "Method",
    "Net",
    "OnEpoch",
    "OwnParams",
    "Params",
    "Pretrained",
    "Tensors",
    "TrainingConfig",
    "TrainingRecord",
    "UnusableCheckpoint",
    "accuracy",
    "as_input",
    "ask_to_stop",
    "can_stack",
    "check_representation",
    "hidden_of_both",
    "inputs_to",
    "losses_of_both",
    "net_params",
    "predict_in_blocks",
    "pretrain",
    "pretrain_trials",
    "sample_losses",
    "train",
    "train_trials",
    "unit_norm",
]
