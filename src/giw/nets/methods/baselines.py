r"""Methods that differ by what is averaged: one sample or both.

==============  ===============================================================  ==============
method          descends                                                         starts
==============  ===============================================================  ==============
Train-only      :math:`\frac1n \sum_i \ell_i`                                    pretrained
Val-only        :math:`\frac1m \sum_j \ell_j`                                    from scratch
Pretrain-val    the same                                                         pretrained
Pooled          :math:`\tfrac12 \frac1n \sum_i \ell_i +                          pretrained
                \tfrac12 \frac1m \sum_j \ell_j`
Pooled+         Pooled with validation augmentation and alignment of GIW+        pretrained
==============  ===============================================================  ==============

Val-only and Pretrain-val are the paper's. Train-only is what one has before validation data arrive.
Pooled uses both sets, without weights or split; other methods are compared with it. Its mixture is
not the test risk unless the two distributions agree. What GIW+ has over Pooled+ is weights and
split.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from giw.nets.methods.giw_plus import GIWPlus, PlusState
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import (
    Batch,
    Evidence,
    Net,
    Params,
    StepLoss,
    as_input,
    losses_of_both,
    sample_losses,
)
from giw.support import SupportSplit


@dataclass(frozen=True)
class TrainOnly(PlainMethod):
    """Train on the training data alone, as if nothing had shifted."""

    name: ClassVar[str] = "train_only"

    @property
    def needs_val_labels(self) -> bool:
        """They are not looked at."""
        return False

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Mean training loss."""
        return sample_losses(net(params, as_input(batch.x)), batch.y).mean(), state, {}


@dataclass(frozen=True)
class ValOnly(PlainMethod):
    """Train on the validation data alone, without pretraining."""

    name: ClassVar[str] = "val_only"
    pretrains: ClassVar[bool] = False

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Mean validation loss."""
        return sample_losses(net(params, as_input(batch.x_val)), batch.y_val).mean(), state, {}


@dataclass(frozen=True)
class PretrainVal(ValOnly):
    """Train on the validation data alone, after pretraining on the training data."""

    name: ClassVar[str] = "pretrain_val"
    pretrains: ClassVar[bool] = True


@dataclass(frozen=True)
class Pooled(PlainMethod):
    """Half the mean training loss plus half the mean validation loss."""

    name: ClassVar[str] = "pooled"

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Mean of the two mean losses."""
        losses = losses_of_both(net, params, batch, representation="loss")
        return (losses.train.mean() + losses.val.mean()) / 2, state, {}


@dataclass(frozen=True)
class PooledPlus(GIWPlus):
    """GIW+ without weights, and with every membership one half.

    Parameters
    ----------
    copies, noise, align, train_share
        As in :class:`giw.nets.methods.GIWPlus`; its other parameters have no effect here.
    """

    name: ClassVar[str] = "pooled_plus"

    def split(self, evidence: Evidence) -> SupportSplit | None:  # type: ignore[override]
        """No split."""
        return None

    def state(self, evidence: Evidence, split: SupportSplit | None) -> PlusState:
        """Where the numbers for copies start."""
        return replace(super().state(evidence, split), class_ratio=None)

    def _shares(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return torch.full_like(batch.inside, 0.5), torch.full_like(batch.alpha, 0.5)

    def _weights(
        self, state: PlusState, batch: Batch, train_loss: Tensor, val_loss: Tensor
    ) -> Tensor:
        return torch.ones_like(train_loss).detach()
