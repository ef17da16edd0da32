r"""What was tried against flipped training labels and is not in the library; see ``nets.py``.

- *Gold loss correction* (Hendrycks, Mazeika, Wilson and Gimpel, NeurIPS 2018): the row of class k
  of a matrix C is the mean prediction of the pretrained net on validation points of class k;
  training labels are fitted by :math:`C^\top p`.
- *Left-out losses*: nets that each leave a part of training out give every training point a loss
  that it could not have been memorised into. "match": points are sampled in proportion to weights
  that match these losses to those of validation points. "relabelled": each point gets its likeliest
  label under even flips, whose rate comes from validation points inside, and is sampled in
  proportion to that label's probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.nets.methods import GIW, GIWPlus, PooledPlus, TrainOnly
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
from giw.objective.terms import contrast
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


@dataclass(frozen=True)
class Tempered(GIWPlus):
    """GIW+ by the generalized risk."""

    name: str = "plus_tempered"
    train_share: float = 0.8

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Weighted training risk inside, what is left of the validation risk, and alignment."""
        n, m = len(batch.y), len(batch.y_val)
        x = as_input(batch.x)
        copies, phase = self._copies(state.phase, x, as_input(batch.x_val))
        y = torch.cat([batch.y, batch.y_val.repeat(len(copies) // m)])
        logits, z = net.with_hidden(params, torch.cat([x, copies]))
        losses = sample_losses(logits, y)
        weight = self._weights(state, batch, losses[:n], losses[n : n + m])
        rest = (1 - self.train_share * batch.inside).repeat(len(copies) // m)  # (K m,)
        risk = self.train_share * batch.alpha * (weight * losses[:n]).mean()
        risk = risk + (rest * losses[n:]).mean()
        like, pairs = batch.y[:, None] == y[n:], weight[:, None] * rest
        pull, push = contrast(z[:n], z[n:], like, margin=1.0, weight=pairs)
        return risk + pull + push, replace(state, phase=phase), {}


def tried(found: Any) -> None:
    """Train by all of these and add them to the fits of a cell."""
    c = found.test["train_only"][0].shape[1]
    if found.data[0].x_train.shape[1:] != (3, 32, 32) or c != 20:  # photographs take long enough
        for ridge in (0.001, 0.01):
            weigh = DynamicWeights(ridge=ridge)
            found.train(f"giw_ridge_{ridge}", GIW(weigh=weigh))
            found.train(f"plus_ridge_{ridge}", GIWPlus(weigh=weigh))
    found.train("plus_tempered", Tempered())
    left = left_out_probabilities(found)
    found.test["left_out"] = [part.test for part in left]
    weights = {"match": matched(found, left)}
    labels, weights["relabelled"] = relabelled(found, left)
    for name, weight in weights.items():
        changed = labels if name == "relabelled" else None
        found.train(f"plus_{name}", GIWPlus(), weight, changed)
        found.train(f"pooled_{name}", PooledPlus(), weight, changed)
    found.train("train_relabelled", TrainOnly(), weights["relabelled"], labels)


@dataclass(frozen=True)
class LeftOut:
    """Probabilities of nets that each leave a part of the training images out."""

    train: Tensor  # (n, c)  by the net that left the image out
    val: Tensor  # (parts, m, c)
    test: NDArray[np.float64]  # (t, c)  mean over nets


def left_out_probabilities(found: Any) -> list[LeftOut]:
    """By nets trained on two of three parts of the training images, for half of the epochs."""
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
        nets = [FunctionalNet(r.module) for r in records[t * PARTS : (t + 1) * PARTS]]

        def call(net: FunctionalNet, x: Tensor) -> Tensor:
            return predict_in_blocks(net, net.params(), x).softmax(1)

        val, test = (torch.stack([call(net, x) for net in nets]) for x in (data.x_val, data.x_test))
        train = val.new_zeros(len(data.y_train), val.shape[2])
        for net, out in zip(nets, outs[t * PARTS : (t + 1) * PARTS], strict=True):
            train[out] = call(net, data.x_train[out])
        result.append(LeftOut(train, val, test.double().mean(0).cpu().numpy()))
    return result


def matched(found: Any, left: Sequence[LeftOut]) -> list[Tensor]:
    """Weights that match left-out losses of training points to those of validation points."""
    weights = []
    for data, part in zip(found.data, left, strict=True):
        train = -part.train.gather(1, data.y_train[:, None])[:, 0].clamp(min=1e-6).log()
        of_val = part.val.gather(2, data.y_val[None, :, None].expand(PARTS, -1, 1))
        val = -of_val[..., 0].clamp(min=1e-6).log().mean(0)
        blocks = [DynamicWeights()(block, val) for block in train.split(250)]
        weights.append(torch.cat(blocks).clamp(min=1e-3).float())
    return weights


def flip_rate(y: Tensor, y_val: Tensor, inside: Tensor, left: LeftOut) -> float:
    """Share of flipped labels, if flips are even, from how often left-out nets agree with labels.

    Nets that are right about a share a of the points agree with labels of which a share e is
    flipped in (1 - e) a + e (1 - a) / (c - 1); a is that of validation points inside.
    """
    c = left.train.shape[1]
    agrees = float((left.train.argmax(1) == y).float().mean())
    right = (left.val.argmax(2) == y_val).float().mean(0)  # (m,)
    a = float((inside * right).sum() / inside.sum().clamp(min=1e-6))
    chance = (1 - a) / (c - 1)
    return min(max((a - agrees) / max(a - chance, 1e-6), 0.0), 1 - 1 / c)


def relabelled(found: Any, left: Sequence[LeftOut]) -> tuple[list[Tensor], list[Tensor]]:
    """The likeliest true label of each training point, and its probability as a weight."""
    labels, weights = [], []
    for data, part, split in zip(found.data, left, found.splits["giw_plus"], strict=True):
        inside = torch.as_tensor(split.membership).to(part.val)
        flips = flip_rate(data.y_train, data.y_val, inside, part)
        c = part.train.shape[1]
        kept = members(data.y_train, c).to(part.train)
        true = part.train * (kept * (1 - flips) + (1 - kept) * flips / (c - 1))
        sure, label = (true / true.sum(1, keepdim=True)).max(1)
        labels.append(label)
        weights.append(sure.float())
    return labels, weights
