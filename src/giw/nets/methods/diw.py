r"""DIW: dynamic importance weighting (Fang, Lu, Niu and Sugiyama, NeurIPS 2020).

.. math:: \frac1n \sum_i w_i \ell_i , \qquad
          w \approx p_{\rm val}(z) / p_{\rm tr}(z)

where z represents (x, y) by the current net: its loss value (DIW-L, the default) or its hidden
layer with the label (DIW-F). Weights are estimated anew in every step by kernel mean matching
of the training batch to the validation batch. Constants: ridge 1e-5 and upper bound 50 from
the paper; ``bandwidth="paper"`` is the paper's :math:`\gamma` = median distance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from giw.nets.methods.plain import PlainMethod
from giw.nets.training import (
    Batch,
    Logs,
    Net,
    Params,
    check_representation,
    losses_of_both,
)
from giw.objective import DynamicWeights, Weigh, effective_share, weighted_risk


@dataclass(frozen=True)
class DIW(PlainMethod):
    """Importance weighting with weights estimated in every step.

    Parameters
    ----------
    representation : {"loss", "hidden"}, default="loss"
        What two points are compared by when weights are estimated.
    weigh : DynamicWeights
        How weights are estimated.
    """

    name: ClassVar[str] = "diw"
    pretrains: ClassVar[bool] = True
    representation: str = "loss"
    weigh: Weigh = field(default_factory=DynamicWeights)

    def __post_init__(self) -> None:
        """Refuse an unknown representation."""
        check_representation(self.representation)

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Weighted training loss; validation points steer the weights only."""
        losses = losses_of_both(net, params, batch, representation=self.representation)
        weight = self.weigh(losses.train_z, losses.val_z)  # (n,)
        return weighted_risk(losses.train, weight), {"effective_share": effective_share(weight)}
