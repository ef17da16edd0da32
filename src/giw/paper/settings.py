"""The twenty settings of the paper: three data sets, two cases, five shifts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from giw.nets.images import Augmentation, resize_images
from giw.paper import shifts
from giw.paper.cifar import COARSE_NAMES, PAPER_TRAINING_CLASSES, cifar20
from giw.paper.files import Folder
from giw.paper.mnist import Part, Task, mnist
from giw.paper.shifts import RED, Protocol, Sample, ShiftProblem, Truth, trial_seeds

SHIFTS = ("support", "label_noise_0.2", "label_noise_0.4", "class_prior_10", "class_prior_100")
Samples = tuple[Sample, Sample]


@dataclass(frozen=True)
class PaperSetting:
    """One column of the paper's tables, with what its appendix fixes for this one.

    What it fixes for all is the default of :class:`~giw.nets.training.TrainingConfig`.
    """

    dataset: str  # mnist, color_mnist or cifar20
    case: str  # iii or iv
    net: str  # a name of giw.nets.models.KINDS
    n_classes: int
    train_groups: tuple[int, ...]  # digits, colors or fine classes
    test_groups: tuple[int, ...]
    n_val: int
    minority: tuple[int, ...]  # classes that class-prior shift thins out
    augmentation: Augmentation | None  # in the second procedure only, never in pretraining
    shift: str = "support"  # one of SHIFTS
    weight_decay: float = 0.0
    noise_rate: float = 0.0  # total probability of leaving the true class
    prior_ratio: float = 1.0  # majority over minority class size
    pretrain_epochs: int = 10
    epochs: int = 400  # of the authors' released code; the rate is cut after each quarter

    @property
    def splits_validation(self) -> bool:
        """Under class-prior shift the paper's GIW does not split; α is 0.5."""
        return self.prior_ratio == 1


_MNIST = PaperSetting(
    dataset="mnist",
    case="iii",
    net="lenet5",
    n_classes=2,
    train_groups=(0, 1, 2, 3),
    test_groups=tuple(range(10)),
    n_val=20,
    minority=(1,),  # odd digits
    augmentation=Augmentation(rotations=(10.0, 10.0), translate=0.1, scale=(0.9, 1.1)),
)
_COLOR_MNIST = replace(
    _MNIST,
    dataset="color_mnist",
    n_classes=10,
    train_groups=(RED,),
    test_groups=(0, 1, 2),
    minority=(1, 2, 6, 7, 8),
    augmentation=None,
)
_MINORITY_SUPERCLASSES = (
    "fish fruit_and_vegetables household_electrical_devices household_furniture large_carnivores "
    "large_omnivores_and_herbivores medium_mammals people small_mammals vehicles_1"
)
_CIFAR20 = PaperSetting(
    dataset="cifar20",
    case="iii",
    net="resnet18",
    n_classes=20,
    train_groups=PAPER_TRAINING_CLASSES,
    test_groups=tuple(range(100)),
    n_val=1000,
    minority=tuple(COARSE_NAMES.index(name) for name in _MINORITY_SUPERCLASSES.split()),
    augmentation=Augmentation(
        rotations=(10.0,), flip_horizontal=True, flip_vertical=True, crop_padding=4
    ),
)
_BASES = (
    _MNIST,
    replace(_MNIST, case="iv", test_groups=tuple(range(2, 10)), n_val=16),
    _COLOR_MNIST,
    _CIFAR20,
)
WEIGHT_DECAY = {  # support shift alone, with label noise, with class-prior shift
    "mnist": {"support": 0.005, "label_noise": 0.005, "class_prior": 0.005},
    "color_mnist": {"support": 0.002, "label_noise": 0.002, "class_prior": 1e-5},
    "cifar20": {"support": 1e-4, "label_noise": 0.008, "class_prior": 1e-7},
}


def _with_shift(base: PaperSetting, shift: str) -> PaperSetting:
    kind, _, amount = shift.rpartition("_")
    return replace(
        base,
        shift=shift,
        weight_decay=WEIGHT_DECAY[base.dataset][kind or "support"],
        noise_rate=float(amount) if kind == "label_noise" else 0.0,
        prior_ratio=float(amount) if kind == "class_prior" else 1.0,
    )


PAPER_SETTINGS = tuple(_with_shift(base, shift) for base in _BASES for shift in SHIFTS)
DATASET_CASES = tuple((base.dataset, base.case) for base in _BASES)


def paper_setting(dataset: str, case: str, shift: str) -> PaperSetting:
    """One of the twenty settings by name, for example ``("mnist", "iii", "label_noise_0.2")``."""
    named = (s for s in PAPER_SETTINGS if (s.dataset, s.case, s.shift) == (dataset, case, shift))
    return next(named)


def paper_samples(dataset: str, data_dir: Folder = None) -> Samples:
    """The clean training pool and test sample of a data set, as 32 × 32 ``uint8`` images.

    Read them once and hand them to :func:`paper_problem` for every trial.
    """
    if dataset == "cifar20":
        return cifar20("train", data_dir=data_dir), cifar20("test", data_dir=data_dir)

    def side_32(part: Part) -> Sample:
        task: Task = "odd_even" if dataset == "mnist" else "digit"
        sample = mnist(part, task=task, data_dir=data_dir)
        return replace(sample, x=resize_images(torch.from_numpy(sample.x), 32).numpy())

    return side_32("train"), side_32("test")


def paper_problem(
    dataset: str,
    case: str,
    shift: str,
    *,
    trial: int,
    random_state: int = 0,
    protocol: Protocol = "honest",
    n_val: int | None = None,
    draw_ten: bool = False,
    samples: Samples,
) -> tuple[ShiftProblem, Truth]:
    """One trial of one of the paper's settings, see :func:`paper_setting`.

    Draw, noise and thinning are functions of ``trial``, from 0, and of ``random_state``, the seed
    of the whole experiment, alone, so that methods share them; noise and thinning differ by trial
    under every protocol. ``protocol`` and ``draw_ten`` are those of
    :func:`~giw.paper.shifts.support_shift`, ``n_val`` another number of validation points than the
    paper's, ``samples`` what :func:`paper_samples` has read before.
    """
    setting = paper_setting(dataset, case, shift)
    m = setting.n_val if n_val is None else n_val
    seeds = trial_seeds(random_state, trial)
    pool, test = samples
    draw: Any = {"test": test, "n_val": m, "protocol": protocol, "random_state": seeds.draw}
    if dataset == "color_mnist":
        problem, truth = shifts.color_shift(pool, **draw)
    else:
        draw |= {"train_groups": setting.train_groups, "test_groups": setting.test_groups}
        problem, truth = shifts.support_shift(pool, **draw, draw_ten=draw_ten)
    train = problem.train
    if setting.prior_ratio > 1:
        ratio, rare = setting.prior_ratio, setting.minority
        train = shifts.class_prior(train, ratio=ratio, minority=rare, random_state=seeds.prior)
    if setting.noise_rate > 0:
        train = shifts.label_noise(train, rate=setting.noise_rate, random_state=seeds.noise)
    return replace(problem, train=train), truth
