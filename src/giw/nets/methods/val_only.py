r"""Val-only: the validation data and nothing else, from scratch.

.. math:: \frac1m \sum_j \ell_j
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Logs, Net, Params, as_input, sample_losses


@dataclass(frozen=True)
class ValOnly(PlainMethod):
    """Train on the validation data alone, without pretraining."""

    name: ClassVar[str] = "val_only"
    pretrains: ClassVar[bool] = False

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Mean validation loss."""
        return sample_losses(net(params, as_input(batch.x_val)), batch.y_val).mean(), {}
