"""The paper's tables from our results: the overview, each cell beside the paper, differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from scipy import stats

from giw.pages.style import name_of, setting_name, shift_name, variant_name
from giw.pages.tables import LEVEL, MISSING, NONE, Entry, Group, Row, Sheet
from giw.paper.frame import Experiment, Key, Place
from giw.paper.plan import PAPER_METHODS, PROTOCOLS
from giw.paper.printed import PaperFigure, paper_accuracy
from giw.paper.settings import DATASET_CASES, SHIFTS, paper_setting
from giw.paper.variants import SPLIT_GIW

MEASURE = "Test accuracy in percent: mean ± standard deviation over trials of the mean over the last ten epochs."  # noqa: E501
BOLD = "Bold: the highest mean of what was run, and methods that a two-sided paired t-test over the trials does not tell from it at the 5 % level."  # noqa: E501
PAPER_TRIALS = 5
COMPARED = tuple(method for method in PAPER_METHODS if method != "pooled")  # not in the paper
WITHIN = 3.0  # points from the paper's mean within which a cell may count as reproduced
Standings = Mapping[str, Row]


# Cells --------------------------------------------------------------------------------------------


def signed(difference: float, digits: int = 2) -> str:
    """A difference with its sign, and a minus that is one."""
    text = f"{difference:+.{digits}f}".replace("-", "−")
    return text if float(f"{difference:.{digits}f}") else f"{0:.{digits}f}"


def accuracy_entry(
    row: Row | None, usual: int | None = None, digits: int = 2, *, bold: bool = True
) -> Entry:
    """Mean and spread; the number of trials in brackets where it is not the usual one."""
    if row is None:
        return MISSING
    trials = "" if usual is None or row.n == usual else f" [{row.n}]"
    return Entry(row.accuracy(digits) + trials, bold=bold and row.marked)


def difference_entry(row: Row | None, paper: PaperFigure | None, digits: int = 2) -> Entry:
    """Ours minus the paper's, in points; a dash where either is not there."""
    if row is None or paper is None:
        return NONE
    return Entry(signed(100 * row.mean - paper.mean, digits))


def paper_entry(paper: PaperFigure | None) -> Entry:
    """The paper's figure, or a dash."""
    return NONE if paper is None else Entry(str(paper))


def count_entry(row: Row | None) -> Entry:
    """The number of trials."""
    return Entry("0" if row is None else str(row.n))


# Notes --------------------------------------------------------------------------------------------


def usual_trials(rows: Collection[Row]) -> int:
    """The number of trials that most cells have; of equally frequent ones the larger."""
    counts = Counter(row.n for row in rows)
    return max(counts, key=lambda n: (counts[n], n)) if counts else 0


def trials_note(rows: Collection[Row]) -> str:
    """How many trials the cells of a table have."""
    if not rows:
        return "No run."
    usual = usual_trials(rows)
    plural = "1 trial" if usual == 1 else f"{usual} trials"
    if len({row.n for row in rows}) == 1:
        return f"{plural} in every cell that is there."
    return f"{plural} unless a cell says otherwise in square brackets."


def pairing_notes(standing: Mapping[Place, Standings]) -> list[str]:
    """Which tests had to do with fewer trials, or could not be made, setting by setting."""
    fewer, untested = [], []
    for place, rows in standing.items():
        where = place_name(place)
        best = next((row for row in rows.values() if row.best), None)
        others = [row for row in rows.values() if not row.best]
        alone = [row.name for row in others if row.p_value is None]
        by_count: dict[int, list[str]] = {}
        for row in others:
            if best is not None and row.p_value is not None and row.shared != max(row.n, best.n):
                by_count.setdefault(row.shared or 0, []).append(row.name)
        counts = [f"{n} for {', '.join(names)}" for n, names in sorted(by_count.items())]
        fewer += [f"{where}: {'; '.join(counts)}"] if counts else []
        untested += [f"{where}: {', '.join(alone)}"] if alone else []
    notes = []
    if fewer:
        notes.append(
            f"Tested against the best only over the trials that both have. {'. '.join(fewer)}."
        )
    if untested:
        notes.append(
            "Not tested and so not in bold, for fewer than two trials in common with the best. "
            f"{'. '.join(untested)}."
        )
    return notes


def place_name(place: Place) -> str:
    """A setting in words, such as ``MNIST (iii), support shift``."""
    return f"{setting_name(*place[:2])}, {shift_name(place.shift)}"


def methods_run(experiment: Experiment, protocol: str) -> list[str]:
    """Methods with at least one run as they are, in the order of the tables."""
    ran = set(experiment.plain.method[experiment.plain.protocol == protocol])
    return [method for method in experiment.methods if method in ran]


def absent_note(wanted: Sequence[str], ran: Collection[str]) -> list[str]:
    """Whose columns are left out: those that would say nothing but missing."""
    absent = [name_of(method) for method in wanted if method not in ran]
    return [f"Missing, not run in any of these settings: {', '.join(absent)}."] if absent else []


def _nothing(label: str) -> Group:
    return Group(f"{label}: missing, no run with these epochs and this seed", [])


# The overview -------------------------------------------------------------------------------------


def overview(experiment: Experiment, protocol: str) -> Sheet:
    """All settings by all methods under one protocol, as the paper's tables have them."""
    methods = methods_run(experiment, protocol)
    places = [Place(*pair, shift) for pair in DATASET_CASES for shift in SHIFTS]
    standing = {place: experiment.standings(place, protocol) for place in places}
    rows = [row for found in standing.values() for row in found.values()]
    usual = usual_trials(rows)

    def cell(place: Place, method: str) -> Entry:
        if not can_differ(place, method):
            return NONE
        return accuracy_entry(standing[place].get(method), usual, digits=1)

    groups = []
    for pair in DATASET_CASES:
        here = [Place(*pair, shift) for shift in SHIFTS]
        lines = [[Entry(shift_name(p.shift)), *(cell(p, m) for m in methods)] for p in here]
        there = any(standing[place] for place in here)
        groups.append(Group(setting_name(*pair), lines) if there else _nothing(setting_name(*pair)))
    beside = f"; {name_of(SPLIT_GIW)} does, and is GIW itself elsewhere"
    said = "Under class-prior shift the paper's GIW does not split"
    return Sheet(
        name=f"accuracy-{experiment.slug}-{protocol}",
        title=f"Test accuracy, {experiment.name}, {protocol} protocol",
        head=["setting", *map(name_of, methods)],
        groups=groups,
        notes=[
            *(MEASURE, BOLD, trials_note(rows)),
            *absent_note(PAPER_METHODS, methods),
            said + beside * (SPLIT_GIW in methods) + ".",
            *pairing_notes(standing),
        ],
    )


def can_differ(place: Place, method: str) -> bool:
    """False for split GIW where GIW itself splits: it would be the same run under another name."""
    return method != SPLIT_GIW or not paper_setting(*place).splits_validation


# Beside the paper ---------------------------------------------------------------------------------


def against_paper(experiment: Experiment, dataset: str, case: str) -> Sheet:
    """Every protocol, the paper's figure and the differences from it, method by method."""
    protocols = experiment.protocols(dataset, case)
    places = [Place(dataset, case, shift) for shift in SHIFTS]
    standing = {p: {at: experiment.standings(at, p) for at in places} for p in protocols}
    groups = []
    for place in places:
        ran = {m for rows in standing.values() for m in rows[place]}
        if not ran:
            groups.append(_nothing(shift_name(place.shift)))
            continue
        lines = [
            _beside(place, method, "", [standing[p][place].get(method) for p in protocols])
            for method in experiment.methods
            if method in PAPER_METHODS or method in ran
        ]
        for variant in _published_splits(experiment, place):
            keys = [Key(place, protocol, "giw", variant) for protocol in protocols]
            rows = [experiment.row(key) for key in keys]
            if any(rows):
                lines.append(_beside(place, "giw", variant, rows))
        groups.append(Group(shift_name(place.shift), lines))
    notes = [MEASURE, BOLD]
    for protocol in protocols:
        notes += [f"{protocol}: {note}" for note in pairing_notes(standing[protocol])]
    absent = [p for p in PROTOCOLS[:2] if p not in protocols]
    notes += [f"No run under the {protocol} protocol." for protocol in absent]
    notes.append(
        "Paper: five trials, 400 epochs in the released code, validation points drawn once and "
        "left in the training pool, split by a one-class SVM. GIW as it is has our calibrated "
        "split under either protocol. A dash: the paper has no such figure."
    )
    return Sheet(
        name=f"paper-{experiment.slug}-{dataset}-{case}",
        title=f"{setting_name(dataset, case)} beside the paper, {experiment.name}",
        head=["method", "paper", *(c for p in protocols for c in (p, "trials", f"{p} − paper"))],
        groups=groups,
        notes=notes,
    )


def _published_splits(experiment: Experiment, place: Place) -> list[str]:
    """Variants of GIW with the published split, which stand outside the contest."""
    found = {key.variant for key in experiment.cells if key.place == place and key.method == "giw"}
    return sorted(variant for variant in found if "osvm" in variant)


def _beside(place: Place, method: str, variant: str, rows: Iterable[Row | None]) -> list[Entry]:
    paper = paper_accuracy(*place, method.removesuffix("_published"))
    name = f"{name_of(method)}, {variant_name(variant)}" if variant else name_of(method)
    line = [Entry(name), paper_entry(paper)]
    for row in rows:
        line += [accuracy_entry(row, bold=not variant), count_entry(row)]
        line += [difference_entry(row, paper)]
    return line


# How far from the paper ---------------------------------------------------------------------------


def agrees(row: Row, paper: PaperFigure) -> bool:
    """Whether a two-sided Welch test does not tell our mean from the paper's at the 5 % level."""
    if row.std is None:
        return False  # one trial has no spread, and so no test
    ours, theirs = 100 * row.mean, paper.mean
    if row.std == 0 and paper.std == 0:  # no spread at all: the test would be 0 / 0
        return abs(ours - theirs) < 0.005  # the paper prints two decimals
    p_value = stats.ttest_ind_from_stats(
        ours, 100 * row.std, row.n, theirs, paper.std, PAPER_TRIALS, equal_var=False
    ).pvalue
    return bool(p_value >= LEVEL)


def reproduced(row: Row, paper: PaperFigure) -> bool:
    """Within three points of the paper's mean and not told apart from it, or within one point."""
    away = abs(100 * row.mean - paper.mean)
    return away <= 1 or (away <= WITHIN and agrees(row, paper))


def difference_sheet(experiment: Experiment, protocol: str) -> Sheet:
    """Ours minus the paper's, method by method; bold where a test does not tell them apart."""
    ran = methods_run(experiment, protocol)
    methods = [method for method in COMPARED if method in ran]
    groups, compared, agreed = [], 0, 0
    for pair in DATASET_CASES:
        lines = []
        for shift in SHIFTS:
            line = [Entry(shift_name(shift))]
            for method in methods:
                row = experiment.row(Key(Place(*pair, shift), protocol, method))
                paper = paper_accuracy(*pair, shift, method)
                if row is None or paper is None:
                    line.append(MISSING)
                    continue
                same = agrees(row, paper)
                compared, agreed = compared + 1, agreed + same
                line.append(Entry(difference_entry(row, paper, 1).text, bold=same))
            if any(entry is not MISSING for entry in line[1:]):
                lines.append(line)
        if lines:
            groups.append(Group(setting_name(*pair), lines))
    return Sheet(
        name=f"differences-{experiment.slug}-{protocol}",
        title=f"Difference from the paper, {experiment.name}, {protocol} protocol",
        head=["setting", *map(name_of, methods)],
        groups=groups,
        notes=[
            "Our mean test accuracy minus the paper's, in points.",
            f"Bold: in {agreed} of {compared} cells a two-sided Welch test does not tell our mean "
            "from the paper's (five trials) at the 5 % level. The paper's spread leaves out the "
            "draw of validation points, which is the same in all its trials.",
            *absent_note(COMPARED, methods),
        ],
    )


def reproduced_sentence(experiments: Sequence[Experiment]) -> str:
    """How many of the paper's cells on MNIST and Color-MNIST have a run that agrees with it."""
    places = [Place(*pair, s) for pair in DATASET_CASES if pair[0] != "cifar20" for s in SHIFTS]
    found = ran = 0
    for place in places:
        for method in COMPARED:
            paper = paper_accuracy(*place, method)
            names = (method, f"{method}_published")
            keys = [Key(place, p, name) for p in PROTOCOLS for name in names]
            long = [e for e in experiments if e.scale == "paper" and e.epochs >= 100]
            rows = [row for e in long for key in keys for row in [e.row(key)] if row is not None]
            ran += bool(rows)
            found += paper is not None and any(reproduced(row, paper) for row in rows)
    total = len(places) * len(COMPARED)
    return (
        f"{found} of the paper's {total} cells on MNIST and Color-MNIST have a run of 100 epochs "
        f"or more within {WITHIN:g} points of the paper's mean and not told apart from it, or "
        f"within 1 point; {ran} cells were run."
    )


def trials_sheet(experiment: Experiment) -> Sheet | None:
    """GIW trial by trial beside the paper's mean: how much can be the luck of a draw?"""
    groups: dict[str, list[list[Entry]]] = {}
    for place in experiment.places_of(experiment.cells):
        for protocol in PROTOCOLS:
            for variant in ("", "oracle", *_published_splits(experiment, place)):
                accuracy = 100 * experiment.accuracy(Key(place, protocol, "giw", variant))
                paper = paper_accuracy(*place, "giw")
                if not len(accuracy) or paper is None:
                    continue
                words = f", {variant_name(variant)}" if variant else ""
                numbers = (accuracy.min(), np.median(accuracy), accuracy.max(), paper.mean)
                above = f"{int((accuracy >= paper.mean).sum())} of {len(accuracy)}"
                line = [protocol + words, *(f"{number:.2f}" for number in numbers), above]
                groups.setdefault(place_name(place), []).append([Entry(text) for text in line])
    if not groups:
        return None
    return Sheet(
        name=f"trials-{experiment.slug}",
        title=f"GIW trial by trial, {experiment.name}",
        head=["protocol", "least", "median", "most", "paper", "trials at or above it"],
        groups=[Group(label, lines) for label, lines in groups.items()],
        notes=[
            "Test accuracy of single trials in percent, each the mean over the last ten epochs. "
            "Under the honest protocol every trial has its own validation points."
        ],
    )
