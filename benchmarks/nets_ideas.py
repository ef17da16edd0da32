r"""What was tried against flipped training labels and is not in the library; see ``nets.py``.

- *Gold loss correction* (Hendrycks, Mazeika, Wilson and Gimpel, NeurIPS 2018): the row of class k
  of a matrix C is the mean prediction of the pretrained net on validation points of class k;
  training labels are fitted by :math:`C^\top p`.
- *Forgiving* losses: training labels are fitted by :math:`(1 - \epsilon) p_y + \epsilon / c`
  (forward correction of Patrini et al., CVPR 2017, with even flips). Weights see plain losses.
- *Left-out losses*: nets that each leave a part of training out give every training point a loss
  that it could not have been memorised into; points are sampled in proportion to the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from giw.nets.methods import GIWPlus, PooledPlus, TrainOnly
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import (
    Batch,
    Evidence,
    FunctionalNet,
    Net,
    Params,
    State,
    StepLoss,
    as_input,
    members,
    predict_in_blocks,
    sample_losses,
    train_trials,
)
from giw.objective import DynamicWeights
from giw.support import SupportSplit

PARTS = 3  # of the training data, each left out once
ROUNDS = 0.5  # of the epochs, for nets that leave a part out


@dataclass(frozen=True)
class Gold(State):
    """Mean predictions on validation points of each class."""

    matrix: Tensor  # (c, c)


@dataclass(frozen=True)
class GoldLoss(PlainMethod):
    """Gold loss correction on training data, plain loss on validation data, half each."""

    name: str = "gold"
    strength: float = 1.0  # the identity counts like so many points of each class

    def state(self, evidence: Evidence, split: SupportSplit | None) -> Gold:
        """The matrix, drawn to the identity where a class has few validation points."""
        probability = evidence.logits(evidence.x_val).softmax(1)
        of_class = members(evidence.y_val, probability.shape[1])  # (m, c)
        pull = self.strength * torch.eye(probability.shape[1], device=probability.device)
        summed = of_class.T @ probability + pull
        return Gold(summed / summed.sum(1, keepdim=True))

    def loss(self, net: Net, params: Params, state: Gold, batch: Batch) -> StepLoss:
        """Half the corrected training loss plus half the validation loss."""
        n = len(batch.y)
        logits = net(params, torch.cat([as_input(batch.x), as_input(batch.x_val)]))
        noisy = (logits[:n].softmax(1) @ state.matrix).clamp(min=1e-6).log()
        train = -(noisy * members(batch.y, noisy.shape[1])).sum(1).mean()
        return (train + sample_losses(logits[n:], batch.y_val).mean()) / 2, state, {}


class Mixed:
    """A net whose first n points have probabilities mixed with even ones."""

    def __init__(self, net: Net, n: int, flips: float) -> None:
        self.net, self.n, self.flips = net, n, flips

    def _mix(self, logits: Tensor) -> Tensor:
        even = self.flips / logits.shape[1]
        mixed = ((1 - self.flips) * logits[: self.n].softmax(1) + even).log()
        return torch.cat([mixed, logits[self.n :]])

    def __call__(self, params: Params, x: Tensor) -> Tensor:
        return self._mix(self.net(params, x))

    def with_hidden(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        logits, hidden = self.net.with_hidden(params, x)
        return self._mix(logits), hidden


class Forgives:
    """Fits training labels by probabilities mixed with even ones; weights see plain losses."""

    flips: float
    n_classes: int

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """The method's loss with forgiving training losses."""
        return super().loss(Mixed(net, len(batch.y), self.flips), params, state, batch)

    def _weights(self, state: Any, batch: Batch, train_loss: Tensor, val_loss: Tensor) -> Tensor:
        plain = (train_loss.neg().exp() - self.flips / self.n_classes) / (1 - self.flips)
        return super()._weights(state, batch, -plain.clamp(min=1e-6).log(), val_loss)


@dataclass(frozen=True)
class ForgivingPlus(Forgives, GIWPlus):
    """GIW+ with forgiving training losses."""

    flips: float = 0.4
    n_classes: int = 2


@dataclass(frozen=True)
class ForgivingPooled(Forgives, PooledPlus):
    """Pooled+ with forgiving training losses."""

    flips: float = 0.4
    n_classes: int = 2


def tried(found: Any) -> None:
    """Train by all of these and add them to the fits of a cell."""
    c = found.test["train_only"][0].shape[1]
    exact = DynamicWeights(bandwidth="paper")
    found.train("giw_exact", method_with("giw", exact))
    found.train("plus_exact", GIWPlus(weigh=exact))
    found.train("plus_ridge", GIWPlus(weigh=DynamicWeights(bandwidth="paper", ridge=1e-2)))
    methods = {
        "plus_forgiving": ForgivingPlus(n_classes=c),
        "pooled_forgiving": ForgivingPooled(n_classes=c),
        "pooled_forgiving_2": ForgivingPooled(n_classes=c, flips=0.2),
    }
    for name, method in methods.items():
        found.train(name, method)
    left = left_out_probabilities(found)
    weights = {"match": matched(found, left), "clean": likely_clean(found, left)}
    for name, weight in weights.items():
        found.train(f"plus_{name}", GIWPlus(), weight)
        found.train(f"pooled_{name}", PooledPlus(), weight)
    found.train("train_clean", TrainOnly(), weights["clean"])
    for name in ("plus_forgiving", "pooled_forgiving"):
        found.leave_out(name, methods[name], folds=3, share=0.5)
    found.leave_out("gold", GoldLoss(), folds=3, share=0.5)


def method_with(name: str, weigh: DynamicWeights) -> Any:
    """A method with weights of its own."""
    from giw.nets.methods import method_named

    return method_named(name, weigh=weigh)


def left_out_probabilities(found: Any) -> list[tuple[Tensor, Tensor]]:
    """Of training images under nets that left them out, (n, c); of validation images, (m, c)."""
    config = replace(
        found.config, epochs=max(1, round(ROUNDS * found.config.epochs)), pretrain_epochs=0
    )
    parts, outs = [], []
    for data in found.learnt():
        n = len(data.y_train) // PARTS * PARTS
        part = torch.arange(len(data.y_train), device=data.y_train.device) % PARTS
        for k in range(PARTS):
            rest = (part != k).nonzero()[: n - n // PARTS, 0]
            parts.append(replace(data, x_train=data.x_train[rest], y_train=data.y_train[rest]))
            outs.append(part == k)
    repeated = [value for value in found.modules for _ in range(PARTS)]
    seeds = [value for value in found.draws for _ in range(PARTS)]
    records = train_trials(TrainOnly(), repeated, parts, config, seeds)
    result = []
    for t, data in enumerate(found.data):
        mine = range(t * PARTS, (t + 1) * PARTS)
        train = val = None
        for k in mine:
            net = FunctionalNet(records[k].module)
            call = lambda x: predict_in_blocks(net, net.params(), x).softmax(1)  # noqa: B023, E731
            p = call(data.x_train[outs[k]])
            train = p.new_zeros(len(data.y_train), p.shape[1]) if train is None else train
            train[outs[k]] = p
            val = call(data.x_val) / PARTS + (0 if val is None else val)
        result.append((train, val))
    return result


def matched(found: Any, left: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """Weights that match left-out losses of training points to those of validation points."""
    weights = []
    for data, (train, val) in zip(found.data, left, strict=True):
        loss = [-p.gather(1, y[:, None])[:, 0].clamp(min=1e-6).log()
                for p, y in ((train, data.y_train), (val, data.y_val))]  # fmt: skip
        blocks = [DynamicWeights()(part, loss[1]) for part in loss[0].split(250)]
        weights.append(torch.cat(blocks).clamp(min=1e-3).float())
    return weights


def likely_clean(
    found: Any, left: Sequence[tuple[Tensor, Tensor]], flips: float = 0.4
) -> list[Tensor]:
    """Probability that a training label was not flipped, if so many are, evenly."""
    weights = []
    for data, (train, _) in zip(found.data, left, strict=True):
        p = train.gather(1, data.y_train[:, None])[:, 0]  # of the noisy label
        even = flips / train.shape[1]
        weights.append(((p - even) / p).clamp(min=0.02).float())
    return weights
