"""How much of the risk inside should training data carry? Asked of left-out validation points."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from giw.estimators.epochs import stratified_folds
from giw.methods import GIWPlus
from giw.training import (
    Evidence,
    FunctionalNet,
    Tensors,
    TrainingConfig,
    can_stack,
    predict_in_blocks,
    pretrain,
    sample_losses,
    train,
    train_trials,
)

HANDOVERS = (0.0, 0.2, 0.8)  # validation points alone, mostly them, mostly training data


@dataclass(frozen=True)
class SideBySide(GIWPlus):
    """GIW+ in several trials, each with a handover of its own."""

    handovers: tuple[float, ...] = ()

    def _handover(self, evidence: Evidence) -> float:
        return self.handovers[evidence.trial]


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
    they are, and how far the validation points get by themselves, is what the loss tells. All
    trainings start from one pretrained net, and go side by side where the net allows it.
    """
    start = pretrain(module, data, config, random_state=random_state, ranks=ranks)
    fold = stratified_folds(data.y_val.cpu().numpy(), folds, np.random.default_rng(random_state))
    cuts = [torch.as_tensor(fold == k, device=data.y_val.device) for k in range(folds)]
    # nets side by side need as many points each; of folds that differ by one, one is not missed
    size = len(data.y_val) - int(np.bincount(fold).max())
    rests = [(~out).nonzero()[:size, 0] for out in cuts]
    parts = [replace(data, x_val=data.x_val[rest], y_val=data.y_val[rest]) for rest in rests]
    plans = [(handover, k) for handover in HANDOVERS for k in range(folds)]
    method = replace(method, hold_out=False)
    if can_stack(module) and ranks is None:
        records = train_trials(
            _side_by_side(method, tuple(handover for handover, _ in plans)),
            [copy.deepcopy(module) for _ in plans], [parts[k] for _, k in plans], config,
            [random_state] * len(plans), pretrained=[start] * len(plans),
        )  # fmt: skip
    else:
        records = [
            train(
                replace(method, handover=handover), module, parts[k], config,
                random_state=random_state, pretrained=start, ranks=ranks,
            )
            for handover, k in plans
        ]  # fmt: skip
    found = dict.fromkeys(HANDOVERS, 0.0)
    for (handover, k), record in zip(plans, records, strict=True):
        net = FunctionalNet(record.module)
        logits = predict_in_blocks(net, net.params(), data.x_val[cuts[k]])
        total = float(sample_losses(logits, data.y_val[cuts[k]]).sum())
        found[handover] += total / len(data.y_val)
    return found


def best_handover(losses: dict[float, float]) -> float:
    """The one with the least loss; of equals, the one that leaves most to training data."""
    return max(losses, key=lambda handover: (-np.round(losses[handover], 12), handover))


def _side_by_side(method: GIWPlus, handovers: tuple[float, ...]) -> SideBySide:
    settings = {field.name: getattr(method, field.name) for field in fields(method)}
    return SideBySide(**settings, handovers=handovers)
