"""Methods side by side on the same draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from giw.nets.training import (
    Method,
    OnEpoch,
    Tensors,
    TrainingConfig,
    TrainingRecord,
    pretrain,
    train,
)
from giw.paper.shift import ShiftProblem, TrialSeeds, Truth, trial_seeds
from giw.support import SupportSplit


@dataclass(frozen=True)
class Score:
    """One method in one trial.

    Attributes
    ----------
    accuracy : float
        Mean test accuracy over the last ten epochs, the paper's figure of merit.
    curve : array of shape (epochs,)
        Test accuracy after each epoch.
    alpha, true_alpha : float or None
        Share of validation points called inside by the method's split, and in truth.
    split_error : float or None
        Share of validation points on the wrong side of the split.
    """

    method: str
    trial: int
    accuracy: float
    curve: NDArray[np.float64]
    seconds: float
    alpha: float | None = None
    true_alpha: float | None = None
    split_error: float | None = None
    split: SupportSplit | None = None
    inside: NDArray[np.bool_] | None = None
    settings: dict[str, Any] = field(default_factory=dict)


MakeProblem = Callable[[TrialSeeds], tuple[ShiftProblem, Truth]]
MakeNet = Callable[[ShiftProblem, int], nn.Module]


def compare(
    make_problem: MakeProblem,
    make_net: MakeNet,
    methods: Sequence[Method],
    config: TrainingConfig,
    *,
    trials: int = 5,
    random_state: int = 0,
    device: str = "cpu",
    on_epoch: Callable[[int, str], OnEpoch] | None = None,
) -> list[Score]:
    """Train every method on every trial.

    Trial t has one draw, one noise, one initialisation, one pretraining and one order of
    batches, shared by all methods, so that differences between methods are paired.

    Parameters
    ----------
    make_problem : callable
        From the seeds of a trial to a problem and its truth; the truth goes into the scores
        and nowhere else.
    make_net : callable
        From a problem and a seed to an initialised net.
    methods : sequence of Method
    config : TrainingConfig
    trials : int, default=5
    random_state : int, default=0
    on_epoch : callable, optional
        From trial and method name to a callback for its epochs.
    """
    scores = []
    for trial in range(trials):
        seeds = trial_seeds(random_state, trial)
        problem, truth = make_problem(seeds)
        data = Tensors.from_problem(problem, device)
        module = make_net(problem, seeds.init).to(device)
        start = pretrain(
            module, data, config, random_state=seeds.batches,
            on_epoch=on_epoch(trial, "pretraining") if on_epoch else None,
        )  # fmt: skip
        for method in methods:
            record = train(
                method, module, data, config, random_state=seeds.batches, pretrained=start,
                on_epoch=on_epoch(trial, method.name) if on_epoch else None,
            )  # fmt: skip
            scores.append(score(record, trial, truth))
    return scores


def score(record: TrainingRecord, trial: int, truth: Truth) -> Score:
    """Judge a run by its test accuracy and its split by the truth."""
    judged: dict[str, Any] = {}
    if record.split is not None:
        inside = np.asarray(record.split.inside)
        judged = {
            "alpha": float(record.split.alpha),
            "true_alpha": truth.alpha,
            "split_error": float(np.mean(inside != truth.inside)),
            "split": record.split,
            "inside": truth.inside,
        }
    return Score(
        method=record.method,
        trial=trial,
        accuracy=record.final_accuracy(),
        curve=record.history["test_accuracy"],
        seconds=record.seconds,
        settings=record.settings,
        **judged,
    )
