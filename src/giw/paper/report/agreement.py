"""How far our accuracies lie from the paper's, all settings at a glance."""

from __future__ import annotations

import numpy as np
from scipy import stats

from giw.pages.sheet import MISSING, Entry, Group, Sheet
from giw.pages.style import name_of, setting_name, shift_name, variant_name
from giw.pages.tables import LEVEL, Row
from giw.paper.bench.plan import PAPER_METHODS, PROTOCOLS
from giw.paper.report.accuracy import absent_note, methods_run, signed
from giw.paper.report.cells import DATASET_CASES, Experiment, Key, Place
from giw.paper.report.paper import PaperFigure, paper_accuracy
from giw.paper.shift import SHIFTS

PAPER_TRIALS = 5
COMPARED = tuple(
    method for method in PAPER_METHODS if method != "pooled"
)  # the paper has no Pooled


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


def difference_sheet(experiment: Experiment, protocol: str) -> Sheet:
    """Ours minus the paper's, method by method; bold where a test does not tell them apart."""
    ran = methods_run(experiment, protocol)
    methods = [method for method in COMPARED if method in ran]
    groups, compared, agreed = [], 0, 0
    for pair in DATASET_CASES:
        lines = []
        for shift in SHIFTS:
            place = Place(*pair, shift)
            line = [Entry(shift_name(shift))]
            for method in methods:
                row = experiment.row(Key(place, protocol, method))
                paper = paper_accuracy(*place, method)
                if row is None or paper is None:
                    line.append(MISSING)
                    continue
                same = agrees(row, paper)
                compared, agreed = compared + 1, agreed + same
                line.append(Entry(signed(100 * row.mean - paper.mean, 1), bold=same))
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


def trials_sheet(experiment: Experiment) -> Sheet | None:
    """GIW trial by trial beside the paper's mean: how much can be the luck of a draw?"""
    wanted = [
        Key(place, protocol, "giw", variant)
        for place in experiment.places_of(experiment.cells)
        for protocol in PROTOCOLS
        for variant in ("", "oracle", "osvm_code", "osvm_text")
    ]
    groups: dict[str, list[list[Entry]]] = {}
    for key in wanted:
        accuracy = [100 * value for value in experiment.accuracy(key).values()]
        paper = paper_accuracy(*key.place, "giw")
        if not accuracy or paper is None:
            continue
        variant = f", {variant_name(key.variant)}" if key.variant else ""
        setting = f"{setting_name(*key.place[:2])}, {shift_name(key.place.shift)}"
        numbers = (min(accuracy), float(np.median(accuracy)), max(accuracy), paper.mean)
        above = sum(value >= paper.mean for value in accuracy)
        groups.setdefault(setting, []).append(
            [
                Entry(f"{key.protocol}{variant}"),
                *(Entry(f"{number:.2f}") for number in numbers),
                Entry(f"{above} of {len(accuracy)}"),
            ]
        )
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
