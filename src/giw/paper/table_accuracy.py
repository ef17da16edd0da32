"""The paper's tables of accuracies: all methods in all settings, and ours beside theirs.

Tables 2 to 7 of the paper are one here, because IW-like and DA baselines are compared with the same
GIW, and cases (iii) and (iv) with the same shifts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from giw.pages.style import name_of, setting_name, shift_name, variant_name
from giw.pages.tables import MISSING, NONE, Entry, Group, Row, Sheet
from giw.paper.comparison import COMPARED, agrees
from giw.paper.frame import COLUMNS, Experiment, Key, Place
from giw.paper.printed import PaperFigure, paper_accuracy
from giw.paper.settings import DATASET_CASES, SHIFTS, paper_setting
from giw.paper.variants import SPLIT_GIW

MEASURE = "Test accuracy in percent: mean ± standard deviation over trials of the mean over the last ten epochs."  # noqa: E501
BOLD = "Bold: the highest mean of what was run, and methods that a two-sided paired t-test does not tell from it at the 5 % level, over the trials that both have; fewer than two allow no test."  # noqa: E501


# Cells, for every table of accuracies -------------------------------------------------------------


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


def beside_entries(row: Row | None, paper: PaperFigure | None) -> list[Entry]:
    """The paper's figure, and ours minus theirs in points; a dash where there is none."""
    theirs = NONE if paper is None else Entry(str(paper))
    away = NONE
    if row is not None and paper is not None:
        away = Entry(signed(100 * row.mean - paper.mean))
    return [theirs, away]


def usual_trials(rows: Collection[Row]) -> int:
    """The number of trials that most cells have; of equally frequent ones the larger."""
    counts = Counter(row.n for row in rows)
    return max(counts, key=lambda n: (counts[n], n)) if counts else 0


def trials_note(rows: Collection[Row]) -> str:
    """How many trials the cells of a table have."""
    usual = usual_trials(rows)
    plural = "1 trial" if usual == 1 else f"{usual} trials"
    if len({row.n for row in rows}) == 1:
        return f"{plural} in every cell that is there."
    return f"{plural} unless a cell says otherwise in square brackets."


def _groups(lines: dict[tuple[str, str], list[list[Entry]]]) -> list[Group]:
    """A group for each data set and case; one line for those without any run."""
    gone = "missing, no run with these epochs and this seed"
    return [
        Group(setting_name(*pair) + ("" if lines.get(pair) else f": {gone}"), lines.get(pair, []))
        for pair in DATASET_CASES
    ]


def _absent(wanted: Sequence[str], ran: Collection[str]) -> list[str]:
    absent = [name_of(method) for method in wanted if method not in ran]
    return [f"Missing, not run in any of these settings: {', '.join(absent)}."] if absent else []


# The tables ---------------------------------------------------------------------------------------


def overview(experiment: Experiment, protocol: str) -> Sheet:
    """All settings by all methods under one protocol."""
    methods = experiment.ran(protocol)
    places = [Place(*pair, shift) for pair in experiment.dataset_cases for shift in SHIFTS]
    standing = {place: experiment.standings(place, protocol) for place in places}
    rows = [row for found in standing.values() for row in found.values()]
    usual = usual_trials(rows)

    def cell(place: Place, method: str) -> Entry:
        # where GIW itself splits, split GIW would be the same run under another name
        if method == SPLIT_GIW and paper_setting(*place).splits_validation:
            return NONE
        return accuracy_entry(standing[place].get(method), usual, digits=1)

    lines: dict[tuple[str, str], list[list[Entry]]] = {}
    for place in places:
        if any(standing[other] for other in places if other[:2] == place[:2]):
            line = [Entry(shift_name(place.shift)), *(cell(place, m) for m in methods)]
            lines.setdefault(place[:2], []).append(line)
    beside = f"; {name_of(SPLIT_GIW)} does, and is GIW itself elsewhere" * (SPLIT_GIW in methods)
    return Sheet(
        name=f"accuracy-{experiment.slug}-{protocol}",
        title=f"Test accuracy, {experiment.name}, {protocol} protocol",
        head=["setting", *map(name_of, methods)],
        groups=_groups(lines),
        notes=[
            *(MEASURE, BOLD, trials_note(rows)),
            *_absent(COLUMNS, methods),
            f"Under class-prior shift the paper's GIW does not split{beside}.",
        ],
        pinned=2 if "giw" in methods else 1,
    )


def beside_the_paper(experiment: Experiment, dataset: str, case: str) -> Sheet:
    """Every protocol, the paper's figure and the differences from it, method by method."""
    protocols = experiment.protocols(dataset, case)
    groups = []
    for shift in SHIFTS:
        place = Place(dataset, case, shift)
        standing = [experiment.standings(place, protocol) for protocol in protocols]
        ran = {method for rows in standing for method in rows}
        keys = [k for k in experiment.cells if k.place == place and k.method == "giw"]
        variants = sorted({k.variant for k in keys if "osvm" in k.variant})
        lines: list[tuple[str, str, Sequence[Row | None]]] = [
            (method, "", [rows.get(method) for rows in standing])
            for method in experiment.methods
            if method in COLUMNS or method in ran
        ]
        for variant in variants:  # the published split stands outside the contest
            rows = [experiment.row(Key(place, p, "giw", variant)) for p in protocols]
            lines += [("giw", variant, rows)] if any(rows) else []
        words = "" if ran else ": missing, no run with these epochs and this seed"
        shown = [_beside(place, *line) for line in lines] if ran else []
        groups.append(Group(shift_name(shift) + words, shown))
    return Sheet(
        name=f"paper-{experiment.slug}-{dataset}-{case}",
        title=f"{setting_name(dataset, case)} beside the paper, {experiment.name}",
        head=["method", "paper", *(c for p in protocols for c in (p, "trials", f"{p} − paper"))],
        groups=groups,
        notes=[
            *(MEASURE, BOLD),
            "Paper: five trials, 400 epochs in the released code, validation points drawn once and "
            "left in the training pool, split by a one-class SVM. GIW as it is has our calibrated "
            "split under either protocol. A dash: the paper has no such figure.",
        ],
    )


def _beside(place: Place, method: str, variant: str, rows: Sequence[Row | None]) -> list[Entry]:
    paper = paper_accuracy(*place, method.removesuffix("_published"))
    name = name_of(method) + (f", {variant_name(variant)}" if variant else "")
    line = [Entry(name), NONE if paper is None else Entry(str(paper))]
    for row in rows:
        count = Entry("0" if row is None else str(row.n))
        line += [accuracy_entry(row, bold=not variant), count, beside_entries(row, paper)[1]]
    return line


def differences(experiment: Experiment, protocol: str) -> Sheet:
    """Ours minus the paper's, method by method; bold where a test does not tell them apart."""
    methods = [method for method in COMPARED if method in experiment.ran(protocol)]
    lines: dict[tuple[str, str], list[list[Entry]]] = {}
    compared = agreed = 0
    for place in (Place(*pair, shift) for pair in DATASET_CASES for shift in SHIFTS):
        line = []
        for method in methods:
            row = experiment.row(Key(place, protocol, method))
            paper = paper_accuracy(*place, method)
            if row is None or paper is None:
                line.append(MISSING)
                continue
            same = agrees(row, paper)
            compared, agreed = compared + 1, agreed + same
            line.append(Entry(signed(100 * row.mean - paper.mean, 1), bold=same))
        if any(entry is not MISSING for entry in line):
            named = [Entry(shift_name(place.shift)), *line]
            lines.setdefault(place[:2], []).append(named)
    return Sheet(
        name=f"differences-{experiment.slug}-{protocol}",
        title=f"Difference from the paper, {experiment.name}, {protocol} protocol",
        head=["setting", *map(name_of, methods)],
        groups=[group for group in _groups(lines) if group.rows],
        notes=[
            "Our mean test accuracy minus the paper's, in points.",
            f"Bold: in {agreed} of {compared} cells a two-sided Welch test does not tell our mean "
            "from the paper's (five trials) at the 5 % level. The paper's spread leaves out the "
            "draw of validation points, which is the same in all its trials.",
            *_absent(COMPARED, methods),
        ],
        pinned=2 if "giw" in methods else 1,
    )
