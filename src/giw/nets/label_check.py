"""Are training labels good ones? Asked of nets that have not seen them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from scipy.stats import binom
from torch import Tensor, nn

from giw.estimators.folds import cuts_and_rests, stratified_folds
from giw.nets.methods import TrainOnly
from giw.nets.training import (
    FunctionalNet,
    Tensors,
    TrainingConfig,
    predict_in_blocks,
    train,
    train_trials,
)

FEW_WRONG = 0.1  # share of contradicted labels up to which they are taken for good ones
SURPRISE = 0.05  # level at which validation labels are contradicted more often than training labels


class LabelCheck(NamedTuple):
    """How often nets that have not seen a point contradict its label."""

    train_error: float  # share of the training labels
    val_error: float  # share of the validation labels, mean over nets
    n_val: int

    @property
    def good(self) -> bool:
        """Whether few training labels can be flipped."""
        return self.train_error <= FEW_WRONG

    @property
    def nothing_differs(self) -> bool:
        """Whether training labels are good and foretell those of validation as well as their own.

        By a binomial test; where no training label is contradicted, one validation label may be.
        """
        wrong, usual = round(self.val_error * self.n_val), max(self.train_error, 1 / self.n_val)
        return self.good and bool(binom.sf(wrong - 1, self.n_val, usual) > SURPRISE)


def check_labels(
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    folds: int,
    random_state: int,
    ranks: dist.ProcessGroup | None = None,
) -> LabelCheck:
    """Fit nets plainly to all folds of the training data but one, and ask them for the rest.

    Whoever has learnt the other labels contradicts a flipped one. So the share of contradicted
    labels is at least that of flipped ones, as long as these are fewer than half and do not depend
    on the point. That asks no validation label, and rests on as many points as training has.
    """
    generator = np.random.default_rng(random_state)
    fold = stratified_folds(data.y_train.cpu().numpy(), folds, generator)
    cuts = cuts_and_rests(fold, data.y_train.device)
    parts = [replace(data, x_train=data.x_train[rest], y_train=data.y_train[rest])
             for _, rest in cuts]  # fmt: skip
    if ranks is None:
        records = train_trials(
            TrainOnly(), [copy.deepcopy(module) for _ in parts], parts, config,
            [random_state] * folds,
        )  # fmt: skip
    else:
        records = [
            train(TrainOnly(), module, part, config, random_state=random_state, ranks=ranks)
            for part in parts
        ]
    of_train, of_val = 0.0, 0.0
    for (out, _), record in zip(cuts, records, strict=True):
        of_train += _contradicted(record.module, data.x_train[out], data.y_train[out])
        of_val += _contradicted(record.module, data.x_val, data.y_val)
    n_val = len(data.y_val)
    return LabelCheck(of_train / len(fold), of_val / (folds * n_val), n_val)


def _contradicted(module: nn.Module, x: Tensor, y: Tensor) -> float:
    net = FunctionalNet(module)
    logits = predict_in_blocks(net, net.params(), x)
    return float(torch.count_nonzero(logits.argmax(1) != y))
