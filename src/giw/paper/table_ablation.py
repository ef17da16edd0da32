"""Tables of ablations: split errors (the paper's table 8), sizes, and one thing changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from giw.pages.style import name_of, setting_name, shift_name, variant_name
from giw.pages.tables import NONE, Entry, Group, Row, Sheet
from giw.paper.frame import COLUMNS, Experiment, Key, Place, contest_name, in_order, paired
from giw.paper.plan import PROTOCOLS
from giw.paper.printed import paper_split_error
from giw.paper.settings import DATASET_CASES, SHIFTS, paper_setting
from giw.paper.table_accuracy import (
    BOLD,
    MEASURE,
    accuracy_entry,
    beside_entries,
    signed,
    trials_note,
    usual_trials,
)

DIRECTIONS = {"out_to_in": "out → in", "in_to_out": "in → out"}
PAPER_RATES = (0.0, 0.1, 0.3, 0.5, 0.7)
PAPER_NOISES = ("label_noise_0.2", "label_noise_0.4")
PAPER_TRAIN_SIZES = (10_000, 12_500, 15_000, 17_500, 20_000)
# By kind: the title of its section and table, and variants shown as missing where they lack.
CHANGED: dict[str, tuple[str, Sequence[str]]] = {
    "representation": ("Weights from losses (-L) or from the hidden layer (-F)", ["hidden"]),
    "split_way": ("Calibrated against published split", ["osvm_code", "osvm_text", "oracle"]),
    "soft": ("Soft against hard membership", ["soft"]),
    "other": ("Other variants", []),
}
KINDS = {
    "split_error": "Split errors",
    "n_train": "Number of training points",
    "n_val": "Number of validation points",
    **{kind: title for kind, (title, _) in CHANGED.items()},
}
Where = tuple[str, str, str]  # data set, case and protocol


def amount_of(variant: str) -> tuple[str, float] | None:
    """Kind and amount of a variant that has one: ``out_to_in_0.3``, ``n_val_40``."""
    kind, _, amount = variant.rpartition("_")
    try:
        return (kind, float(amount)) if kind in (*DIRECTIONS, "n_train", "n_val") else None
    except ValueError:
        return None


def family_of(variant: str) -> str:
    """The kind of ablation that a variant belongs to."""
    amount = amount_of(variant)
    if amount is not None:
        return "split_error" if amount[0] in DIRECTIONS else amount[0]
    if variant in ("hidden", "soft"):
        return {"hidden": "representation", "soft": "soft"}[variant]
    ways = ("osvm_code", "osvm_text", "fc1", "input", "oracle")
    return "split_way" if variant in ways else "other"


def ablation_sheets(experiment: Experiment) -> dict[str, list[Sheet]]:
    """All tables of ablations by kind; a kind that was not run has none."""
    found: dict[str, list[Sheet | None]] = {
        "split_error": [split_errors(experiment, p) for p in where(experiment, "split_error")],
        "n_train": [sizes(experiment, p, "n_train") for p in where(experiment, "n_train")],
        "n_val": [sizes(experiment, p, "n_val") for p in where(experiment, "n_val")],
        **{kind: [changed(experiment, kind)] for kind in CHANGED},
    }
    return {kind: [s for s in sheets if s is not None] for kind, sheets in found.items()}


def where(experiment: Experiment, family: str) -> list[Where]:
    """Where an ablation was run."""
    keys = [k for k in experiment.cells if k.variant and family_of(k.variant) == family]
    found = {(*key.place[:2], key.protocol) for key in keys}
    return sorted(found, key=lambda w: (DATASET_CASES.index(w[:2]), PROTOCOLS.index(w[2])))


def amounts(experiment: Experiment, place: Where, kind: str) -> dict[float, str]:
    """Amounts of an ablation that were run, and the variant of each, such as 0.3 or 12,500."""
    found = {}
    for key in experiment.cells:
        amount = amount_of(key.variant)
        if (*key.place[:2], key.protocol) == place and amount is not None and amount[0] == kind:
            found[amount[1]] = key.variant
    return dict(sorted(found.items()))


def shifts_of(experiment: Experiment, place: Where, family: str) -> list[str]:
    """Shifts under which an ablation was run, in the paper's order."""
    found = {
        key.place.shift
        for key in experiment.cells
        if (*key.place[:2], key.protocol) == place and family_of(key.variant) == family
    }
    return [shift for shift in SHIFTS if shift in found]


def is_papers(place: Where) -> bool:
    """Whether the paper has this ablation: it is on MNIST (iii)."""
    return place[:2] == ("mnist", "iii")


def place_in_words(experiment: Experiment, place: Where) -> str:
    """Data set, experiment and protocol of an ablation."""
    return f"{setting_name(*place[:2])}, {experiment.name}, {place[2]} protocol"


# Split errors -------------------------------------------------------------------------------------


def split_error_rows(
    experiment: Experiment, place: Where
) -> dict[str, dict[tuple[str, float], Row | None]]:
    """Cells by shift, direction and rate: what was run, and on MNIST (iii) what the paper ran.

    Rate 0 is the true split, where the paper repeats GIW with its estimated one.
    """
    shifts = set(shifts_of(experiment, place, "split_error"))
    ran = {d: amounts(experiment, place, d) for d in DIRECTIONS}
    rates = {0.0} | {rate for found in ran.values() for rate in found}
    if is_papers(place):
        shifts, rates = shifts | set(PAPER_NOISES), rates | set(PAPER_RATES)

    def row(shift: str, direction: str, rate: float) -> Row | None:
        variant = "oracle" if rate == 0 else ran[direction].get(rate, "")
        key = Key(Place(*place[:2], shift), place[2], "giw", variant)
        return experiment.row(key) if variant else None

    return {
        s: {(d, rate): row(s, d, rate) for rate in sorted(rates) for d in DIRECTIONS}
        for s in SHIFTS
        if s in shifts
    }


def split_errors(experiment: Experiment, place: Where) -> Sheet:
    """The true split with a share of either group on the wrong side, beside the paper."""
    found = split_error_rows(experiment, place)
    rows = [row for cells in found.values() for row in cells.values() if row is not None]
    usual = usual_trials(rows)

    def line(shift: str, rate: float) -> list[Entry]:
        cells = [Entry(f"{rate:g}")]
        for direction in DIRECTIONS:
            row = found[shift][direction, rate]
            paper = paper_split_error(direction, rate, shift) if is_papers(place) else None
            ours = accuracy_entry(row, usual, bold=False)  # no contest
            cells += [ours, *beside_entries(row, paper)]
        return cells

    return Sheet(
        name=f"split-errors-{experiment.slug}-{'-'.join(place)}",
        title=f"Split errors, {place_in_words(experiment, place)}",
        head=["share moved", *(c for n in DIRECTIONS.values() for c in (n, "paper", "difference"))],
        groups=[
            Group(shift_name(s), [line(s, rate) for rate in dict.fromkeys(r for _, r in cells)])
            for s, cells in found.items()
        ],
        notes=[
            MEASURE,
            "GIW with the true split, a share of one group put on the wrong side; 0 is the true "
            "split, where the paper repeats GIW with its estimated one. Shares are rounded to "
            "whole points.",
            trials_note(rows),
        ],
    )


# Sizes --------------------------------------------------------------------------------------------


def size_variants(experiment: Experiment, place: Where, family: str) -> dict[str, str]:
    """Sizes by label and their variants: what was run, what the paper ran, and the usual size."""
    found = amounts(experiment, place, family)
    if family == "n_train":
        if is_papers(place):
            found = {float(n): f"n_train_{n}" for n in PAPER_TRAIN_SIZES} | found
        return {f"{int(size):,}": found[size] for size in sorted(found)} | {"all": ""}
    found = {float(paper_setting(*place[:2], "support").n_val): ""} | found
    return {f"{int(size):,}": found[size] for size in sorted(found)}


def sizes(experiment: Experiment, place: Where, family: str) -> Sheet:
    """All methods with fewer training points, or another number of validation points."""
    what = "training" if family == "n_train" else "validation"
    variants = size_variants(experiment, place, family)
    shifts = shifts_of(experiment, place, family)
    found = {
        (shift, variant): experiment.standings(Place(*place[:2], shift), place[2], variant)
        for shift in shifts
        for variant in variants.values()
    }
    rows = [row for standing in found.values() for row in standing.values()]
    usual, ran = usual_trials(rows), {row.method for row in rows}
    methods = [m for m in experiment.methods if m in COLUMNS or m in ran]

    def line(shift: str, label: str) -> list[Entry]:
        here = found[shift, variants[label]]
        return [Entry(label), *(accuracy_entry(here.get(m), usual, digits=1) for m in methods)]

    return Sheet(
        name=f"{family.replace('_', '-')}-{experiment.slug}-{'-'.join(place)}",
        title=f"Number of {what} points, {place_in_words(experiment, place)}",
        head=[f"{what} points", *map(name_of, methods)],
        groups=[Group(shift_name(s), [line(s, label) for label in variants]) for s in shifts],
        notes=[MEASURE, BOLD, trials_note(rows)],
        pinned=2,
    )


# One thing changed, against the method as it is ---------------------------------------------------


def changed(experiment: Experiment, kind: str) -> Sheet | None:
    """Variants beside the method as it is: accuracy, difference over shared trials, test."""
    title, always = CHANGED[kind]
    keys = [k for k in experiment.cells if k.variant and family_of(k.variant) == kind]
    groups = []
    for base in in_order({key._replace(variant="") for key in keys}):
        here = {key.variant for key in keys if key._replace(variant="") == base}
        lines = []
        for variant in ["", *always, *sorted(here - set(always))]:
            name = variant_name(variant)
            if kind == "representation":
                name = f"{name_of(base.method)}-{'F' if variant else 'L'}"
            key = base._replace(variant=variant)
            lines.append([Entry(name), *_cells(experiment, key), *_against(experiment, base, key)])
        groups.append(Group(contest_name(base), lines))
    note = (
        "Difference: variant minus the method as it is, over the trials that both have; p by a "
        "two-sided paired t-test over them, a dash where fewer than two are shared."
    )
    head = ["variant", "accuracy", "trials", "difference", "p", "shared trials"]
    name = f"{'split-ways' if kind == 'split_way' else kind}-{experiment.slug}"
    sheet = Sheet(name, f"{title}, {experiment.name}", head, groups, [MEASURE, note])
    return sheet if groups else None


def _cells(experiment: Experiment, key: Key) -> Iterable[Entry]:
    row = experiment.row(key)
    return accuracy_entry(row, bold=False), Entry("0" if row is None else str(row.n))


def _against(experiment: Experiment, base: Key, key: Key) -> Iterable[Entry]:
    """Difference, p-value and number of shared trials of one cell against another."""
    if key == base:
        return NONE, NONE, NONE
    p_value, ahead, common = paired(experiment.accuracy(base), experiment.accuracy(key))
    if not common:
        return NONE, NONE, Entry("0")
    return Entry(signed(100 * ahead)), Entry(p_text(p_value)), Entry(str(common))


def p_text(p_value: float | None) -> str:
    """A p-value as one reads it."""
    if p_value is None:
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
