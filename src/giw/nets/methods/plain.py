"""What most methods have in common: nothing of their own, and no split."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from giw.nets.training import (
    NO_OWN_PARAMS,
    Batch,
    Evidence,
    Hidden,
    Net,
    OwnParams,
    Params,
    sample_losses,
)
from giw.support import SupportSplit


class PlainMethod:
    """No parameters or memory of its own and no split; a method overrides what it needs."""

    pretrains: ClassVar[bool] = True

    @property
    def needs_val_labels(self) -> bool:
        """Whether labels of validation points are looked at."""
        return True

    def own_params(self, net: Net, params: Params, x: Tensor, random_state: int) -> OwnParams:
        """No parameters besides the net's."""
        return NO_OWN_PARAMS

    def state(self, evidence: Evidence, split: SupportSplit | None, params: Params) -> Params:
        """No memory from step to step."""
        return {}

    def split(self, evidence: Evidence) -> SupportSplit | None:
        """No split."""
        return None


def classification(both: Hidden, batch: Batch, *, with_val: bool) -> Tensor:
    """Mean training loss or, with validation points, the mean of the two mean losses."""
    on_train = sample_losses(both.train_logits, batch.y).mean()
    if not with_val:
        return on_train
    return (on_train + sample_losses(both.val_logits, batch.y_val).mean()) / 2
