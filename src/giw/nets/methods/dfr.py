r"""DFR: deep feature reweighting, the last layer refitted on frozen features [1]_.

.. math:: \frac1m \sum_j \ell_j + \lambda \lVert W \rVert_1 \qquad \text{or} \qquad
          \tfrac12 \frac1n \sum_i c_i \ell_i + \tfrac12 \frac1m \sum_j c_j \ell_j
          + \lambda \lVert W \rVert_1

Not in the paper. Features of a net that was trained on shifted data are often good enough, and it
is their use that is wrong: so all layers but the last keep what pretraining gave them, and W is
the last layer's weight. The first form sees validation data alone; the second pools them with
training data, where :math:`c` balances classes on either side.

Differences from the source: the last layer goes on from where pretraining left it and descends by
the same optimiser as all methods here, once; the source fits it by another solver and averages ten
fits to subsets with as many points of each group.

References
----------
.. [1] Kirichenko, Izmailov and Wilson, Last layer re-training is sufficient for robustness to
       spurious correlations, ICLR 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from giw.nets.methods.blocks import frozen_except, parameter_blocks
from giw.nets.methods.giw_plus import members
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Logs, Net, Params, as_input, sample_losses

DATA = ("val", "pooled")


@dataclass(frozen=True)
class DFR(PlainMethod):
    """Refit the last layer, after pretraining on the training data.

    Parameters
    ----------
    data : {"val", "pooled"}, default="val"
        Validation data alone, or both sets with balanced classes.
    penalty : float, default=0.01
        Factor of the last layer's absolute weights; more of it uses fewer features.
    """

    name: ClassVar[str] = "dfr"
    pretrains: ClassVar[bool] = True
    data: str = "val"
    penalty: float = 0.01

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.data not in DATA:
            raise ValueError(f"data must be one of {', '.join(DATA)}, got {self.data!r}")
        if not self.penalty >= 0:
            raise ValueError(f"penalty must not be negative, got {self.penalty}")

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Mean loss of the chosen data and the penalty; only the last layer has a gradient."""
        last = parameter_blocks(params)[-1]
        params = frozen_except(params, last)
        # a bias is no weight of a feature
        size = sum(params[name].abs().sum() for name in last if name.endswith("weight"))
        logits = net(params, as_input(batch.x_val))
        risk = sample_losses(logits, batch.y_val)
        if self.data == "val":
            return risk.mean() + self.penalty * size, {}
        train_logits = net(params, as_input(batch.x))
        train_risk = sample_losses(train_logits, batch.y)
        c = logits.shape[1]
        both = balanced_mean(train_risk, batch.y, c) + balanced_mean(risk, batch.y_val, c)
        return both / 2 + self.penalty * size, {}


def balanced_mean(loss: Tensor, y: Tensor, n_classes: int) -> Tensor:
    """Mean over the classes that are there of the mean loss of each, ()."""
    member = members(y, n_classes)  # (n, c)
    count = member.sum(0)
    of_class = (loss @ member.to(loss.dtype)) / torch.where(count > 0, count, 1.0)
    return of_class.sum() / (count > 0).sum()
