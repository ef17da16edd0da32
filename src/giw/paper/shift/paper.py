"""The twenty settings of the paper: three data sets, two cases, five shifts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import torch

from giw.nets.augmentation import CIFAR_AUGMENTATION, MNIST_AUGMENTATION, Augmentation
from giw.nets.images import resize_images
from giw.paper.readers.cifar100 import cifar20
from giw.paper.readers.cifar100_classes import COARSE_NAMES, PAPER_TRAINING_CLASSES
from giw.paper.readers.mnist import RED, mnist
from giw.paper.readers.sample import Sample
from giw.paper.shift.class_prior import class_prior
from giw.paper.shift.color import color_shift
from giw.paper.shift.dealing import Draw, Protocol
from giw.paper.shift.label_noise import label_noise
from giw.paper.shift.problem import ShiftProblem, Truth
from giw.paper.shift.support import support_shift
from giw.paper.shift.trial import trial_seeds

SHIFTS = ("support", "label_noise_0.2", "label_noise_0.4", "class_prior_10", "class_prior_100")


@dataclass(frozen=True)
class PaperSetting:
    """One column of the paper's tables, with everything its appendix fixes.

    The learning rate starts at ``learning_rate`` after pretraining and is multiplied by
    ``rate_factor`` every ``rate_every`` epochs; an epoch is one pass over the training data. The
    number of epochs is that of the authors' released code.
    """

    dataset: str  # mnist, color_mnist or cifar20
    case: str  # iii or iv
    shift: str  # one of SHIFTS
    net: str  # a name of giw.nets.models.NETS
    n_classes: int
    train_groups: tuple[int, ...]  # digits, colors or fine classes
    test_groups: tuple[int, ...]
    n_val: int
    weight_decay: float
    noise_rate: float  # total probability of leaving the true class
    prior_ratio: float  # majority over minority class size
    minority: tuple[int, ...]  # classes that class-prior shift thins out
    augmentation: Augmentation | None  # in the second procedure only, never in pretraining
    split_layer: str  # the layer, after ReLU or pooling, whose unit-norm output is split
    batch_size: int = 256
    learning_rate: float = 5e-4
    rate_every: int = 100
    rate_factor: float = 0.1
    pretrain_epochs: int = 10
    epochs: int = 400

    @property
    def splits_validation(self) -> bool:
        """Under class-prior shift the paper's GIW does not split; α is 0.5."""
        return self.prior_ratio == 1

    @property
    def name(self) -> str:
        """Data set, case and shift in one word."""
        return f"{self.dataset}-{self.case}-{self.shift}"


_MINORITY_SUPERCLASSES = (
    *("fish", "fruit_and_vegetables", "household_electrical_devices", "household_furniture"),
    *("large_carnivores", "large_omnivores_and_herbivores", "medium_mammals", "people"),
    *("small_mammals", "vehicles_1"),
)
_SHARED = {"shift": "support", "noise_rate": 0.0, "prior_ratio": 1.0, "weight_decay": 0.0}
_MNIST_III = PaperSetting(
    dataset="mnist",
    case="iii",
    net="lenet5",
    n_classes=2,
    train_groups=(0, 1, 2, 3),
    test_groups=tuple(range(10)),
    n_val=20,
    minority=(1,),  # odd digits
    augmentation=MNIST_AUGMENTATION,
    split_layer="fc1",
    **_SHARED,  # type: ignore[arg-type]
)
_BASES = (
    _MNIST_III,
    replace(_MNIST_III, case="iv", test_groups=tuple(range(2, 10)), n_val=16),
    PaperSetting(
        dataset="color_mnist",
        case="iii",
        net="lenet5",
        n_classes=10,
        train_groups=(RED,),
        test_groups=(0, 1, 2),
        n_val=20,
        minority=(1, 2, 6, 7, 8),
        augmentation=None,
        split_layer="fc1",
        **_SHARED,  # type: ignore[arg-type]
    ),
    PaperSetting(
        dataset="cifar20",
        case="iii",
        net="resnet18",
        n_classes=20,
        train_groups=PAPER_TRAINING_CLASSES,
        test_groups=tuple(range(100)),
        n_val=1000,
        minority=tuple(COARSE_NAMES.index(name) for name in _MINORITY_SUPERCLASSES),
        augmentation=CIFAR_AUGMENTATION,
        split_layer="pool",
        **_SHARED,  # type: ignore[arg-type]
    ),
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


PAPER_SETTINGS: tuple[PaperSetting, ...] = tuple(
    _with_shift(base, shift) for base in _BASES for shift in SHIFTS
)


def paper_setting(dataset: str, case: str, shift: str) -> PaperSetting:
    """One of the twenty settings by name, for example ``("mnist", "iii", "label_noise_0.2")``."""
    for setting in PAPER_SETTINGS:
        if (setting.dataset, setting.case, setting.shift) == (dataset, case, shift):
            return setting
    cases = ", ".join(f"{base.dataset} {base.case}" for base in _BASES)
    raise ValueError(
        f"the paper has {cases}, each with {', '.join(SHIFTS)}; got {dataset} {case}, {shift}"
    )


def paper_samples(
    dataset: str, data_dir: str | os.PathLike[str] | None = None
) -> tuple[Sample, Sample]:
    """The clean training pool and test sample of a data set, as 32 × 32 ``uint8`` images.

    Read them once and hand them to :func:`paper_problem` for every trial.
    """
    if dataset == "cifar20":
        return cifar20("train", data_dir=data_dir), cifar20("test", data_dir=data_dir)
    if dataset not in ("mnist", "color_mnist"):
        raise ValueError(f"dataset is mnist, color_mnist or cifar20, got {dataset!r}")
    task = "odd_even" if dataset == "mnist" else "digit"
    pool = mnist("train", task=task, data_dir=data_dir)  # type: ignore[arg-type]
    test = mnist("test", task=task, data_dir=data_dir)  # type: ignore[arg-type]
    return _side_32(pool), _side_32(test)


def _side_32(sample: Sample) -> Sample:
    return replace(sample, x=resize_images(torch.from_numpy(sample.x), 32).numpy())


def paper_problem(
    dataset: str,
    case: str,
    shift: str,
    *,
    trial: int,
    random_state: int = 0,
    protocol: Protocol = "honest",
    draw: Draw = "stratified",
    n_val: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    samples: tuple[Sample, Sample] | None = None,
) -> tuple[ShiftProblem, Truth]:
    """One trial of one of the paper's settings.

    Parameters
    ----------
    dataset, case, shift : str
        See :func:`paper_setting`.
    trial : int
        Number of the trial, from 0; draw, noise and thinning are functions of it and of
        ``random_state`` alone (see :func:`~giw.paper.shift.trial_seeds`), so that methods share
        them.
    random_state : int, default=0
        Seed of the whole experiment.
    protocol, draw
        As in :func:`~giw.paper.shift.support_shift`; the paper's is ``"published"``,
        ``"stratified"``. Noise and thinning differ by trial under both protocols.
    n_val : int, optional
        Another number of validation points than the paper's, for ablations.
    data_dir : path, optional
        Data folder, see :func:`giw.paper.readers.catalogue`.
    samples : pair of Sample, optional
        From :func:`paper_samples`, to read the files only once.
    """
    setting = paper_setting(dataset, case, shift)
    m = setting.n_val if n_val is None else n_val
    seeds = trial_seeds(random_state, trial)
    pool, test = samples if samples is not None else paper_samples(dataset, data_dir)
    if dataset == "color_mnist":
        problem, truth = color_shift(
            pool,
            test=test,
            n_val=m,
            draw=draw,
            protocol=protocol,
            random_state=seeds.draw,
        )
    else:
        problem, truth = support_shift(
            pool,
            train_groups=setting.train_groups,
            test_groups=setting.test_groups,
            n_val=m,
            draw=draw,
            test=test,
            protocol=protocol,
            random_state=seeds.draw,
        )
    if setting.prior_ratio > 1:
        problem, truth = class_prior(
            problem,
            truth,
            ratio=setting.prior_ratio,
            minority=setting.minority,
            random_state=seeds.prior,
        )
    if setting.noise_rate > 0:
        problem, truth = label_noise(
            problem, truth, rate=setting.noise_rate, random_state=seeds.noise
        )
    return problem, truth
