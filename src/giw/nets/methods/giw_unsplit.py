r"""GIW without a split: what the paper calls GIW under class-prior shift.

.. math:: \alpha \frac1n \sum_i w_i \ell_i + (1 - \alpha) \frac1m \sum_j \ell_j , \qquad
          w \approx p_{\rm val}(z) / p_{\rm tr}(z), \quad \alpha = \tfrac12

All validation data steer the weights, and all of them are trained on. It is GIW with every
membership one half, so generalized importance weighting with a soft split that knows nothing.

Hyper-parameters: :math:`\alpha` = 0.5 from the paper's appendix; weights as for GIW.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Logs, Net, Params, check_representation, losses_of_both
from giw.objective import DynamicWeights, Weigh, effective_share, generalized_risk


@dataclass(frozen=True)
class GIWUnsplit(PlainMethod):
    """Weighted training data and all validation data, mixed in a fixed proportion.

    Parameters
    ----------
    alpha : float, default=0.5
        Share of the weighted training loss; the rest is the validation loss.
    representation : {"loss", "hidden"}, default="loss"
        What two points are compared by when weights are estimated.
    weigh : DynamicWeights
        How weights are estimated.
    """

    name: ClassVar[str] = "giw_unsplit"
    pretrains: ClassVar[bool] = True
    alpha: float = 0.5
    representation: str = "loss"
    weigh: Weigh = field(default_factory=DynamicWeights)

    def __post_init__(self) -> None:
        """Refuse shares that are none, and unknown representations."""
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha is a share and lies between 0 and 1, got {self.alpha}")
        check_representation(self.representation)

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """The two risks, mixed."""
        losses = losses_of_both(net, params, batch, representation=self.representation)
        weight = self.weigh(losses.train_z, losses.val_z)  # (n,)
        half_inside = torch.full_like(losses.val, self.alpha)  # (m,), mean alpha by design
        risk = generalized_risk(losses.train, weight, losses.val, half_inside, alpha=self.alpha)
        return risk, {"effective_share": effective_share(weight)}
