"""How much of the risk inside should training data carry? Asked of left-out validation points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch.distributed as dist
from torch import nn

from giw.estimators.epochs import cross_fitted_losses
from giw.methods import GIWPlus
from giw.training import Tensors, TrainingConfig, pretrain

HANDOVERS = (0.0, 0.2, 0.8)  # validation points alone, mostly them, mostly training data


def handover_losses(
    method: GIWPlus,
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    folds: int,
    random_state: int,
    ranks: dist.ProcessGroup | None = None,
) -> dict[float, float]:
    r"""Mean loss of left-out validation points for each :math:`\kappa`, at the end of training.

    Every :math:`\kappa` descends the same risk, as far as weights and split are right. How far
    they are, and how far the validation points get by themselves, is what the loss tells.
    """
    start = pretrain(module, data, config, random_state=random_state, ranks=ranks)
    found = {}
    for handover in HANDOVERS:
        curve = cross_fitted_losses(
            replace(method, handover=handover, hold_out=False), module, data, config,
            folds=folds, random_state=random_state, pretrained=start, ranks=ranks,
        )  # fmt: skip
        found[handover] = float(curve[-1])
    return found


def best_handover(losses: dict[float, float]) -> float:
    """The one with the least loss; of equals, the one that leaves most to training data."""
    return max(losses, key=lambda handover: (-np.round(losses[handover], 12), handover))
