"""The paper's tables of accuracies: all methods in all settings, ours above theirs.

Tables 2 to 7 of the paper are one here, because IW-like and DA baselines are compared with the same
GIW, and cases (iii) and (iv) with the same shifts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from giw.pages.style import name_of, setting_name, shift_name
from giw.pages.tables import MISSING, NONE, Entry, Group, Row, Sheet
from giw.paper.frame import COLUMNS, PLACES, Experiment, Place
from giw.paper.printed import PaperFigure, paper_accuracy
from giw.paper.settings import DATASET_CASES, paper_setting
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


def overview(experiment: Experiment, protocol: str) -> Sheet:
    """All settings by all methods under one protocol; at the paper's scale its figures below."""
    methods = experiment.ran(protocol)
    standing = {place: experiment.standings(place, protocol) for place in PLACES}
    rows = [row for found in standing.values() for row in found.values()]
    usual, ran = usual_trials(rows), {place[:2] for place in PLACES if standing[place]}

    def ours(place: Place, method: str) -> Entry:
        # where GIW itself splits, split GIW would be the same run under another name
        if method == SPLIT_GIW and paper_setting(*place).splits_validation:
            return NONE
        return accuracy_entry(standing[place].get(method), usual, digits=1)

    def theirs(place: Place, method: str) -> Entry:
        paper = paper_accuracy(*place, method.removesuffix("_published"))
        return NONE if paper is None else Entry(f"{paper.mean:.1f} ± {paper.std:.1f}")

    def lines(place: Place) -> Iterable[list[Entry]]:
        yield [Entry(shift_name(place.shift)), *(ours(place, m) for m in methods)]
        if experiment.scale == "paper":
            yield [Entry("— paper"), *(theirs(place, m) for m in methods)]

    absent = ", ".join(name_of(method) for method in COLUMNS if method not in methods)
    beside = f"; {name_of(SPLIT_GIW)} does, and is GIW itself elsewhere" * (SPLIT_GIW in methods)
    return Sheet(
        name=f"accuracy-{experiment.slug}-{protocol}",
        title=f"Test accuracy, {experiment.name}, {protocol} protocol",
        head=["setting", *map(name_of, methods)],
        groups=[
            Group(setting_name(*at), [line for p in PLACES if p[:2] == at for line in lines(p)])
            for at in DATASET_CASES
            if at in ran
        ],
        notes=[
            *(MEASURE, BOLD, trials_note(rows)),
            *[f"Missing, not run in any of these settings: {absent}."] * bool(absent),
            f"Under class-prior shift the paper's GIW does not split{beside}.",
        ],
        pinned=2 if "giw" in methods else 1,
    )
