"""From a job to its results."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

import giw
from giw.diagnosis.share import support_share
from giw.nets.models import build
from giw.nets.training import (
    OnEpoch,
    Pretrained,
    Tensors,
    TrainingConfig,
    TrainingRecord,
    UnusableCheckpoint,
    pretrain_trials,
    train_trials,
)
from giw.paper.bench.development import development_samples
from giw.paper.bench.figure_data import for_figures, shows_images, shows_kernels
from giw.paper.bench.plan import DEVELOPMENT, Job, Run
from giw.paper.bench.store import Result
from giw.paper.bench.variants import change_problem, make_method, n_val_of
from giw.paper.readers import Sample
from giw.paper.shift import ShiftProblem, Truth, paper_problem, trial_seeds
from giw.support import SupportSplit

LAST = 10  # epochs that the paper averages over
CHECKPOINT_SECONDS = 60.0  # that a killed job loses at most, beside one epoch and pretraining
Samples = tuple[Sample, Sample]


class Runner:
    """Runs jobs of one data set on one device; keeps what consecutive jobs can share.

    Methods of one setting start from the same pretrained nets, so these are kept until the
    setting changes.

    Parameters
    ----------
    samples : pair of Sample
        Training pool and test sample, from :func:`giw.paper.shift.paper_samples`.
    device : str
    augment : bool, default=True
        Whether to augment where the paper does.
    """

    def __init__(self, samples: Samples, *, device: str = "cpu", augment: bool = True) -> None:
        self.samples = samples
        self.device = device
        self.augment = augment
        self._shared: tuple[Any, list[Prepared], list[Pretrained]] | None = None

    def run(
        self,
        job: Job,
        *,
        on_epoch: Callable[[int], OnEpoch] | None = None,
        checkpoint: Path | None = None,
    ) -> list[Result]:
        """Train the trials of a job side by side and judge each of them.

        With ``checkpoint``, training goes on from what an interrupted job has left there.
        """
        run = job.first
        config = config_of(run, augment=self.augment)
        prepared, pretrained = self._prepare(job, config)
        seeds = [p.seeds.batches for p in prepared]
        truths = {seed: p.truth for seed, p in zip(seeds, prepared, strict=True)}
        splits = run.setting.splits_validation
        method = make_method(run.method, run.variant, truths, splits=splits)

        def train() -> list[TrainingRecord]:
            return train_trials(
                method,
                [p.module for p in prepared],
                [p.data for p in prepared],
                config,
                seeds,
                pretrained=pretrained,
                on_epoch=on_epoch,
                checkpoint=checkpoint,
                checkpoint_seconds=CHECKPOINT_SECONDS,
            )

        try:
            records = train()
        except UnusableCheckpoint:  # of another version, or damaged: the job is done afresh
            if checkpoint is None:
                raise
            forget(checkpoint)
            records = train()
        about = about_this_machine(self.device)
        return [
            judge(r, record, p, about)
            for r, record, p in zip(job.runs, records, prepared, strict=True)
        ]

    def _samples(self, protocol: str) -> Samples:
        return development_samples(self.samples[0]) if protocol == DEVELOPMENT else self.samples

    def _prepare(self, job: Job, config: TrainingConfig) -> tuple[list[Prepared], list[Pretrained]]:
        shared = job.first.data, tuple(r.trial for r in job.runs)
        if self._shared is None or self._shared[0] != shared:
            samples = self._samples(job.first.protocol)
            prepared = [Prepared(r, samples, self.device) for r in job.runs]
            pretrained = pretrain_trials(
                [p.module for p in prepared],
                [p.data for p in prepared],
                config,
                [p.seeds.batches for p in prepared],
            )
            self._shared = shared, prepared, pretrained
        return self._shared[1], self._shared[2]


def forget(checkpoint: Path) -> None:
    """Remove what a job has saved; trials that run one after the other have a file each."""
    for path in checkpoint.parent.glob(f"{checkpoint.name}*"):
        path.unlink(missing_ok=True)


class Prepared:
    """One trial on its device: problem, truth, net and seeds."""

    def __init__(self, run: Run, samples: Samples, device: str) -> None:
        self.seeds = trial_seeds(run.seed, run.trial)
        self.problem, self.truth = make_problem(run, samples)
        setting = run.setting
        self.module: nn.Module = build(
            setting.net, self.problem.train.x.shape, setting.n_classes, random_state=self.seeds.init
        ).to(device)
        self.data = Tensors.from_problem(self.problem, device)


def make_problem(run: Run, samples: Samples) -> tuple[ShiftProblem, Truth]:
    """The problem of a run, with the change in size that its variant asks for."""
    problem, truth = paper_problem(
        run.dataset,
        run.case,
        run.shift,
        trial=run.trial,
        random_state=run.seed,
        protocol="honest" if run.protocol == DEVELOPMENT else run.protocol,  # type: ignore[arg-type]
        n_val=n_val_of(run.variant, run.setting.n_val),
        samples=samples,
    )
    return change_problem(problem, truth, run.variant, trial_seeds(run.seed, run.trial).prior)


def config_of(run: Run, *, augment: bool = True) -> TrainingConfig:
    """The paper's training, with its schedule scaled to the run's number of epochs."""
    setting = run.setting
    return TrainingConfig(
        epochs=run.epochs,
        pretrain_epochs=setting.pretrain_epochs,
        batch_size=setting.batch_size,
        learning_rate=setting.learning_rate,
        weight_decay=setting.weight_decay,
        decay_every=max(1, round(setting.rate_every * run.epochs / setting.epochs)),
        decay=setting.rate_factor,
        augmentation=setting.augmentation if augment else None,
    )


def judge(run: Run, record: TrainingRecord, made: Prepared, about: dict[str, str]) -> Result:
    """Judge a run by its test accuracy, and its split by the truth."""
    truth = made.truth
    share = record.history.get("effective_share")
    extra: dict[str, list[float]] = {}
    if record.split is not None:
        extra |= split_scores(record.split, truth)
    if run.trial == 0 and shows_kernels(run):  # one trial is enough to draw
        extra |= first_kernels(record.module)
    if run.trial == 0 and shows_images(run):
        extra |= example_images(made.problem)
    return Result(
        run=run,
        curve=record.history["test_accuracy"],
        seconds=record.seconds,
        split={} if record.split is None else split_quality(record.split, truth),
        weights={} if share is None else {"effective_share": float(np.mean(share[-LAST:]))},
        about=about,
        extra=for_figures(run, extra),
    )


def split_quality(split: SupportSplit, truth: Truth) -> dict[str, float]:
    """How well a split tells inside from outside."""
    inside, p_value = _numpy(split.inside).astype(bool), _numpy(split.p_value)
    quality = {
        "alpha": float(split.alpha),
        "true_alpha": truth.alpha,
        "support_share": support_share(split).share,
    }
    if truth.inside.any():
        quality["false_outside"] = float(np.mean(~inside[truth.inside]))
    if not truth.inside.all():
        quality["false_inside"] = float(np.mean(inside[~truth.inside]))
    if 0 < truth.inside.sum() < len(truth.inside):
        quality["auroc"] = float(roc_auc_score(truth.inside, p_value))
    return quality


def split_scores(split: SupportSplit, truth: Truth) -> dict[str, list[float]]:
    """Scores and p-values of validation points with the truth beside them, for histograms."""
    return {
        "p_value": [round(float(p), 4) for p in _numpy(split.p_value)],
        "score": [] if split.score is None else [float(f"{-s:.4g}") for s in _numpy(split.score)],
        "inside": [float(s) for s in truth.inside],
    }


def first_kernels(module: nn.Module) -> dict[str, list[float]]:
    """Kernels of the first convolution, flat and with their shape, or nothing without one."""
    convolutions = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d)]
    if not convolutions:
        return {}
    kernels = convolutions[0].weight.detach().float().cpu()
    return {
        "kernels": [round(float(v), 4) for v in kernels.flatten()],
        "kernels_shape": [float(size) for size in kernels.shape],
    }


def example_images(problem: ShiftProblem, count: int = 8) -> dict[str, list[float]]:
    """A few training and validation images at half size, flat and with their shape."""
    found: dict[str, list[float]] = {}
    for name, sample in (("train_images", problem.train), ("val_images", problem.val)):
        images = sample.x[:count, :, ::2, ::2]
        found[name] = [float(v) for v in images.flatten()]
        found[f"{name}_shape"] = [float(size) for size in images.shape]
    return found


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
    """The commit of the source tree, with a plus where files differ from it; or nothing."""
    root = Path(giw.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    return commit + "+" * bool(_git(root, "status", "--porcelain", "--", "src"))


def _git(root: Path, *arguments: str) -> str:
    """What git says, or nothing where it is missing or refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()


def _numpy(value: Any) -> np.ndarray:
    return value.cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
