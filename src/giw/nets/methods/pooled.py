r"""Pooled: training and validation data side by side, no split and no weights.

.. math:: \tfrac12 \frac1n \sum_i \ell_i + \tfrac12 \frac1m \sum_j \ell_j

Not in the paper. It asks of every other method what its machinery adds to simply using
both sets; the mixture it minimises is not the test risk unless the two distributions agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Logs, Net, Params, losses_of_both


@dataclass(frozen=True)
class Pooled(PlainMethod):
    """Half the mean training loss plus half the mean validation loss."""

    name: ClassVar[str] = "pooled"
    pretrains: ClassVar[bool] = True

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Mean of the two mean losses."""
        losses = losses_of_both(net, params, batch, representation="loss")
        return (losses.train.mean() + losses.val.mean()) / 2, {}
