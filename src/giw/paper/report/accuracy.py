"""The paper's tables from our results: what was run, the overview, each cell beside the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from giw.pages.sheet import MISSING, NONE, Entry, Group, Sheet
from giw.pages.style import name_of, setting_name, shift_name, variant_name
from giw.pages.tables import Row
from giw.paper.bench.plan import PAPER_METHODS, PROTOCOLS, SPLIT_GIW
from giw.paper.report.cells import DATASET_CASES, Experiment, Key, Place
from giw.paper.report.paper import paper_accuracy
from giw.paper.shift import SHIFTS, paper_setting

MEASURE = "Test accuracy in percent: mean ± standard deviation over trials of the mean over the last ten epochs."  # noqa: E501
BOLD = "Bold: the highest mean of what was run, and methods that a two-sided paired t-test over the trials does not tell from it at the 5 % level."  # noqa: E501
PUBLISHED_SPLITS = ("osvm_code", "osvm_text")
Standings = Mapping[str, Row]


def signed(difference: float, digits: int = 2) -> str:
    """A difference with its sign, and a minus that is one."""
    text = f"{difference:+.{digits}f}".replace("-", "−")
    return text if float(f"{difference:.{digits}f}") else f"{0:.{digits}f}"


def accuracy_entry(row: Row | None, usual: int | None = None, digits: int = 2) -> Entry:
    """Mean and spread; the number of trials in brackets where it is not the usual one."""
    if row is None:
        return MISSING
    trials = "" if usual is None or row.n == usual else f" [{row.n}]"
    return Entry(row.accuracy(digits) + trials, bold=row.marked)


def usual_trials(rows: Collection[Row]) -> int:
    """The number of trials that most cells have; of equally frequent ones the larger."""
    counts = Counter(row.n for row in rows)
    return max(counts, key=lambda n: (counts[n], n)) if counts else 0


def trials_note(rows: Collection[Row]) -> str:
    """How many trials the cells of a table have."""
    counts = {row.n for row in rows}
    if not counts:
        return "No run."
    usual = usual_trials(rows)
    plural = "1 trial" if usual == 1 else f"{usual} trials"
    if len(counts) == 1:
        return f"{plural} in every cell that is there."
    return f"{plural} unless a cell says otherwise in square brackets."


def pairing_notes(standing: Mapping[Place, Standings]) -> list[str]:
    """Which tests had to do with fewer trials, or could not be made, setting by setting."""
    fewer, untested = [], []
    for place, rows in standing.items():
        where = f"{setting_name(*place[:2])}, {shift_name(place.shift)}"
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


def methods_run(experiment: Experiment, protocol: str) -> list[str]:
    """Methods with at least one run as they are, in the order of the tables."""
    ran = {k.method for k in experiment.cells if k.protocol == protocol and not k.variant}
    return [method for method in experiment.methods if method in ran]


def absent_note(wanted: Sequence[str], ran: Collection[str]) -> list[str]:
    """Whose columns are left out: those that would say nothing but missing."""
    absent = [name_of(method) for method in wanted if method not in ran]
    return [f"Missing, not run in any of these settings: {', '.join(absent)}."] if absent else []


def overview(experiment: Experiment, protocol: str) -> Sheet:
    """All settings by all methods under one protocol, as the paper's tables have them."""
    methods = methods_run(experiment, protocol)
    standing = {
        Place(*pair, shift): experiment.standings(Place(*pair, shift), protocol)
        for pair in DATASET_CASES
        for shift in SHIFTS
    }
    rows = [row for found in standing.values() for row in found.values()]
    usual = usual_trials(rows)
    groups = []
    for pair in DATASET_CASES:
        found = {shift: standing[Place(*pair, shift)] for shift in SHIFTS}
        if not any(found.values()):
            groups.append(
                Group(f"{setting_name(*pair)}: missing, no run with these epochs and this seed", [])
            )
            continue
        lines = [
            [
                Entry(shift_name(shift)),
                *(
                    accuracy_entry(found[shift].get(m), usual, digits=1)
                    if can_differ(Place(*pair, shift), m)
                    else NONE
                    for m in methods
                ),
            ]
            for shift in SHIFTS
        ]
        groups.append(Group(setting_name(*pair), lines))
    return Sheet(
        name=f"accuracy-{experiment.slug}-{protocol}",
        title=f"Test accuracy, {experiment.name}, {protocol} protocol",
        head=["setting", *map(name_of, methods)],
        groups=groups,
        notes=[
            *(MEASURE, BOLD, trials_note(rows)),
            *absent_note(PAPER_METHODS, methods),
            *_split_note(methods),
            *pairing_notes(standing),
        ],
    )


def can_differ(place: Place, method: str) -> bool:
    """False for split GIW where GIW itself splits: it would be the same run under another name."""
    return method != SPLIT_GIW or not paper_setting(*place).splits_validation


def _split_note(methods: Sequence[str]) -> list[str]:
    said = "Under class-prior shift the paper's GIW does not split"
    beside = f"; {name_of(SPLIT_GIW)} does, and is GIW itself elsewhere"
    return [said + (beside if SPLIT_GIW in methods else "") + "."]


def against_paper(experiment: Experiment, dataset: str, case: str) -> Sheet:
    """Both protocols, the paper's figure and the differences from it, method by method."""
    protocols = experiment.protocols(dataset, case)
    standing = {
        protocol: {
            Place(dataset, case, s): experiment.standings(Place(dataset, case, s), protocol)
            for s in SHIFTS
        }
        for protocol in protocols
    }
    groups = []
    for shift in SHIFTS:
        place = Place(dataset, case, shift)
        if any(rows[place] for rows in standing.values()):
            ran = {m for rows in standing.values() for m in rows[place]}
            lines = [
                _beside_paper(place, method, standing)
                for method in experiment.methods
                if method in PAPER_METHODS or method in ran
            ]
            lines += _published_split(experiment, place, protocols)
            groups.append(Group(shift_name(shift), lines))
        else:
            groups.append(
                Group(f"{shift_name(shift)}: missing, no run with these epochs and this seed", [])
            )
    absent = [p for p in PROTOCOLS if p not in protocols]
    notes = [MEASURE, BOLD]
    for protocol in protocols:
        notes += [f"{protocol}: {note}" for note in pairing_notes(standing[protocol])]
    notes += [f"No run under the {protocol} protocol." for protocol in absent]
    notes.append(
        "Paper: five trials, 400 epochs in the released code, validation points drawn once and "
        "left in the training pool, split by a one-class SVM. GIW as it is has our calibrated "
        "split under either protocol. A dash: the paper has no such figure."
    )
    columns = [column for p in protocols for column in (p, "trials", f"{p} − paper")]
    return Sheet(
        name=f"paper-{experiment.slug}-{dataset}-{case}",
        title=f"{setting_name(dataset, case)} beside the paper, {experiment.name}",
        head=["method", "paper", *columns],
        groups=groups,
        notes=notes,
    )


def _beside_paper(
    place: Place, method: str, standing: Mapping[str, Mapping[Place, Standings]]
) -> list[Entry]:
    paper = paper_accuracy(*place, method)
    line = [Entry(name_of(method)), NONE if paper is None else Entry(str(paper))]
    for rows in standing.values():
        row = rows[place].get(method)
        line.append(accuracy_entry(row))
        line.append(Entry("0" if row is None else str(row.n)))
        known = row is not None and paper is not None
        line.append(Entry(signed(100 * row.mean - paper.mean)) if known else NONE)  # type: ignore[union-attr]
    return line


def _published_split(
    experiment: Experiment, place: Place, protocols: Sequence[str]
) -> list[list[Entry]]:
    """GIW with the published split, which stands outside the contest, where it was run."""
    paper = paper_accuracy(*place, "giw")
    lines = []
    for variant in PUBLISHED_SPLITS:
        rows = [experiment.row(Key(place, protocol, "giw", variant)) for protocol in protocols]
        if not any(rows):
            continue
        line = [Entry(f"GIW, {variant_name(variant)}"), Entry(str(paper))]
        for row in rows:
            entry = accuracy_entry(row)
            line.append(Entry(entry.text, missing=entry.missing))
            line.append(Entry("0" if row is None else str(row.n)))
            known = row is not None and paper is not None
            line.append(Entry(signed(100 * row.mean - paper.mean)) if known else NONE)  # type: ignore[union-attr]
        lines.append(line)
    return lines


def coverage(experiments: Sequence[Experiment]) -> Sheet:
    """What was run: cells and trials for each experiment, protocol and data set."""
    groups = []
    for experiment in experiments:
        lines = []
        for protocol in PROTOCOLS:
            cells = [
                Entry(protocol),
                *(_covered(experiment, protocol, *pair) for pair in DATASET_CASES),
            ]
            ablated = sum(
                len(trials)
                for key, trials in experiment.cells.items()
                if key.variant and key.protocol == protocol
            )
            lines.append([*cells, Entry(str(ablated))])
        groups.append(Group(experiment.name, lines))
    n_cells = len(SHIFTS) * len(PAPER_METHODS)
    return Sheet(
        name="coverage",
        title="Cells and trials",
        head=["protocol", *(setting_name(*pair) for pair in DATASET_CASES), "runs of ablations"],
        groups=groups,
        notes=[
            f"Cells with at least one trial, of {n_cells} ({len(SHIFTS)} shifts × "
            f"{len(PAPER_METHODS)} methods), and the number of trials in them. Experiments with "
            "different epochs or seeds are never averaged together."
        ],
    )


def _covered(experiment: Experiment, protocol: str, dataset: str, case: str) -> Entry:
    sizes = [
        len(trials)
        for key, trials in experiment.cells.items()
        if (key.place.dataset, key.place.case, key.protocol) == (dataset, case, protocol)
        and not key.variant
        and key.method in PAPER_METHODS
    ]
    if not sizes:
        return Entry("none", missing=True)
    low, high = min(sizes), max(sizes)
    trials = f"{low}" if low == high else f"{low} to {high}"
    return Entry(
        f"{len(sizes)} of {len(SHIFTS) * len(PAPER_METHODS)} × {trials}",
    )
