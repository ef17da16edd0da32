r"""Pretrain-val: plain pretraining on training data, then the validation data alone.

.. math:: \frac1m \sum_j \ell_j

from a start that has seen the training data. It is Val-only with a better start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from giw.nets.methods.val_only import ValOnly


@dataclass(frozen=True)
class PretrainVal(ValOnly):
    """Train on the validation data alone, after pretraining on the training data."""

    name: ClassVar[str] = "pretrain_val"
    pretrains: ClassVar[bool] = True
