"""Epochs seen from outside: how many to train for, and a bar that moves with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import nn

from giw.estimators.stack import stratified_folds
from giw.nets.training import Method, OnEpoch, Pretrained, Tensors, TrainingConfig, train
from giw.pages.progress import make_progress


def cross_fitted_losses(
    method: Method,
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    folds: int,
    random_state: int,
    pretrained: Pretrained | None = None,
    ranks: dist.ProcessGroup | None = None,
    watch: Callable[[str], OnEpoch] | None = None,
) -> NDArray[np.float64]:  # (epochs,)
    r"""Mean loss of validation points after each epoch, under nets that have not seen them.

    Validation points join training or steer the weights, so the loss on them always falls.
    Here every fold of them is left out in turn: it neither joins, nor steers, nor enters the
    split of the net that is judged on it. Pretraining sees no validation point and may be shared.
    """
    m = len(data.y_val)
    if m < 2:
        raise ValueError(
            f"early stopping leaves out validation points in turn and needs at least two, got {m}; "
            "turn it off"
        )
    if not 2 <= folds <= m:
        raise ValueError(
            f"early stopping needs between 2 and {m} folds, one validation point each at least; "
            f"got n_folds={folds}"
        )
    fold = stratified_folds(data.y_val.cpu().numpy(), folds, np.random.default_rng(random_state))
    total = np.zeros(config.epochs)
    for k in range(folds):
        out = torch.as_tensor(fold == k, device=data.y_val.device)
        # to a training run, the points left out are the test data
        rest = replace(
            data, x_val=data.x_val[~out], y_val=data.y_val[~out],
            x_test=data.x_val[out], y_test=data.y_val[out],
        )  # fmt: skip
        record = train(
            method, module, rest, config,
            random_state=random_state, pretrained=pretrained, ranks=ranks,
            on_epoch=watch and watch(f"{method.name} without fold {k + 1}"),
        )  # fmt: skip
        total += record.history["test_loss"] * int(out.sum())
    return total / m


def note_of(values: dict[str, float]) -> str:
    """The two values worth a glance."""
    parts = [f"loss {values['loss']:.3f}"]
    if "test_accuracy" in values:
        parts.append(f"test {100 * values['test_accuracy']:.1f} %")
    return ", ".join(parts)


@contextmanager
def training_bar(*, shown: bool) -> Iterator[Callable[[TrainingConfig, str], OnEpoch]]:
    """A bar for each training, pretraining included, from its settings and its name."""
    with make_progress(shown=shown) as progress:

        def watch(config: TrainingConfig, name: str) -> OnEpoch:
            task = progress.add_task(name, total=None, note="")

            def on_epoch(phase: str, epoch: int, values: dict[str, float]) -> None:
                total = config.pretrain_epochs if phase == "pretrain" else config.epochs
                what = f"{name}, {phase}ing"
                progress.update(
                    task, description=what, total=total, completed=epoch + 1, note=note_of(values)
                )

            return on_epoch

        yield watch
