r"""Train-only: plain training, as if nothing had shifted.

.. math:: \frac1n \sum_i \ell_i

Not in the paper's tables. It is what one has before validation data arrive, and what an
estimator falls back to, aloud, when none are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Logs, Net, Params, as_input, sample_losses


@dataclass(frozen=True)
class TrainOnly(PlainMethod):
    """Train on the training data alone."""

    name: ClassVar[str] = "train_only"
    pretrains: ClassVar[bool] = True

    @property
    def needs_val_labels(self) -> bool:
        """They are not looked at."""
        return False

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Mean training loss."""
        return sample_losses(net(params, as_input(batch.x)), batch.y).mean(), {}
