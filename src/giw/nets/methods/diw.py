r"""Importance weighting with weights estimated in every step, without a split.

.. math:: \alpha \frac1n \sum_i w_i \ell_i + (1 - \alpha) \frac1m \sum_j \ell_j

where z represents (x, y) by the current net: its loss value (DIW-L, the default) or its hidden
layer with the label (DIW-F).

- *DIW* [1]_: :math:`w \approx p_{\rm val}(z) / p_{\rm tr}(z)` by kernel mean matching of the
  training batch to the validation batch, :math:`\alpha = 1`. Ridge 1e-5 and upper bound 50 are the
  paper's; ``bandwidth="paper"`` is its :math:`\gamma` = median distance.
- *R-DIW*: :math:`w \approx p_{\rm val}(z) / (\eta\, p_{\rm val}(z) + (1 - \eta)\, p_{\rm tr}(z))`
  by RuLSIF [2]_. It never exceeds :math:`1 / \eta`, and where validation data lie outside the
  training support it still exists. The GIW paper names no constants: :math:`\eta` = 0.5 is that of
  Yamada et al.'s transfer learning, and the ridge 0.01 is ours, because a step has no room for the
  cross-validation that RuLSIF comes with.
- *GIW without a split*: DIW's weights and :math:`\alpha` = 0.5, what the GIW paper uses under
  class-prior shift (its appendix). It is GIW with every membership one half.

References
----------
.. [1] Fang, Lu, Niu and Sugiyama, Rethinking importance weighting for deep learning under
       distribution shift, NeurIPS 2020.
.. [2] Yamada, Suzuki, Kanamori, Hachiya and Sugiyama, Relative density-ratio estimation for robust
       distribution comparison, NeurIPS 2011.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Net, Params, StepLoss, check_representation, losses_of_both
from giw.objective import (
    DynamicRelativeWeights,
    DynamicWeights,
    Weigh,
    effective_share,
    weighted_risk,
)


@dataclass(frozen=True)
class DIW(PlainMethod):
    """Importance weighting; validation points steer the weights only.

    Parameters
    ----------
    representation : {"loss", "hidden", "eval_loss"}, default="loss"
        What two points are compared by when weights are estimated. With "eval_loss" it is losses in
        evaluation mode, and both batches are forwarded apart: for nets with batch statistics.
    weigh : DynamicWeights
        How weights are estimated.
    alpha : float, default=1.0
        Share of the weighted training loss; the rest is the validation loss.
    """

    name: ClassVar[str] = "diw"
    representation: str = "loss"
    weigh: Weigh = field(default_factory=DynamicWeights)
    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse unknown representations, and shares that are none."""
        check_representation(self.representation)
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha is a share and lies between 0 and 1, got {self.alpha}")

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """The two risks, mixed."""
        losses = losses_of_both(net, params, batch, representation=self.representation)
        weight = self.weigh(losses.train_z, losses.val_z)  # (n,)
        risk = self.alpha * weighted_risk(losses.train, weight)
        risk = risk + (1 - self.alpha) * losses.val.mean()
        return risk, state, {"effective_share": effective_share(weight)}


@dataclass(frozen=True)
class RDIW(DIW):
    """Importance weighting with bounded, relative weights.

    Parameters
    ----------
    representation, alpha
        As in :class:`DIW`.
    weigh : DynamicRelativeWeights
        How weights are estimated; ``DynamicRelativeWeights(eta=0.1)`` for another η.
    """

    name: ClassVar[str] = "r_diw"
    weigh: Weigh = field(default_factory=DynamicRelativeWeights)


@dataclass(frozen=True)
class GIWUnsplit(DIW):
    """Weighted training data and all validation data, mixed in a fixed proportion.

    Parameters
    ----------
    representation, weigh
        As in :class:`DIW`.
    alpha : float, default=0.5
        Share of the weighted training loss; the rest is the validation loss.
    """

    name: ClassVar[str] = "giw_unsplit"
    alpha: float = 0.5
