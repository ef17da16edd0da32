"""How far should training data be relied on? Asked of labels and of left-out validation points."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from giw.estimators.folds import cuts_and_rests, stratified_folds
from giw.nets.label_check import LabelCheck, check_labels
from giw.nets.methods import GIWPlus
from giw.nets.training import (
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
from giw.support import SupportSplitter


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
EASY_BY, WARY_BY = 0.5, 1.5  # standard errors by which the less expected one must be better
MOST_ROWS = 2000  # of training data, which show whether labels are flipped as well as all do


class Answer(NamedTuple):
    """What is relied on, and why."""

    chosen: Reliance
    labels: LabelCheck
    losses: dict[Reliance, NDArray[np.float64]]  # none where nothing had to be asked


@dataclass(frozen=True)
class SideBySide(GIWPlus):
    """GIW+ in several trials, each with a reliance of its own."""

    reliances: tuple[Reliance, ...] = ()

    def _shares(self, evidence: Evidence) -> tuple[float, float]:
        return self.reliances[evidence.trial]

    @property
    def _believes_losses(self) -> bool:
        return any(reliance.trust > 0 for reliance in self.reliances)

    def _default_splitter(self, evidence: Evidence) -> SupportSplitter:
        """Without what only the interval of the share inside needs, for which nobody asks here."""
        return super()._default_splitter(evidence).set_params(hide_parts=False)


def choose_reliance(
    method: GIWPlus,
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    folds: int,
    random_state: int,
    ranks: dist.ProcessGroup | None = None,
) -> Answer:
    """Ask the labels first, and validation points where those leave a doubt.

    Of many training rows a random sample takes part.
    """
    if len(data.y_train) > MOST_ROWS:
        generator = np.random.default_rng(random_state)
        some = np.sort(generator.permutation(len(data.y_train))[:MOST_ROWS])
        rows = torch.as_tensor(some, device=data.y_train.device)
        data = replace(data, x_train=data.x_train[rows], y_train=data.y_train[rows])
    labels = check_labels(module, data, config, folds=folds, random_state=random_state, ranks=ranks)
    if labels.nothing_differs:
        return Answer(EASY, labels, {})
    losses = reliance_losses(
        method, module, data, config, folds=folds, random_state=random_state, ranks=ranks
    )
    return Answer(best_reliance(losses, expected=EASY if labels.good else WARY), labels, losses)


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
    All trainings start from one pretrained net, and go side by side where the net allows it.
    """
    start = pretrain(module, data, config, random_state=random_state, ranks=ranks)
    generator = np.random.default_rng(random_state)
    fold = stratified_folds(data.y_val.cpu().numpy(), folds, generator)
    cuts = cuts_and_rests(fold, data.y_val.device)
    parts = [replace(data, x_val=data.x_val[rest], y_val=data.y_val[rest]) for _, rest in cuts]
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
        out = cuts[k][0]
        logits = predict_in_blocks(net, net.params(), data.x_val[out])
        found[reliance][fold == k] = brier_scores(logits, data.y_val[out]).cpu().numpy()
    return found


def brier_scores(logits: Tensor, y: Tensor) -> Tensor:
    """Squared distance of predicted probabilities (n, c) from what came, (n,)."""
    p = logits.double().softmax(1)
    return p.square().sum(1) - 2 * p.gather(1, y[:, None])[:, 0] + 1


def best_reliance(losses: dict[Reliance, NDArray[np.float64]], *, expected: Reliance) -> Reliance:
    """The expected one, unless the other is better by so many standard errors of the difference.

    Half a one where labels may be flipped, since to be easy about them costs much; one and a half
    where they are good, since a few validation points say less than all training labels.
    """
    gain = losses[WARY] - losses[EASY]  # of being easy
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    least = EASY_BY if expected == WARY else -WARY_BY
    return EASY if gain.mean() > least * error else WARY


def _side_by_side(method: GIWPlus, reliances: tuple[Reliance, ...]) -> SideBySide:
    settings = {field.name: getattr(method, field.name) for field in fields(method)}
    return SideBySide(**settings, reliances=reliances)
