"""What most methods have in common: nothing of their own, and no split."""

from __future__ import annotations

from torch import Tensor

from giw.nets.training import NO_OWN_PARAMS, Evidence, Net, OwnParams, Params
from giw.support import SupportSplit


class PlainMethod:
    """No parameters or memory of its own and no split; a method overrides what it needs."""

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
