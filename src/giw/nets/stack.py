r"""A stack of nets: methods that use the two samples in different ways, averaged.

The prediction is :math:`\sum_k a_k\, p_k(y \mid x)` over GIW+, Pooled+, fine-tuning on the
validation points, and training data alone. The weights come from validation points that each net
was trained without, by :func:`giw.estimators.stack.stack_weights`, and from a prior: twenty points
say little, and who learns from both samples is mostly above who learns from one.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from giw.estimators.stack import folds_of, stack_weights
from giw.nets.training import (
    FunctionalNet,
    Method,
    OnEpoch,
    Pretrained,
    Tensors,
    TrainingConfig,
    TrainingRecord,
    predict_in_blocks,
    pretrain,
    sample_losses,
    train,
    train_trials,
)

BLIND = "train_only"  # no validation point reaches it: one training judges it and is kept
ONE_SAMPLE = ("pretrain_val", BLIND)
RIVALS = ("pooled_plus", *ONE_SAMPLE)
LEAST_WEIGHT = 0.05  # a candidate below it is not trained again: it moves no probability by more
CHECKPOINT_SECONDS = 1.0  # epochs of a small table take less than a saving


@dataclass(frozen=True)
class NetStack:
    """Nets and their weights in the mean of probabilities."""

    weight: dict[str, float]  # of every candidate, zero where it was left out; they sum to one
    left_out_loss: dict[str, float]  # mean log-loss of validation points under nets without them
    records: dict[str, TrainingRecord]  # of candidates with a weight, trained on all points
    fold_nets: dict[str, list[nn.Module]] = field(default_factory=dict)  # without a fold each

    def shares(self) -> dict[str, tuple[nn.Module, float]]:
        """Every net by name, with its weight in the mean of probabilities.

        Half of a candidate's weight belongs to its nets of folds. They are there anyway, and a mean
        of nets that saw different points errs less than one of them, most of all where a net has
        learnt wrong labels by heart.
        """
        found = {}
        for name, record in self.records.items():
            folds = self.fold_nets.get(name, [])
            own = self.weight[name] * (0.5 if folds else 1.0)
            found[name] = record.module, own
            for k, net in enumerate(folds):
                found[fold_name(name, k)] = net, (self.weight[name] - own) / len(folds)
        return found


@dataclass(frozen=True)
class Trainings:
    """Trainings of one net on one problem, by several methods.

    Parameters
    ----------
    module, data, config, random_state, ranks
        As in :func:`giw.nets.training.train`; processes share the training of a single net only.
    checkpoint : path, optional
        Files whose names begin so keep the trainings, one each.
    watch : callable, optional
        From the settings and the name of a training to a callback for its epochs.
    """

    module: nn.Module
    data: Tensors
    config: TrainingConfig
    random_state: int
    ranks: dist.ProcessGroup | None = None
    checkpoint: str | os.PathLike[str] | None = None
    watch: Callable[[TrainingConfig, str], OnEpoch] | None = None

    def seen_as(self, name: str) -> OnEpoch | None:
        """Whom to tell of the epochs of a training."""
        return None if self.watch is None else self.watch(self.config, name)

    def alone(self, method: Method, start: Pretrained | None = None) -> TrainingRecord:
        """Train by a method on all points."""
        return train(
            method, self.module, self.data, self.config, random_state=self.random_state,
            pretrained=start, on_epoch=self.seen_as(method.name), ranks=self.ranks,
            checkpoint=self._file("" if start is None else f".{method.name}"),
            checkpoint_seconds=CHECKPOINT_SECONDS,
        )  # fmt: skip

    def loss_by_epoch(self, method: Method, folds: int) -> NDArray[np.float64]:  # (epochs,)
        """Mean loss of validation points after each epoch, under nets that have not seen them.

        Every fold of them is left out in turn: it neither joins, nor steers, nor enters the split
        of the net that is judged on it.
        """
        data, m = self.data, len(self.data.y_val)
        if not 2 <= folds <= m:
            raise ValueError(
                "early stopping leaves out validation points in turn and needs n_folds from 2 to "
                f"their number, got n_folds={folds} and {m} points; or turn it off"
            )
        total = np.zeros(self.config.epochs)
        for k, (out, rest) in enumerate(self.cuts(folds)):
            # to a training run, the points left out are the test data
            part = replace(data, x_val=data.x_val[rest], y_val=data.y_val[rest],
                           x_test=data.x_val[out], y_test=data.y_val[out])  # fmt: skip
            record = train(method, self.module, part, self.config, ranks=self.ranks,
                           random_state=self.random_state,
                           on_epoch=self.seen_as(fold_name(method.name, k)))  # fmt: skip
            total += record.history["test_loss"] * int(out.sum())
        return total / m

    def left_out(
        self, method: Method, start: Pretrained, folds: int, share: float
    ) -> tuple[NDArray[np.float64], list[nn.Module]]:
        """Log-loss of each validation point, (m,), under the net that was trained without its fold.

        And these nets, which are trained for a share of the epochs, the rate falling as much
        sooner.
        """
        data, cuts = self.data, self.cuts(folds)
        parts = [replace(data, x_val=data.x_val[rest], y_val=data.y_val[rest]) for _, rest in cuts]
        whole = self.config
        epochs, drop = (max(1, round(share * e)) for e in (whole.epochs, whole.drop_every))
        shorter = replace(self, config=replace(whole, epochs=epochs, decay_every=drop))
        records = train_trials(
            method, [copy.deepcopy(self.module) for _ in parts], parts, shorter.config,
            [self.random_state] * len(parts), pretrained=[start] * len(parts),
            on_epoch=lambda k: shorter.seen_as(fold_name(method.name, k)),
            checkpoint=self._file(f".{method.name}.left_out"),
            checkpoint_seconds=CHECKPOINT_SECONDS,
        )  # fmt: skip
        nets = [record.module for record in records]
        return losses_under(nets, data, [out for out, _ in cuts]), nets

    def cuts(self, folds: int) -> list[tuple[Tensor, Tensor]]:
        """For each fold which validation points are left out, (m,) of bool, and rows of the rest.

        Classes are in even shares. Nets side by side need as many points each, so all rests are as
        long as the shortest: of folds that differ by one, one point is not missed.
        """
        y_val, generator = self.data.y_val, np.random.default_rng(self.random_state)
        fold = torch.as_tensor(folds_of(y_val.cpu().numpy(), folds, generator))
        size = len(fold) - int(fold.bincount().max())
        outs = [(fold == k).to(y_val.device) for k in range(folds)]
        return [(out, (~out).nonzero()[:size, 0]) for out in outs]

    def _file(self, ending: str) -> str | None:
        return None if self.checkpoint is None else f"{os.fspath(self.checkpoint)}{ending}"


def fit_stack(
    trainings: Trainings, candidates: Sequence[Method], *, folds: int, share: float = 0.5
) -> NetStack:
    """Train every candidate without each fold of validation points, weigh them, train again.

    All of them start from one pretrained net. With fewer validation points than twice the folds
    none is left out, and the prior is what weighs. A single candidate is just trained.

    Parameters
    ----------
    trainings : Trainings
    candidates : sequence of Method
    folds : int
        Parts of the validation points; more of them judge nets that saw more of the points.
    share : float, default=0.5
        Of the epochs, for nets that leave points out; more of it judges by nets that are more like
        those that are kept, and takes longer.
    """
    if len(candidates) == 1:
        name = candidates[0].name
        return NetStack({name: 1.0}, {}, {name: trainings.alone(candidates[0])})
    data, records, fold_nets = trainings.data, {}, {}
    start = pretrain(
        trainings.module, data, trainings.config, random_state=trainings.random_state,
        on_epoch=trainings.seen_as("pretraining"),
    )  # fmt: skip
    loss = {candidate.name: np.empty(0) for candidate in candidates}
    if len(data.y_val) >= 2 * folds:
        for candidate in candidates:
            name = candidate.name
            if name == BLIND:
                records[name] = trainings.alone(candidate, start)
                everyone = torch.ones_like(data.y_val, dtype=torch.bool)
                loss[name] = losses_under([records[name].module], data, [everyone])
            else:
                loss[name], fold_nets[name] = trainings.left_out(candidate, start, folds, share)
    weight = weights_of(loss)
    for candidate in candidates:
        if weight[candidate.name] > 0 and candidate.name not in records:
            records[candidate.name] = trainings.alone(candidate, start)
    means = {name: float(losses.mean()) for name, losses in loss.items() if losses.size}
    kept = {name: records[name] for name in weight if weight[name] > 0}
    return NetStack(weight, means, kept, fold_nets)


def fold_name(method: str, k: int) -> str:
    """What the net is called that a method trains without a fold."""
    return f"{method} without fold {k + 1}"


def weights_of(
    loss: Mapping[str, NDArray[np.float64]],  # each (m,)
    *,
    lead: float = 4.0,
    each: float = 0.5,
) -> dict[str, float]:
    """Weights of candidates by their left-out losses.

    Parameters
    ----------
    loss : dict of str to array of shape (m,)
        Log-loss of validation points under nets that were trained without them.
    lead : float, default=4.0
        How many times more a candidate weighs that learns from both samples, before any point is
        asked; more of it hedges less.
    each : float, default=0.5
        The prior counts like so many points for each candidate; half a point is Jeffreys' prior of
        a mixture, as in the stack of tables.
    """
    prior = np.array([1.0 if name in ONE_SAMPLE else lead for name in loss])
    prior /= prior.sum()
    found = stack_weights(np.stack([*loss.values()]), prior=prior, strength=each * len(loss))
    kept = np.where(found >= min(LEAST_WEIGHT, found.max()), found, 0.0)
    return dict(zip(loss, (kept / kept.sum()).tolist(), strict=True))


def losses_under(
    modules: Sequence[nn.Module], data: Tensors, outs: Sequence[Tensor]
) -> NDArray[np.float64]:  # (m,)
    """Loss of the validation points of each fold under the net of that fold."""
    found = torch.zeros(len(data.y_val), dtype=torch.float64, device=data.y_val.device)
    for module, out in zip(modules, outs, strict=True):
        found[out] = sample_losses(logits_of(module, data.x_val[out]), data.y_val[out])
    return found.cpu().numpy()


def logits_of(module: nn.Module, x: Tensor) -> Tensor:
    """Logits of a net in evaluation mode, in double precision."""
    net = FunctionalNet(module)
    return predict_in_blocks(net, net.params(), x).double()
