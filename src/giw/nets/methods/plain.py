"""What methods have in common: nothing of their own and no split, or a small net beside the net."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from giw.nets.training import Evidence, State
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
class Perceptron(State):
    """A small net that a method learns beside the net: one hidden layer, one number out."""

    weight1: Tensor  # (width, d)
    bias1: Tensor  # (width,)
    weight2: Tensor  # (1, width)
    bias2: Tensor  # (1,)

    @classmethod
    def drawn(cls, n_in: int, width: int, *, like: Tensor, random_state: int) -> Perceptron:
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
