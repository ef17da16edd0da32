"""Tables of ablations: split errors (the paper's table 8), sizes, and one thing changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isinf

from giw.pages.style import name_of, setting_name, shift_name, variant_name
from giw.pages.tables import NONE, Entry, Group, Row, Sheet, entries
from giw.paper.frame import COLUMNS, Experiment, Key, Place, in_order, paired
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
# Ablations of an amount: the title of their section and table, and what the amount is of.
AMOUNTS = {
    "split_error": ("Split errors", "share moved"),
    "n_train": ("Number of training points", "training points"),
    "n_val": ("Number of validation points", "validation points"),
}
# Others: their title, and variants shown as missing where they lack.
CHANGED: dict[str, tuple[str, Sequence[str]]] = {
    "representation": ("Weights from losses (-L) or from the hidden layer (-F)", ["hidden"]),
    "split_way": ("Calibrated against published split", ["osvm_code", "osvm_text", "oracle"]),
    "soft": ("Soft against hard membership", ["soft"]),
    "other": ("Other variants", []),
}
KINDS = {kind: title for kind, (title, _) in {**AMOUNTS, **CHANGED}.items()}
FAMILIES = {"hidden": "representation", "soft": "soft"}
FAMILIES |= dict.fromkeys(("osvm_code", "osvm_text", "fc1", "input", "oracle"), "split_way")
Where = tuple[str, str, str]  # data set, case and protocol


def amount_of(variant: str) -> tuple[str, float] | None:
    """Kind and amount of a variant that has one: ``out_to_in_0.3``, ``n_val_40``."""
    kind, _, amount = variant.rpartition("_")
    try:
        return (kind, float(amount)) if kind in (*DIRECTIONS, *AMOUNTS) else None
    except ValueError:
        return None


def family_of(variant: str) -> str:
    """The kind of ablation that a variant belongs to."""
    amount = amount_of(variant)
    if amount is None:
        return FAMILIES.get(variant, "other")
    return "split_error" if amount[0] in DIRECTIONS else amount[0]


def ablation_sheets(experiment: Experiment, kind: str) -> list[Sheet]:
    """The tables of one kind of ablation; a kind that was not run has none."""
    if kind in AMOUNTS:
        return [amount_sheet(experiment, at, kind) for at in where(experiment, kind)]
    return [changed(experiment, kind)] if _cells_of(experiment, kind) else []


def _cells_of(experiment: Experiment, family: str) -> list[Key]:
    return [key for key in experiment.cells if key.variant and family_of(key.variant) == family]


def _where(key: Key) -> Where:
    return (*key.place[:2], key.protocol)


def where(experiment: Experiment, family: str) -> list[Where]:
    """Where an ablation was run."""
    found = {_where(key) for key in _cells_of(experiment, family)}
    return sorted(found, key=lambda w: (DATASET_CASES.index(w[:2]), PROTOCOLS.index(w[2])))


def is_papers(at: Where) -> bool:
    """Whether the paper has this ablation: it is on MNIST (iii)."""
    return at[:2] == ("mnist", "iii")


def place_in_words(experiment: Experiment, at: Where) -> str:
    """Data set, experiment and protocol of an ablation."""
    return f"{setting_name(*at[:2])}, {experiment.name}, {at[2]} protocol"


def slug_of(experiment: Experiment, at: Where, family: str) -> str:
    """A name for the table and the figure of an ablation."""
    kind = "split-errors" if family == "split_error" else family.replace("_", "-")
    return f"{kind}-{experiment.slug}-{'-'.join(at)}"


# An amount of something ---------------------------------------------------------------------------


def amount_rows(
    experiment: Experiment, at: Where, family: str
) -> dict[str, dict[float, dict[str, Row]]]:
    """Cells by shift, amount, and direction or method: what was run, and the paper's amounts.

    Rate 0 of split errors is the true split, where the paper repeats GIW with its estimated one;
    all training points are infinitely many.
    """
    keys = [key for key in _cells_of(experiment, family) if _where(key) == at]
    shifts = {key.place.shift for key in keys}
    ran = {amount_of(key.variant): key.variant for key in keys}
    if family == "split_error":
        rates = {0.0, *(kind[1] for kind in ran if kind)}
        if is_papers(at):
            shifts, rates = shifts | set(PAPER_NOISES), rates | set(PAPER_RATES)

        def rows(place: Place, amount: float) -> dict[str, Row]:
            ways = {d: ran.get((d, amount)) if amount else "oracle" for d in DIRECTIONS}
            cells = {d: Key(place, at[2], "giw", way) for d, way in ways.items() if way}
            return {d: row for d, key in cells.items() if (row := experiment.row(key))}

        amounts = sorted(rates)
    else:
        sizes = {kind[1]: variant for kind, variant in ran.items() if kind}
        if family == "n_val":
            sizes = {float(paper_setting(*at[:2], "support").n_val): ""} | sizes
        else:
            papers = PAPER_TRAIN_SIZES if is_papers(at) else ()
            sizes = {float(n): f"n_train_{n}" for n in papers} | sizes | {inf: ""}

        def rows(place: Place, amount: float) -> dict[str, Row]:
            return experiment.standings(place, at[2], sizes[amount])

        amounts = sorted(sizes)
    return {s: {x: rows(Place(*at[:2], s), x) for x in amounts} for s in SHIFTS if s in shifts}


def amount_sheet(experiment: Experiment, at: Where, family: str) -> Sheet:
    """Split errors in both directions beside the paper, or all methods at several sizes."""
    found = amount_rows(experiment, at, family)
    rows = [row for cells in found.values() for here in cells.values() for row in here.values()]
    usual, ran = usual_trials(rows), {row.method for row in rows}
    methods = [m for m in experiment.methods if m in COLUMNS or m in ran]
    splits = family == "split_error"

    def cells(shift: str, amount: float, here: dict[str, Row]) -> Iterable[Entry]:
        yield Entry("all" if isinf(amount) else f"{amount:,.0f}" if amount >= 1 else f"{amount:g}")
        if not splits:
            yield from (accuracy_entry(here.get(m), usual, digits=1) for m in methods)
            return
        for direction in DIRECTIONS:
            row = here.get(direction)
            paper = paper_split_error(direction, amount, shift) if is_papers(at) else None
            yield accuracy_entry(row, usual, bold=False)  # no contest
            yield from beside_entries(row, paper)

    title, first = AMOUNTS[family]
    beside = [c for name in DIRECTIONS.values() for c in (name, "paper", "difference")]
    moved = (
        "GIW with the true split, a share of one group put on the wrong side; 0 is the true "
        "split, where the paper repeats GIW with its estimated one. Shares are rounded to "
        "whole points."
    )
    return Sheet(
        name=slug_of(experiment, at, family),
        title=f"{title}, {place_in_words(experiment, at)}",
        head=[first, *(beside if splits else map(name_of, methods))],
        groups=[
            Group(shift_name(s), [list(cells(s, x, here)) for x, here in amounts.items()])
            for s, amounts in found.items()
        ],
        notes=[MEASURE, moved if splits else BOLD, trials_note(rows)],
        pinned=1 if splits else 2,
    )


# One thing changed, against the method as it is ---------------------------------------------------


def changed(experiment: Experiment, kind: str) -> Sheet:
    """Variants beside the method as it is: accuracy, difference over shared trials, test."""
    title, always = CHANGED[kind]
    keys = _cells_of(experiment, kind)

    def line(base: Key, variant: str) -> list[Entry]:
        name = variant_name(variant)
        if kind == "representation":
            name = f"{name_of(base.method)}-{'F' if variant else 'L'}"
        key = base._replace(variant=variant)
        row = experiment.row(key)
        ours = [accuracy_entry(row, bold=False), Entry("0" if row is None else str(row.n))]
        p_value, ahead, common = paired(experiment.accuracy(base), experiment.accuracy(key))
        tested = entries(signed(100 * ahead), p_text(p_value)) if common else [NONE] * 2
        return [Entry(name), *ours, *([*tested, Entry(str(common))] if variant else [NONE] * 3)]

    groups = []
    for base in in_order({key._replace(variant="") for key in keys}):
        here = {key.variant for key in keys if key._replace(variant="") == base}
        lines = [line(base, variant) for variant in ["", *always, *sorted(here - set(always))]]
        groups.append(Group(f"{name_of(base.method)} on {base.place.name}, {base.protocol}", lines))
    note = (
        "Difference: variant minus the method as it is, over the trials that both have; p by a "
        "two-sided paired t-test over them, a dash where fewer than two are shared."
    )
    head = ["variant", "accuracy", "trials", "difference", "p", "shared trials"]
    name = f"{'split-ways' if kind == 'split_way' else kind}-{experiment.slug}"
    return Sheet(name, f"{title}, {experiment.name}", head, groups, [MEASURE, note])


def p_text(p_value: float | None) -> str:
    """A p-value as one reads it."""
    if p_value is None:
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
