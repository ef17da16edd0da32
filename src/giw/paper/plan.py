"""What is to be run: settings × methods × trials, and what runs share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from giw.nets.methods import METHODS
from giw.paper.settings import PAPER_SETTINGS, SHIFTS, PaperSetting, paper_setting
from giw.paper.variants import PUBLISHED, SPLIT_GIW, as_made, checked, composed, parts_of

PAPER_METHODS = (
    *("val_only", "pretrain_val", "reweight", "mw_net", "r_diw", "diw"),
    *("ccsa", "dann", "pooled", "giw"),
)
PROTOCOLS = ("honest", "published", "authors")  # those that the report shows
DEVELOPMENT = "development"  # to choose constants by, and in no report
SCALES = ("paper", "laptop")
SHARED = ("n_train", "n_val", "wide_net", "all_rows", "draw_ten")  # what methods start from
LAPTOP_POINTS = 3_000  # training images at laptop scale
PLAIN = re.compile(r"[A-Za-z0-9_.+]{0,120}")


@dataclass(frozen=True, order=True)
class Run:
    """One method in one trial of one setting; no other run has its key."""

    dataset: str
    case: str
    shift: str
    method: str  # under class-prior shift "giw" is the paper's unsplit one, "giw_split" splits
    trial: int
    protocol: str = "honest"  # see giw.paper.shifts.support_shift, or "development"
    variant: str = ""  # ablations, see giw.paper.variants; empty for the method as it is
    epochs: int = 100  # after pretraining; the schedule is scaled with it
    seed: int = 0  # of the whole experiment; trials get their own
    scale: str = "paper"  # or "laptop": LeNet-5 on 3,000 images after 5 epochs of pretraining

    @property
    def setting(self) -> PaperSetting:
        """The paper's setting that this run belongs to."""
        return paper_setting(self.dataset, self.case, self.shift)

    @property
    def pretrain_epochs(self) -> int:
        """Epochs of pretraining, which methods of a setting share."""
        return 5 if self.scale == "laptop" else self.setting.pretrain_epochs

    @property
    def changes(self) -> dict[str, float]:
        """Names and amounts of all that the variant, or a published method, changes."""
        splits = self.setting.splits_validation
        return parts_of(as_made(self.method, self.variant, splits=splits)[1])

    @property
    def key(self) -> str:
        """A name that no other run has, fit for a file."""
        words = [self.dataset, self.case, self.shift, self.method, self.protocol, self.variant]
        words += [self.scale.replace("paper", ""), f"e{self.epochs}-s{self.seed}-t{self.trial}"]
        return "-".join(filter(None, words))

    @property
    def data(self) -> tuple[Any, ...]:
        """What runs share that are trained on the same draws from the same pretrained net."""
        size = tuple(item for item in self.changes.items() if item[0] in SHARED)
        place = self.dataset, self.case, self.shift
        return *place, self.protocol, size, self.epochs, self.seed, self.scale

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        """The run with these fields; other names are refused. Old rows name no scale."""
        values = {"scale": "paper", **values}
        known = {field.name: field.type for field in fields(cls)}
        if set(values) != set(known):
            raise ValueError(f"a run has {', '.join(known)}; got {', '.join(map(str, values))}")
        for name, value in values.items():
            if known[name] == "int":
                right = type(value) is int and 0 <= value < 2**63
            else:  # words become names of files, which must stay in their folder
                right = type(value) is str and PLAIN.fullmatch(value) is not None
            if not right:
                raise ValueError(f"{name} of a run is {known[name]}, got {value!r}")
        return cls(**values)


@dataclass(frozen=True)
class Job:
    """Runs that differ in the trial alone, and are trained side by side."""

    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """One of them, for what they share."""
        return self.runs[0]

    @property
    def name(self) -> str:
        """What the runs share, in words."""
        run = self.first
        variant = f" [{run.variant}]" if run.variant else ""
        return f"{run.dataset} ({run.case}) {run.shift}: {run.method}{variant}, {run.protocol}"


def plan(
    *,
    datasets: Sequence[str] | None = None,
    cases: Sequence[str] | None = None,
    shifts: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    variants: Sequence[str] = (),
    protocols: Sequence[str] = ("honest",),
    trials: int = 5,
    epochs: int = 100,
    seed: int = 0,
    scale: str = "paper",
) -> list[Run]:
    """All runs of the chosen part of the paper's grid; what is None is taken whole.

    ``variants`` are changes that all runs have at once. ``"giw_split"`` is planned where it
    differs from ``"giw"``: under class-prior shift; published methods, unless they are named, where
    validation points stay in the training pool.
    """
    settings = [
        s
        for s in PAPER_SETTINGS
        if (datasets is None or s.dataset in datasets)
        and (cases is None or s.case in cases)
        and (shifts is None or s.shift in shifts)
    ]
    for name, chosen, known in (
        ("dataset", datasets, {s.dataset for s in PAPER_SETTINGS}),
        ("case", cases, {s.case for s in PAPER_SETTINGS}),
        ("shift", shifts, set(SHIFTS)),
        ("method", methods, {*METHODS, SPLIT_GIW, *PUBLISHED}),
        ("protocol", protocols, {*PROTOCOLS, DEVELOPMENT}),
        ("scale", [scale], set(SCALES)),
    ):
        for value in set(chosen or ()) - known:
            raise ValueError(f"unknown {name} {value!r}; known are {', '.join(sorted(known))}")
    if not settings:
        raise ValueError("no setting of the paper has this data set in this case")
    if scale == "laptop" and set(protocols) - {"honest", DEVELOPMENT}:
        raise ValueError(
            "at laptop scale training is a random part of the pool, so validation points cannot "
            "be left in it: use the honest protocol, or --scale paper"
        )
    drawn_by_authors = [s for s in settings if s.dataset != "cifar20"]
    if "authors" in protocols and not drawn_by_authors:
        raise ValueError("the authors' draw is known for MNIST and Color-MNIST only, not CIFAR-20")
    if methods and SPLIT_GIW in methods and all(s.splits_validation for s in settings):
        raise ValueError(
            f"{SPLIT_GIW} differs from giw only under class-prior shift; choose --shift "
            "class_prior_10 or class_prior_100, or the method giw"
        )
    variant = composed(tuple(variants))
    every = methods or (*PAPER_METHODS, SPLIT_GIW, *PUBLISHED)
    runs = [
        Run(s.dataset, s.case, s.shift, method, trial, protocol, variant, epochs, seed, scale)
        for s, method, protocol, trial in product(settings, every, protocols, range(trials))
        if not (method == SPLIT_GIW and s.splits_validation)
        if protocol != "authors" or s in drawn_by_authors
        # validation points that training lacks give the published split nothing to find
        if methods or not (method in PUBLISHED and protocol in ("honest", DEVELOPMENT))
    ]
    for run in runs if parts_of(variant) else ():
        checked(run.method, run.variant, splits=run.setting.splits_validation)
    return runs


def group(runs: Iterable[Run]) -> list[Job]:
    """Put runs that differ in the trial alone into one job.

    Jobs with the same data follow each other, otherwise in the order of appearance: they share
    what was drawn and pretrained.
    """
    by_data: dict[tuple[Any, ...], dict[Run, list[Run]]] = {}
    for run in runs:
        by_data.setdefault(run.data, {}).setdefault(replace(run, trial=0), []).append(run)
    return [Job(tuple(members)) for jobs in by_data.values() for members in jobs.values()]


# What is run where nobody says. On one H200 about an hour: CIFAR-20 alone would take a day.
ON_GPU: dict[str, Any] = {"scale": "paper", "datasets": ["mnist", "color_mnist"]}
ON_GPU |= {"trials": 5, "epochs": 100}
# At laptop scale; trials of CIFAR-20 and all methods take hours, so that they are asked for.
ON_CPU: dict[str, Any] = {"scale": "laptop", "datasets": ["mnist"], "cases": ["iii"]}
ON_CPU |= {"shifts": ["support"], "trials": 3, "epochs": 30}


def fill_in(chosen: dict[str, Any], kind: str) -> tuple[dict[str, Any], str]:
    """What was chosen, completed by what suits the machine, and the latter in words.

    Chosen are arguments of :func:`plan`: None where nothing was said, ``["all"]`` for all there is.

    >>> full, words = fill_in({"datasets": ["mnist"], "trials": None}, "cuda")
    >>> full["trials"], words
    (5, '--trials 5')
    """
    usual = ON_GPU if kind == "cuda" else ON_CPU
    if chosen.get("scale") == "paper" and kind != "cuda":
        usual = ON_CPU | {"trials": 2, "epochs": 10}
    filled = {name: usual[name] for name in usual if chosen.get(name, "") is None}
    words = [
        f"--{name if name in ('trials', 'epochs') else name.removesuffix('s')} {one}"
        for name, value in filled.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    full = {name: None if value == ["all"] else value for name, value in chosen.items()}
    return full | filled, " ".join(words)
