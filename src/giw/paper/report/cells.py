"""Results in order: experiments that may be averaged, and in them one cell per setting and method.

Runs that differ in the number of epochs or in the seed belong to different experiments and never
meet in one mean; protocols and variants are kept apart within an experiment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from giw.pages.tables import Row
from giw.paper.bench.plan import PAPER_METHODS, PROTOCOLS
from giw.paper.bench.store import Result
from giw.paper.report.standing import standings
from giw.paper.shift import PAPER_SETTINGS, SHIFTS

DATASET_CASES = tuple(dict.fromkeys((s.dataset, s.case) for s in PAPER_SETTINGS))


class Place(NamedTuple):
    """A setting of the paper."""

    dataset: str
    case: str
    shift: str


class Key(NamedTuple):
    """What the trials of one cell share."""

    place: Place
    protocol: str
    method: str
    variant: str = ""


@dataclass(frozen=True)
class Experiment:
    """All results with one number of epochs and one seed."""

    epochs: int
    seed: int
    cells: Mapping[Key, Mapping[int, Result]]

    @property
    def name(self) -> str:
        """Epochs and seed in words."""
        return f"{self.epochs} epochs, seed {self.seed}"

    @property
    def slug(self) -> str:
        """Epochs and seed in a word fit for a file."""
        return f"e{self.epochs}-s{self.seed}"

    @property
    def n_results(self) -> int:
        """How many runs it holds."""
        return sum(map(len, self.cells.values()))

    @property
    def methods(self) -> list[str]:
        """The paper's ten, then whatever else was run."""
        others = sorted({key.method for key in self.cells} - set(PAPER_METHODS))
        return [*PAPER_METHODS, *others]

    @property
    def dataset_cases(self) -> list[tuple[str, str]]:
        """Data sets and cases with any run of a method as it is, in the paper's order."""
        found = {(k.place.dataset, k.place.case) for k in self.cells if not k.variant}
        return [pair for pair in DATASET_CASES if pair in found]

    def protocols(self, dataset: str | None = None, case: str | None = None) -> list[str]:
        """Protocols under which a method was run as it is."""
        found = {
            key.protocol
            for key in self.cells
            if not key.variant
            and dataset in (None, key.place.dataset)
            and case in (None, key.place.case)
        }
        return [protocol for protocol in PROTOCOLS if protocol in found]

    def trials(self, key: Key) -> Mapping[int, Result]:
        """Results of a cell by trial; empty where nothing was run."""
        return self.cells.get(key, {})

    def accuracy(self, key: Key) -> dict[int, float]:
        """Accuracy of a cell by trial: the mean over the last ten epochs."""
        return {trial: result.accuracy for trial, result in self.trials(key).items()}

    def standings(self, place: Place, protocol: str) -> dict[str, Row]:
        """How the methods, as they are, compare in a setting."""
        return standings({m: self.accuracy(Key(place, protocol, m)) for m in self.methods})

    def row(self, key: Key) -> Row | None:
        """Mean and spread of one cell on its own."""
        return standings({key.method: self.accuracy(key)}).get(key.method)

    def curves(self, key: Key) -> NDArray[np.float64] | None:
        """Learning curves of a cell, shape (trials, epochs), cut to the shortest."""
        results = self.trials(key)
        if not results:
            return None
        shortest = min(len(result.curve) for result in results.values())
        return np.stack([results[trial].curve[:shortest] for trial in sorted(results)])

    def places_of(self, keys: Iterable[Key]) -> list[Place]:
        """The settings among some keys, in the paper's order."""
        return sorted({key.place for key in keys}, key=order_of)


def order_of(place: Place) -> tuple[int, int]:
    """Where a setting stands in the paper."""
    return DATASET_CASES.index((place.dataset, place.case)), SHIFTS.index(place.shift)


def gather(results: Sequence[Result]) -> tuple[list[Experiment], list[str]]:
    """Sort results into experiments, the one with most runs of methods as they are first.

    Returns
    -------
    experiments : list of Experiment
    remarks : list of str
        One line for each result that was left out or needs a word.
    """
    known = {Place(s.dataset, s.case, s.shift) for s in PAPER_SETTINGS}
    cells: dict[tuple[int, int], dict[Key, dict[int, Result]]] = {}
    remarks: list[str] = []
    for result in sorted(results, key=lambda result: result.run.key):
        run = result.run
        place = Place(run.dataset, run.case, run.shift)
        key = Key(place, run.protocol, run.method, run.variant)
        if place not in known:
            remarks.append(f"{run.key} is in no setting of the paper; left out")
            continue
        if result.curve.min() < 0 or result.curve.max() > 1:
            remarks.append(f"{run.key} has accuracies outside 0 to 1; left out")
            continue
        if run.protocol not in PROTOCOLS:
            remarks.append(f"{run.key}: no table has the protocol {run.protocol!r}; left out")
            continue
        trials = cells.setdefault((run.epochs, run.seed), {}).setdefault(key, {})
        if run.trial in trials:
            remarks.append(f"{run.key} stands in more than one file; counted once")
            continue
        if len(result.curve) != run.epochs:
            remarks.append(
                f"{run.key} has {len(result.curve)} accuracies for {run.epochs} epochs; counted"
            )
        trials[run.trial] = result
    experiments = [Experiment(*pair, found) for pair, found in cells.items()]

    def size(experiment: Experiment) -> tuple[int, int]:
        plain = [trials for key, trials in experiment.cells.items() if not key.variant]
        return sum(map(len, plain)), experiment.n_results

    experiments.sort(key=lambda e: (*(-n for n in size(e)), e.epochs, e.seed))
    return experiments, remarks
