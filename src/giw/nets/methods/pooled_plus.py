r"""Pooled with the help that GIW+ has: copies and alignment, but no split and no weights.

.. math:: \tfrac12 \frac1n \sum_i \ell_i + \tfrac12 \frac1m \sum_j \frac1K \sum_k
          \ell(T_{jk} x_j, y_j) + \kappa \gamma\, \big(\mathrm{pull} + \mathrm{push}\big)

The difference from GIW+ is what weights and split add to the rest of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from giw.nets.methods.giw_plus import GIWPlus
from giw.nets.training import Batch, Evidence, Params
from giw.support import SupportSplit


@dataclass(frozen=True)
class PooledPlus(GIWPlus):
    """GIW+ without weights, and with every membership one half.

    Parameters
    ----------
    copies, augment, noise, align, train_share
        As in :class:`giw.nets.methods.GIWPlus`; its other parameters have no effect here.
    """

    name: ClassVar[str] = "pooled_plus"
    class_shares: bool = False

    def split(self, evidence: Evidence) -> SupportSplit | None:  # type: ignore[override]
        """No split."""
        return None

    def _shares(self, params: Params, batch: Batch) -> tuple[Tensor, Tensor]:
        return torch.full_like(batch.inside, 0.5), torch.full_like(batch.alpha, 0.5)

    def _weights(
        self, params: Params, batch: Batch, n_classes: int, train_loss: Tensor, val_loss: Tensor
    ) -> Tensor:
        return torch.ones_like(train_loss).detach()
