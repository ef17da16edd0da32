"""How far should training data be relied on? Asked of left-out validation points."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from giw.estimators.epochs import stratified_folds
from giw.methods import GIWPlus
from giw.training import (
    Evidence,
    FunctionalNet,
    Tensors,
    TrainingConfig,
    can_stack,
    predict_in_blocks,
    pretrain,
    train,
    train_trials,
)


class Reliance(NamedTuple):
    """How far training data are relied on."""

    handover: float  # share of the risk inside that they carry
    trust: float  # in their weights by losses

    def __str__(self) -> str:
        """As it stands among the losses of an estimator."""
        return f"handover {self.handover:g}, trust {self.trust:g}"


WARY = Reliance(0.2, 1.0)  # labels may be flipped: weights by losses, and validation points first
EASY = Reliance(0.5, 0.0)  # they are as good as any: no weights but those of classes
CANDIDATES = WARY, EASY
SURENESS = 0.5  # standard errors by which the easy one must be better
MOST_ROWS = 2000  # of training data, which show whether labels are flipped as well as all do


@dataclass(frozen=True)
class SideBySide(GIWPlus):
    """GIW+ in several trials, each with a reliance of its own."""

    reliances: tuple[Reliance, ...] = ()

    def _shares(self, evidence: Evidence) -> tuple[float, float]:
        return self.reliances[evidence.trial]


def reliance_losses(
    method: GIWPlus,
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    folds: int,
    random_state: int,
    ranks: dist.ProcessGroup | None = None,
) -> dict[Reliance, NDArray[np.float64]]:
    r"""Brier score of each left-out validation point for each candidate, (m,).

    .. math:: \sum_c (p_c(x_j) - 1[y_j = c])^2

    All candidates descend the same risk, as far as weights and split are right. How far they
    are, and how far the validation points get by themselves, is what the scores tell. They are
    bounded, unlike log losses: a net fitted to a few points is wrong with certainty here and there.
    All trainings start from one pretrained net, and go side by side where the net allows it. Of
    many training rows a random sample takes part.
    """
    generator = np.random.default_rng(random_state)
    if len(data.y_train) > MOST_ROWS:
        some = np.sort(generator.permutation(len(data.y_train))[:MOST_ROWS])
        rows = torch.as_tensor(some, device=data.y_train.device)
        data = replace(data, x_train=data.x_train[rows], y_train=data.y_train[rows])
    start = pretrain(module, data, config, random_state=random_state, ranks=ranks)
    fold = stratified_folds(data.y_val.cpu().numpy(), folds, generator)
    cuts = [torch.as_tensor(fold == k, device=data.y_val.device) for k in range(folds)]
    # nets side by side need as many points each; of folds that differ by one, one is not missed
    size = len(data.y_val) - int(np.bincount(fold).max())
    rests = [(~out).nonzero()[:size, 0] for out in cuts]
    parts = [replace(data, x_val=data.x_val[rest], y_val=data.y_val[rest]) for rest in rests]
    plans = [(reliance, k) for reliance in CANDIDATES for k in range(folds)]
    method = replace(method, hold_out=False)
    if can_stack(module, data.y_val.device) and ranks is None:
        records = train_trials(
            _side_by_side(method, tuple(reliance for reliance, _ in plans)),
            [copy.deepcopy(module) for _ in plans], [parts[k] for _, k in plans], config,
            [random_state] * len(plans), pretrained=[start] * len(plans),
        )  # fmt: skip
    else:
        records = [
            train(
                replace(method, **reliance._asdict()), module, parts[k], config,
                random_state=random_state, pretrained=start, ranks=ranks,
            )
            for reliance, k in plans
        ]  # fmt: skip
    found = {reliance: np.zeros(len(fold)) for reliance in CANDIDATES}
    for (reliance, k), record in zip(plans, records, strict=True):
        net = FunctionalNet(record.module)
        logits = predict_in_blocks(net, net.params(), data.x_val[cuts[k]])
        found[reliance][fold == k] = brier_scores(logits, data.y_val[cuts[k]]).cpu().numpy()
    return found


def brier_scores(logits: Tensor, y: Tensor) -> Tensor:
    """Squared distance of predicted probabilities (n, c) from what came, (n,)."""
    p = logits.double().softmax(1)
    return p.square().sum(1) - 2 * p.gather(1, y[:, None])[:, 0] + 1


def best_reliance(losses: dict[Reliance, NDArray[np.float64]]) -> Reliance:
    """The wary one, unless the easy one is better by half a standard error of the difference.

    To be easy about flipped labels costs more than to be wary of good ones.
    """
    gain = losses[WARY] - losses[EASY]
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return EASY if gain.mean() > SURENESS * error else WARY


def _side_by_side(method: GIWPlus, reliances: tuple[Reliance, ...]) -> SideBySide:
    settings = {field.name: getattr(method, field.name) for field in fields(method)}
    return SideBySide(**settings, reliances=reliances)
