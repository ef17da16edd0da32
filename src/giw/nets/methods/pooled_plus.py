r"""Pooled with the help that GIW+ has: copies, alignment and averages, but no split and no weights.

.. math:: \tfrac12 \frac1n \sum_i \ell_i + \tfrac12 \frac1m \sum_j \frac1K \sum_k
          \ell(T_{jk} x_j, y_j) + \kappa \gamma\, \big(\mathrm{pull} + \mathrm{push}\big)

It asks of GIW+ what weights and split add to the rest of it.
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
    copies, augment, noise, average, align, handover
        As in :class:`giw.nets.methods.GIWPlus`; its other parameters have no effect here.
    """

    name: ClassVar[str] = "pooled_plus"
    weights: str = "uniform"

    def split(self, evidence: Evidence) -> SupportSplit | None:  # type: ignore[override]
        """No split."""
        return None

    def _inside(self, params: Params, batch: Batch) -> Tensor:
        return torch.full_like(batch.inside, 0.5)

    def _alpha(self, params: Params, batch: Batch) -> Tensor:
        return torch.full_like(batch.alpha, 0.5)
