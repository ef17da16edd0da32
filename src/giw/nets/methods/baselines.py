r"""Methods that differ by what is averaged and by what learns: one sample, both, or one layer.

==============  ===============================================================  ==============
method          descends                                                         starts
==============  ===============================================================  ==============
Train-only      :math:`\frac1n \sum_i \ell_i`                                    pretrained
Val-only        :math:`\frac1m \sum_j \ell_j`                                    from scratch
Pretrain-val    the same                                                         pretrained
Surgical        the same, over the parameters of one block [1]_                  pretrained
DFR             the same plus :math:`\lambda \lVert W \rVert_1`, over the last   pretrained
                layer W [2]_
Pooled          :math:`\tfrac12 \frac1n \sum_i \ell_i +                          pretrained
                \tfrac12 \frac1m \sum_j \ell_j`
Pooled+         Pooled with validation augmentation and alignment of GIW+        pretrained
==============  ===============================================================  ==============

Val-only and Pretrain-val are the paper's. Train-only is what one has before validation data arrive.
Pooled asks of every other method what its machinery adds to simply using both sets; its mixture is
not the test risk unless the two distributions agree. What GIW+ has over Pooled+ is weights and
split.

A shift in the input, such as another colour, asks for other first layers; one in the labels for
another last layer. To tune that part alone forgets less of what many training points taught than
to tune all. Which block is the user's knowledge of the shift, as in the source's experiments; its
rules that choose by themselves are not here. DFR says that features of a net that was trained on
shifted data are often good enough, and that it is their use that is wrong. Its last layer goes on
from where pretraining left it and descends by the same optimiser as all methods here, once; the
source fits it by another solver and averages ten fits to subsets with as many points of each group.

References
----------
.. [1] Lee, Chen, Tajwar, Kumar, Yao, Liang and Finn, Surgical fine-tuning improves adaptation to
       distribution shifts, ICLR 2023.
.. [2] Kirichenko, Izmailov and Wilson, Last layer re-training is sufficient for robustness to
       spurious correlations, ICLR 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from giw.nets.methods.giw_plus import GIWPlus, PlusState
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import (
    Batch,
    Evidence,
    Net,
    Params,
    StepLoss,
    as_input,
    losses_of_both,
    members,
    sample_losses,
)
from giw.support import SupportSplit


@dataclass(frozen=True)
class TrainOnly(PlainMethod):
    """Train on the training data alone, as if nothing had shifted."""

    name: ClassVar[str] = "train_only"

    @property
    def needs_val_labels(self) -> bool:
        """They are not looked at."""
        return False

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Mean training loss."""
        return sample_losses(net(params, as_input(batch.x)), batch.y).mean(), state, {}


@dataclass(frozen=True)
class ValOnly(PlainMethod):
    """Train on the validation data alone, without pretraining."""

    name: ClassVar[str] = "val_only"
    pretrains: ClassVar[bool] = False

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Mean validation loss."""
        return sample_losses(net(params, as_input(batch.x_val)), batch.y_val).mean(), state, {}


@dataclass(frozen=True)
class PretrainVal(ValOnly):
    """Train on the validation data alone, after pretraining on the training data."""

    name: ClassVar[str] = "pretrain_val"
    pretrains: ClassVar[bool] = True


@dataclass(frozen=True)
class Pooled(PlainMethod):
    """Half the mean training loss plus half the mean validation loss."""

    name: ClassVar[str] = "pooled"

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Mean of the two mean losses."""
        losses = losses_of_both(net, params, batch, representation="loss")
        return (losses.train.mean() + losses.val.mean()) / 2, state, {}


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

    def _shares(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return torch.full_like(batch.inside, 0.5), torch.full_like(batch.alpha, 0.5)

    def _weights(
        self, state: PlusState, batch: Batch, train_loss: Tensor, val_loss: Tensor
    ) -> Tensor:
        return torch.ones_like(train_loss).detach()


BLOCKS = ("first", "middle", "last")


@dataclass(frozen=True)
class Surgical(PlainMethod):
    """Tune one block on the validation data, after pretraining on the training data.

    Parameters
    ----------
    block : {"first", "middle", "last"}, default="first"
        Which layer, or numbered part of a stack of layers, learns.
    """

    name: ClassVar[str] = "surgical"
    block: str = "first"

    def __post_init__(self) -> None:
        """Refuse unknown blocks."""
        if self.block not in BLOCKS:
            raise ValueError(f"block must be one of {', '.join(BLOCKS)}, got {self.block!r}")

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Mean validation loss; only the chosen block has a gradient."""
        blocks = parameter_blocks(params)
        place = {"first": 0, "middle": len(blocks) // 2, "last": -1}[self.block]
        params = frozen_except(params, blocks[place])
        return sample_losses(net(params, as_input(batch.x_val)), batch.y_val).mean(), state, {}


@dataclass(frozen=True)
class DFR(PlainMethod):
    """Refit the last layer, after pretraining on the training data.

    Parameters
    ----------
    data : {"val", "pooled"}, default="val"
        Validation data alone, or half and half with training data, classes balanced in either.
    penalty : float, default=0.01
        Factor of the last layer's absolute weights; more of it uses fewer features.
    """

    name: ClassVar[str] = "dfr"
    data: str = "val"
    penalty: float = 0.01

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.data not in ("val", "pooled"):
            raise ValueError(f"data must be one of val, pooled, got {self.data!r}")
        if not self.penalty >= 0:
            raise ValueError(f"penalty must not be negative, got {self.penalty}")

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Mean loss of the chosen data and the penalty; only the last layer has a gradient."""
        last = parameter_blocks(params)[-1]
        params = frozen_except(params, last)
        # a bias is no weight of a feature
        size = sum(params[name].abs().sum() for name in last if name.endswith("weight"))
        logits = net(params, as_input(batch.x_val))
        risk = sample_losses(logits, batch.y_val)
        if self.data == "val":
            return risk.mean() + self.penalty * size, state, {}
        train_risk = sample_losses(net(params, as_input(batch.x)), batch.y)
        c = logits.shape[1]
        both = balanced_mean(train_risk, batch.y, c) + balanced_mean(risk, batch.y_val, c)
        return both / 2 + self.penalty * size, state, {}


def parameter_blocks(params: Params) -> list[list[str]]:
    """Names of the net's parameters by the layer they belong to, the first one first.

    A block is a layer of the net, or a numbered part of a stack of layers: ``conv1`` is one, and
    so is ``stages.2`` with all that lies in it. Parameters that the user has frozen are in none.
    """
    blocks: dict[tuple[str, ...], list[str]] = {}
    # within vmap no tensor says that it learns; stacked nets have no frozen layers of their own
    learning = [name for name, p in params.items() if p.requires_grad] or list(params)
    for name in learning:
        parts = name.split(".")
        depth = 2 if len(parts) > 2 and parts[1].isdigit() else 1
        blocks.setdefault(tuple(parts[:depth]), []).append(name)
    return list(blocks.values())


def frozen_except(params: Params, names: list[str]) -> Params:
    """The same parameters, of which only the named ones carry a gradient."""
    return {name: p if name in names else p.detach() for name, p in params.items()}


def balanced_mean(loss: Tensor, y: Tensor, n_classes: int) -> Tensor:
    """Mean over the classes that are there of the mean loss of each, ()."""
    member = members(y, n_classes)  # (n, c)
    count = member.sum(0)
    of_class = (loss @ member.to(loss.dtype)) / torch.where(count > 0, count, 1.0)
    return of_class.sum() / (count > 0).sum()
