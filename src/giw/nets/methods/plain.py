"""What methods have in common, and those that descend plain means of losses.

Val-only and Pretrain-val are the paper's. Train-only is what one has before validation data arrive.
Pooled uses both sets without weights or split; other methods are compared with it. Its mixture is
not the test risk unless the two distributions agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from giw.nets.training import (
    Batch,
    Evidence,
    Net,
    Params,
    State,
    StepLoss,
    as_input,
    losses_of_both,
    sample_losses,
)
from giw.support import SupportSplit


class PlainMethod:
    """No state and no split; a method overrides what it needs."""

    pretrains: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = False
    learning_rate: float = 1e-3
    weight_decay: float = 0.0

    @property
    def needs_val_labels(self) -> bool:
        """Whether labels of validation points are looked at."""
        return True

    def split(self, evidence: Evidence) -> SupportSplit | None:
        """No split."""
        return None

    def state(self, evidence: Evidence, split: SupportSplit | None) -> State:
        """Nothing besides the net."""
        return State()


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
class Perceptron(State):
    """A small net that a method learns beside the net: one hidden layer, one number out."""

    weight1: Tensor  # (width, d)
    bias1: Tensor  # (width,)
    weight2: Tensor  # (1, width)
    bias2: Tensor  # (1,)

    @classmethod
    def drawn(cls, n_in: int, *, like: Tensor, random_state: int, width: int = 100) -> Perceptron:
        """Drawn as torch draws a linear layer, uniform within 1 / √(number of inputs).

        ``like`` lends device and dtype; the draw itself is made on the CPU, the same everywhere.
        """
        generator = torch.Generator().manual_seed(random_state)

        def draw(n_inputs: int, *shape: int) -> Tensor:
            unit = 2 * torch.rand(*shape, generator=generator) - 1
            return (unit / n_inputs**0.5).to(like).requires_grad_()

        return cls(draw(n_in, width, n_in), draw(n_in, width), draw(width, 1, width),
                   draw(width, 1))  # fmt: skip

    def __call__(self, x: Tensor) -> Tensor:
        """One logit for each row of (n, d), shape (n,)."""
        hidden = linear(x, self.weight1, self.bias1).relu()  # (n, width)
        return linear(hidden, self.weight2, self.bias2)[:, 0]
