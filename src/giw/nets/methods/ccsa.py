r"""CCSA: classification and contrastive semantic alignment (Motiian et al., ICCV 2017).

.. math:: (1 - \gamma)\, \Big( \tfrac12 \frac1n \sum_i \ell_i + \tfrac12 \frac1m \sum_j \ell_j
          \Big) + \gamma\, \Big(
          \underset{y_i = y_j}{\rm mean}\ \tfrac12 \lVert z_i - z_j \rVert^2 +
          \underset{y_i \ne y_j}{\rm mean}\ \tfrac12 \max(0, M - \lVert z_i - z_j \rVert)^2 \Big)

over all pairs of a training point i and a validation point j, where z is the unit-norm hidden
layer. Same class: pulled together. Other class: pushed apart, up to a margin.

Hyper-parameters: :math:`\gamma` = 0.25 and margin 1 from the authors' released code. As there,
the classifier is fitted to both sets in equal parts; the paper's formula has the training set
alone, which is ``classify_val=False``. The authors draw three unlike pairs for each like pair;
here all pairs count and the two means are taken apart, so that many classes do not drown the
pull in pushes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from giw.checks import check_positive
from giw.nets.methods.plain import PlainMethod, classification
from giw.nets.training import Batch, Logs, Net, Params, hidden_of_both
from giw.objective.distances import pairwise_squared_distances


@dataclass(frozen=True)
class CCSA(PlainMethod):
    """Train on both sets while they are aligned class by class.

    Parameters
    ----------
    gamma : float, default=0.25
        Share of the alignment in the loss, 0 to 1.
    margin : float, default=1.0
        Distance beyond which points of different classes are left alone; unit-norm points
        after ReLU are at most √2 apart.
    classify_val : bool, default=True
        Fit the classifier to the validation points too, half and half.
    """

    name: ClassVar[str] = "ccsa"
    gamma: float = 0.25
    margin: float = 1.0
    classify_val: bool = True

    def __post_init__(self) -> None:
        """Refuse a share that is none and a margin that never pushes."""
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma is a share and lies between 0 and 1, got {self.gamma}")
        check_positive(self.margin, "margin")

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Classification plus alignment."""
        both = hidden_of_both(net, params, batch)
        fit = classification(both, batch, with_val=self.classify_val)
        like = batch.y[:, None] == batch.y_val  # (n, m)
        pull, push = contrast(both.train_z, both.val_z, like, margin=self.margin)
        risk = (1 - self.gamma) * fit + self.gamma * (pull + push)
        return risk, {"pull": pull, "push": push}


def contrast(
    train_z: Tensor,  # (n, d)
    val_z: Tensor,  # (m, d)
    like: Tensor,  # (n, m) bool, same class
    *,
    margin: float,
    weight: Tensor | None = None,  # (n, m), of each pair
) -> tuple[Tensor, Tensor]:  # () each
    """Mean pull over like pairs and mean push over unlike pairs; zero where there are none."""
    square = pairwise_squared_distances(train_z, val_z)  # (n, m)
    # the root has no slope at zero, and rounding none worth following near it
    apart = square > 1e-6
    distance = torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)
    weight = torch.ones_like(square) if weight is None else weight
    pull = _mean_where(like, square / 2, weight)
    return pull, _mean_where(~like, (margin - distance).clamp(min=0).square() / 2, weight)


def _mean_where(chosen: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    weight = torch.where(chosen, weight, 0.0)
    total = weight.sum()
    return (weight * values).sum() / torch.where(total > 0, total, 1.0)
