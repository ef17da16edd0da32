"""One tidy frame of results, a row for each run, and the experiments and cells in it.

Runs that differ in the number of epochs, in the seed or in the scale belong to different
experiments and never meet in one mean; protocols and variants are kept apart within one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from giw.pages.style import setting_name, shift_name
from giw.pages.tables import LEVEL, Row, paired_p_value
from giw.paper.plan import PAPER_METHODS, PROTOCOLS
from giw.paper.rows import Result
from giw.paper.settings import DATASET_CASES, SHIFTS

EXPERIMENT = ["epochs", "seed", "scale"]
CELL = ["dataset", "case", "shift", "protocol", "method", "variant"]
COLUMNS = ("giw", *(method for method in PAPER_METHODS if method != "giw"))
SPLIT_QUALITY = {"alpha": "α", "true_alpha": "true α", "support_share": "share inside"}
SPLIT_QUALITY |= {"false_outside": "false outside", "false_inside": "false inside"}
SPLIT_QUALITY["auroc"] = "AUROC"


class Place(NamedTuple):
    """A setting of the paper."""

    dataset: str
    case: str
    shift: str

    @property
    def name(self) -> str:
        """In words, such as ``MNIST (iii), support shift``."""
        return f"{setting_name(*self[:2])}, {shift_name(self.shift)}"


PLACES = tuple(Place(*pair, shift) for pair in DATASET_CASES for shift in SHIFTS)


class Key(NamedTuple):
    """What the trials of one cell share."""

    place: Place
    protocol: str
    method: str
    variant: str = ""


def frame_of(results: Sequence[Result]) -> tuple[pd.DataFrame, list[str]]:
    """A row for each result that a table can have, and one line for each that needs a word."""
    rows: dict[str, dict[str, object]] = {}
    remarks = []
    for result in sorted(results, key=lambda result: result.run.key):
        run, curve = result.run, result.curve
        if (run.dataset, run.case, run.shift) not in PLACES:
            remarks.append(f"{run.key} is in no setting of the paper; left out")
        elif curve.min() < 0 or curve.max() > 1:
            remarks.append(f"{run.key} has accuracies outside 0 to 1; left out")
        elif run.protocol not in PROTOCOLS:
            remarks.append(f"{run.key}: no table has the protocol {run.protocol!r}; left out")
        elif run.key in rows:
            remarks.append(f"{run.key} stands in more than one file; counted once")
        else:
            rows[run.key] = {
                **{name: getattr(run, name) for name in (*EXPERIMENT, *CELL, "trial")},
                "accuracy": result.accuracy,
                **{name: result.split.get(name, np.nan) for name in SPLIT_QUALITY},
                "version": result.about.get("giw") or "not known",
                "commit": result.about.get("commit") or "not known",
                "result": result,
            }
    return pd.DataFrame(rows.values()), remarks


@dataclass(frozen=True)
class Experiment:
    """All results with one number of epochs, one seed and one scale."""

    epochs: int
    seed: int
    scale: str
    frame: pd.DataFrame

    @property
    def name(self) -> str:
        """Epochs and seed in words."""
        return f"{self.epochs} epochs, seed {self.seed}" + ", laptop scale" * (
            self.scale != "paper"
        )

    @property
    def slug(self) -> str:
        """Epochs and seed in a word fit for a file."""
        return f"e{self.epochs}-s{self.seed}" + "-laptop" * (self.scale != "paper")

    @cached_property
    def cells(self) -> Mapping[Key, pd.DataFrame]:
        """The trials of each cell, in order, with the number of the trial as index."""
        return {
            Key(Place(*names[:3]), *names[3:]): rows.set_index("trial").sort_index()
            for names, rows in self.frame.groupby(CELL)
        }

    @cached_property
    def plain(self) -> pd.DataFrame:
        """Runs of methods as they are."""
        return self.frame[self.frame.variant == ""]

    @cached_property
    def methods(self) -> list[str]:
        """GIW, the others of the tables, then whatever else was run."""
        return [*COLUMNS, *sorted(set(self.frame.method) - set(COLUMNS))]

    def ran(self, protocol: str) -> list[str]:
        """Methods with at least one run as they are, in the order of the tables."""
        found = set(self.plain.method[self.plain.protocol == protocol])
        return [method for method in self.methods if method in found]

    @property
    def protocols(self) -> list[str]:
        """Protocols under which a method was run as it is."""
        return [protocol for protocol in PROTOCOLS if protocol in set(self.plain.protocol)]

    def trials(self, key: Key) -> list[Result]:
        """Results of a cell by trial; empty where nothing was run."""
        return list(self.cells.get(key, self.frame[:0]).result)

    def accuracy(self, key: Key) -> pd.Series[float]:
        """Accuracy of a cell by trial: the mean over the last ten epochs."""
        return self.cells.get(key, self.frame[:0]).accuracy

    def standings(self, place: Place, protocol: str, variant: str = "") -> dict[str, Row]:
        """How the methods compare in a setting."""
        keys = {m: Key(place, protocol, m, variant) for m in self.methods}
        return standings({m: self.accuracy(key) for m, key in keys.items()})

    def row(self, key: Key) -> Row | None:
        """Mean and spread of one cell on its own."""
        return standings({key.method: self.accuracy(key)}).get(key.method)

    def curves(self, key: Key) -> list[NDArray[np.float64]]:
        """Learning curves of a cell by trial, but where only the end was tested."""
        return [r.curve for r in self.trials(key) if len(r.curve) == self.epochs]


def in_order(keys: Iterable[Key]) -> list[Key]:
    """Cells as tables list them: settings of the paper, protocols, methods, amounts by size."""

    def order(key: Key) -> tuple[object, ...]:
        kind, _, amount = key.variant.rpartition("_")
        size = float(amount) if amount.isdigit() else 0.0
        method = COLUMNS.index(key.method) if key.method in COLUMNS else len(COLUMNS)
        protocol = PROTOCOLS.index(key.protocol)
        return PLACES.index(key.place), protocol, method, key.method, kind, size, key.variant

    return sorted(keys, key=order)


def gather(results: Sequence[Result]) -> tuple[list[Experiment], list[str]]:
    """Experiments, the one with most runs of methods as they are first; and the remarks."""
    frame, remarks = frame_of(results)
    if frame.empty:
        return [], remarks
    found = [Experiment(*named, rows) for named, rows in frame.groupby(EXPERIMENT)]  # type: ignore[call-arg]
    found.sort(key=lambda e: (e.scale != "paper", -len(e.plain), -len(e.frame), e.epochs, e.seed))
    return found, remarks


# Which methods cannot be told from the best -------------------------------------------------------


def standings(accuracy: Mapping[str, pd.Series[float] | Mapping[int, float]]) -> dict[str, Row]:
    """Mean and spread of each method over its own trials, and how it stands to the best.

    The best is the highest mean among the methods with at least half as many trials as the one with
    most, and at least two where any has, so that one lucky trial wins nothing. Another method is
    tested against it by a paired t-test over the trials that both have; it is tied where the test
    does not tell them apart, or where it is ahead on those trials.
    """
    present = {m: pd.Series(trials, dtype=float) for m, trials in accuracy.items() if len(trials)}
    if not present:
        return {}
    most = max(map(len, present.values()))
    enough = max(min(2, most), most / 2)
    eligible = [method for method, trials in present.items() if len(trials) >= enough]
    best = max(eligible, key=lambda method: np.mean(present[method].sort_index().to_numpy()))
    rows = {}
    for method, trials in present.items():
        values = trials.sort_index().to_numpy()
        p_value, ahead, common = paired(present[best], trials)
        tested = method != best and p_value is not None
        rows[method] = Row(
            method=method,
            mean=float(values.mean()),
            std=float(values.std(ddof=1)) if len(values) > 1 else None,
            n=len(values),
            best=method == best,
            tied=tested and (p_value >= LEVEL or ahead > 0),  # type: ignore[operator]
            p_value=p_value if tested else None,
            shared=common,
        )
    return rows


def paired(left: pd.Series[float], right: pd.Series[float]) -> tuple[float | None, float, int]:
    """Two-sided p-value, mean of right minus left, and number of trials that both have."""
    common = left.index.intersection(right.index).sort_values()
    if not len(common):
        return None, 0.0, 0
    a, b = left[common].to_numpy(), right[common].to_numpy()
    return paired_p_value(a, b), float((b - a).mean()), len(common)
