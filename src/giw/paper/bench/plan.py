"""What is to be run: settings × methods × trials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

from giw.nets.methods import METHODS
from giw.paper.shift import PAPER_SETTINGS, SHIFTS, PaperSetting, paper_setting

PAPER_METHODS = (
    *("val_only", "pretrain_val", "reweight", "mw_net", "r_diw", "diw"),
    *("ccsa", "dann", "pooled", "giw"),
)
SPLIT_GIW = "giw_split"  # GIW with its split where the paper's GIW has none
PROTOCOLS = ("honest", "published")
PLAIN = re.compile(r"[A-Za-z0-9_.+]{0,80}")
RESAMPLED = "published_resampled"  # published, with a draw for each trial; in no report
DEVELOPMENT = "development"  # to choose constants by, and in no report


@dataclass(frozen=True, order=True)
class Run:
    """One method in one trial of one setting; its key names the file of its result.

    Parameters
    ----------
    dataset, case, shift : str
        One of the paper's settings.
    method : str
        A method. Under class-prior shift ``"giw"`` is the paper's unsplit one, and
        ``"giw_split"`` the one that splits there too.
    trial : int
    protocol : {"honest", "published", "published_resampled", "development"}
        How validation points are drawn, see :func:`giw.paper.shift.support_shift`.
        ``"development"`` is honest, and held-out images of the training pool play the test sample;
        see
        :mod:`giw.paper.bench.development`.
    variant : str
        An ablation, see :mod:`giw.paper.bench.variants`; empty for the method as it is.
    epochs : int
        After pretraining; the schedule is scaled with it.
    seed : int
        Of the whole experiment; trials get their own.
    """

    dataset: str
    case: str
    shift: str
    method: str
    trial: int
    protocol: str = "honest"
    variant: str = ""
    epochs: int = 100
    seed: int = 0

    @property
    def setting(self) -> PaperSetting:
        """The paper's setting that this run belongs to."""
        return paper_setting(self.dataset, self.case, self.shift)

    @property
    def key(self) -> str:
        """A name that no other run has, fit for a file."""
        parts = [self.dataset, self.case, self.shift, self.method, self.protocol]
        parts += [self.variant] if self.variant else []
        parts += [f"e{self.epochs}", f"s{self.seed}", f"t{self.trial}"]
        return "-".join(parts)

    @property
    def data(self) -> tuple[Any, ...]:
        """What runs share that are trained on the same draws from the same pretrained net."""
        size = self.variant if self.variant.startswith(("n_train_", "n_val_")) else ""
        place = self.dataset, self.case, self.shift
        return *place, self.protocol, size, self.epochs, self.seed

    def as_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        """The run that :meth:`as_dict` describes; unknown names are refused."""
        known = {field.name: field.type for field in fields(cls)}
        if set(values) != set(known):
            raise ValueError(f"a run has {', '.join(known)}; got {', '.join(map(str, values))}")
        for name, kind in known.items():
            value = values[name]
            if kind == "int" and (type(value) is not int or not 0 <= value < 2**63):
                raise ValueError(f"{name} of a run must be a whole number, got {value!r}")
            # they become names of files, which must stay in their folder
            if kind == "str" and (type(value) is not str or not PLAIN.fullmatch(value)):
                raise ValueError(f"{name} of a run must be a plain word, got {value!r}")
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
    variants: Sequence[str] = ("",),
    protocols: Sequence[str] = ("honest",),
    trials: int = 5,
    epochs: int = 100,
    seed: int = 0,
) -> list[Run]:
    """All runs of the chosen part of the paper's grid; what is None is taken whole.

    ``"giw_split"`` is planned where it differs from ``"giw"``: under class-prior shift.
    """
    settings = [
        setting
        for setting in PAPER_SETTINGS
        if (datasets is None or setting.dataset in datasets)
        and (cases is None or setting.case in cases)
        and (shifts is None or setting.shift in shifts)
    ]
    _check_known("dataset", datasets, {s.dataset for s in PAPER_SETTINGS})
    _check_known("case", cases, {s.case for s in PAPER_SETTINGS})
    _check_known("shift", shifts, set(SHIFTS))
    _check_known("method", methods, {*METHODS, SPLIT_GIW})
    _check_known("protocol", protocols, {*PROTOCOLS, RESAMPLED, DEVELOPMENT})
    if not settings:
        raise ValueError("no setting of the paper has this data set in this case")
    if methods and SPLIT_GIW in methods and all(s.splits_validation for s in settings):
        raise ValueError(
            f"{SPLIT_GIW} differs from giw only under class-prior shift; choose --shift "
            "class_prior_10 or class_prior_100, or the method giw"
        )
    return [
        Run(s.dataset, s.case, s.shift, method, trial, protocol, variant, epochs, seed)
        for s, method, protocol, variant, trial in product(
            settings, methods or (*PAPER_METHODS, SPLIT_GIW), protocols, variants, range(trials)
        )
        if not (method == SPLIT_GIW and s.splits_validation)
    ]


def group(runs: Iterable[Run]) -> list[Job]:
    """Put runs that differ in the trial alone into one job.

    Jobs with the same data follow each other, otherwise in the order of appearance: they share
    what was drawn and pretrained.
    """
    jobs: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        shared = run.as_dict()
        del shared["trial"]
        jobs.setdefault(tuple(shared.values()), []).append(run)
    by_data: dict[tuple[Any, ...], list[Job]] = {}
    for members in jobs.values():
        job = Job(tuple(members))
        by_data.setdefault(job.first.data, []).append(job)
    return [job for jobs_of_data in by_data.values() for job in jobs_of_data]


def _check_known(name: str, chosen: Sequence[str] | None, known: set[str]) -> None:
    unknown = [value for value in chosen or () if value not in known]
    if unknown:
        raise ValueError(f"unknown {name} {unknown[0]!r}; known are {', '.join(sorted(known))}")
