"""From a job to its results: draw, pretrain, train, judge."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

import giw
from giw.diagnosis.share import support_share
from giw.nets.models import LeNet5, build, initialised
from giw.nets.training import (
    Pretrained,
    Tensors,
    TrainingConfig,
    TrainingRecord,
    UnusableCheckpoint,
    pretrain_trials,
    train_trials,
)
from giw.paper.plan import DEVELOPMENT, LAPTOP_POINTS, Job, Run
from giw.paper.rows import LAST, Result
from giw.paper.settings import Samples, paper_problem
from giw.paper.shifts import (
    ShiftProblem,
    Truth,
    development_samples,
    fewer_training_points,
    trial_seeds,
)
from giw.paper.variants import make_method
from giw.support import SupportSplit
from giw.support.scores import on_host


@dataclass
class Runner:
    """Runs jobs of one data set on one device; keeps what consecutive jobs can share.

    Methods of one setting start from the same pretrained nets. A killed job loses
    ``checkpoint_seconds`` of training at most, beside one epoch and pretraining.
    """

    samples: Samples
    device: str = "cpu"
    checkpoint_seconds: float = 60.0
    _shared: tuple[Any, ...] = ()  # what the following two belong to
    _prepared: list[Prepared] = field(default_factory=list)
    _pretrained: list[Pretrained] = field(default_factory=list)

    def run(self, job: Job, *, checkpoint: Path | None = None) -> list[Result]:
        """Train the trials of a job side by side and judge each of them.

        With ``checkpoint``, training goes on from what an interrupted job has left there.
        """
        run = job.first
        shared = run.data, tuple(r.trial for r in job.runs)
        if self._shared != shared:
            samples = self.samples
            if run.protocol == DEVELOPMENT:
                samples = development_samples(samples[0])
            self._prepared = [Prepared(r, samples, self.device) for r in job.runs]
            self._shared, self._pretrained = shared, []
        prepared = self._prepared
        seeds = [p.seeds.batches for p in prepared]
        trials = [p.module for p in prepared], [p.data for p in prepared], config_of(run), seeds
        truths = {seed: p.truth for seed, p in zip(seeds, prepared, strict=True)}
        splits = run.setting.splits_validation
        method = make_method(run.method, run.variant, truths, splits=splits)
        if method.pretrains and not self._pretrained:
            self._pretrained = pretrain_trials(*trials)
        work = partial(
            train_trials,
            method,
            *trials,
            pretrained=self._pretrained if method.pretrains else None,
            checkpoint=checkpoint,
            checkpoint_seconds=self.checkpoint_seconds,
        )
        try:
            records = work()
        except UnusableCheckpoint:  # of another version, or damaged: the job is done afresh
            forget(checkpoint)  # type: ignore[arg-type]
            records = work()
        about = about_this_machine(self.device)
        done = zip(job.runs, records, prepared, strict=True)
        return [judge(r, record, p, about) for r, record, p in done]


def forget(checkpoint: Path) -> None:
    """Remove what a job has saved; trials that run one after the other have a file each."""
    for path in checkpoint.parent.glob(f"{checkpoint.name}*"):
        path.unlink(missing_ok=True)


class Prepared:
    """One trial on its device: problem, truth, net and seeds."""

    def __init__(self, run: Run, samples: Samples, device: str) -> None:
        self.seeds = trial_seeds(run.seed, run.trial)
        self.problem, self.truth = make_problem(run, samples)
        self.module = make_net(run, self.problem, self.seeds.init).to(device)
        self.data = Tensors.from_problem(self.problem, device)


def make_problem(run: Run, samples: Samples) -> tuple[ShiftProblem, Truth]:
    """The problem of a run, at its scale and with the sizes that its variant asks for."""
    parts = run.changes
    problem, truth = paper_problem(
        run.dataset,
        run.case,
        run.shift,
        trial=run.trial,
        random_state=run.seed,
        protocol="honest" if run.protocol == DEVELOPMENT else run.protocol,  # type: ignore[arg-type]
        n_val=int(parts.get("n_val", run.setting.n_val)),
        draw_ten="draw_ten" in parts,
        samples=samples,
    )
    usual = min(LAPTOP_POINTS, len(problem.train)) if run.scale == "laptop" else len(problem.train)
    n_train, seed = int(parts.get("n_train", usual)), trial_seeds(run.seed, run.trial).prior
    return replace(problem, train=fewer_training_points(problem.train, n_train, seed)), truth


def make_net(run: Run, problem: ShiftProblem, seed: int) -> nn.Module:
    """The paper's net for a setting; LeNet-5 at laptop scale; grey images' wide one by variant."""
    shape, n_classes = problem.train.x.shape, problem.train.n_classes

    def wide_lenet() -> nn.Module:
        net = LeNet5(n_classes, shape[1])
        net.conv1, net.conv2 = nn.Conv2d(shape[1], 20, 5), nn.Conv2d(20, 50, 5)
        net.fc1 = nn.Linear(50 * 5 * 5, 120)
        return net

    if "wide_net" in run.changes:
        return initialised(wide_lenet, seed)
    name = "lenet5" if run.scale == "laptop" else run.setting.net
    return build(name, shape, n_classes, random_state=seed)


def config_of(run: Run) -> TrainingConfig:
    """The paper's training, with its schedule scaled to the run's number of epochs."""
    setting = run.setting
    whole = setting.epochs if "unscaled" in run.changes else run.epochs
    return TrainingConfig(
        epochs=run.epochs,
        pretrain_epochs=run.pretrain_epochs,
        weight_decay=setting.weight_decay,
        decay_every=max(1, round(whole / 4)),
        augmentation=setting.augmentation,
        epoch_of="val" if "one_step" in run.changes else "train",
        # testing takes longer than a single step, and most of an epoch at laptop scale
        test_last=LAST if run.scale == "laptop" or "one_step" in run.changes else None,
        max_calibration=0 if "all_rows" in run.changes else TrainingConfig.max_calibration,
    )


# Judging ------------------------------------------------------------------------------------------

SHOWN = ("", "osvm_text", "osvm_code")  # variants of which the report draws scores


def judge(run: Run, record: TrainingRecord, made: Prepared, about: dict[str, str]) -> Result:
    """Judge a run by its test accuracy, and its split by the truth."""
    share = record.history.get("effective_share")
    curve = record.history["test_accuracy"]
    return Result(
        run=run,
        curve=curve[~np.isnan(curve)],
        seconds=record.seconds,
        split={} if record.split is None else split_quality(record.split, made.truth),
        weights={} if share is None else {"effective_share": float(np.mean(share[-LAST:]))},
        about=about,
        extra=split_scores(run, record.split, made.truth),
        n_test=len(made.problem.test),
    )


def split_quality(split: SupportSplit, truth: Truth) -> dict[str, float]:
    """How well a split tells inside from outside."""
    inside, p_value = on_host(split.inside).astype(bool), on_host(split.p_value)
    quality = {"alpha": float(split.alpha), "true_alpha": truth.alpha}
    quality["support_share"] = support_share(split).share
    wrong = {"false_outside": ~inside[truth.inside], "false_inside": inside[~truth.inside]}
    quality |= {name: float(part.mean()) for name, part in wrong.items() if len(part)}
    if all(map(len, wrong.values())):
        quality["auroc"] = float(roc_auc_score(truth.inside, p_value))
    return quality


def split_scores(run: Run, split: SupportSplit | None, truth: Truth) -> dict[str, list[float]]:
    """Scores and p-values of validation points, with the truth, where a histogram shows them."""
    if split is None or run.shift != "support" or run.variant not in SHOWN:
        return {}
    found = {"p_value": [round(float(p), 4) for p in on_host(split.p_value)]}
    if split.score is not None:  # stored is how strange a point is
        found["score"] = [float(f"{-s:.4g}") for s in on_host(split.score)]
    return found | {"inside": [float(s) for s in truth.inside]}


def about_this_machine(device: str) -> dict[str, str]:
    """What a reader needs in order to judge or repeat a result."""
    return {
        "giw": giw.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": device_name(device),
        "commit": _commit(),
    }


def device_name(device: str) -> str:
    """What the machine calls a device."""
    name = torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor()
    return name or device


def _commit() -> str:
    """The commit of the source tree, with a plus where files differ from it; or nothing.

    A copy of the tree without its history is told by the environment variable ``GIW_COMMIT``.
    """
    root = Path(giw.__file__).resolve().parents[2]
    if "GIW_COMMIT" in os.environ or not (root / ".git").exists():
        return os.environ.get("GIW_COMMIT", "")

    def git(*words: str) -> str:
        return subprocess.check_output(["git", "-C", str(root), *words], text=True).strip()

    try:
        changed = git("status", "--porcelain", "--", "src")
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return ""
