"""Tables of ablations: split errors, sizes, and one thing changed against the method as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from giw.pages.style import name_of, setting_name, shift_name, variant_name
from giw.pages.tables import NONE, Entry, Group, Row, Sheet
from giw.paper.accuracy_tables import (
    BOLD,
    MEASURE,
    accuracy_entry,
    count_entry,
    difference_entry,
    pairing_notes,
    paper_entry,
    place_name,
    signed,
    trials_note,
    usual_trials,
)
from giw.paper.frame import Experiment, Key, Place, order_of, paired
from giw.paper.plan import PAPER_METHODS, PROTOCOLS
from giw.paper.printed import paper_split_error
from giw.paper.settings import DATASET_CASES, SHIFTS, paper_setting

DIRECTIONS = {"out_to_in": "out → in", "in_to_out": "in → out"}
PAPER_RATES = (0.0, 0.1, 0.3, 0.5, 0.7)
PAPER_NOISES = ("label_noise_0.2", "label_noise_0.4")
PAPER_TRAIN_SIZES = (10_000, 12_500, 15_000, 17_500, 20_000)
SPLIT_WAYS = ("osvm_code", "osvm_text", "fc1", "input", "oracle")
SPLIT_WAYS_SHOWN = ("osvm_code", "osvm_text", "oracle")  # as missing where they were not run
REPRESENTATIONS = {
    "DIW-L": ("diw", ""),
    "DIW-F": ("diw", "hidden"),
    "GIW-L": ("giw", ""),
    "GIW-F": ("giw", "hidden"),
}
Where = tuple[str, str, str]  # data set, case and protocol
Label = Callable[[str, str], str]


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
    return "split_way" if variant in SPLIT_WAYS else "other"


def where(experiment: Experiment, family: str) -> list[Where]:
    """Where an ablation was run."""
    found = {
        (*key.place[:2], key.protocol)
        for key in experiment.cells
        if key.variant and family_of(key.variant) == family
    }
    return sorted(found, key=lambda w: (DATASET_CASES.index(w[:2]), PROTOCOLS.index(w[2])))


def _variants(experiment: Experiment, place: Where) -> list[Key]:
    cells = experiment.cells
    return [k for k in cells if (*k.place[:2], k.protocol) == place and k.variant]


def amounts(experiment: Experiment, place: Where, kind: str) -> dict[float, str]:
    """Amounts of an ablation that were run, and the variant of each, such as 0.3 or 12,500."""
    found = {}
    for key in _variants(experiment, place):
        amount = amount_of(key.variant)
        if amount is not None and amount[0] == kind:
            found[amount[1]] = key.variant
    return dict(sorted(found.items()))


def shifts_of(experiment: Experiment, place: Where, family: str) -> list[str]:
    """Shifts under which an ablation was run, in the paper's order."""
    keys = _variants(experiment, place)
    found = {key.place.shift for key in keys if family_of(key.variant) == family}
    return [shift for shift in SHIFTS if shift in found]


def _title(experiment: Experiment, place: Where) -> str:
    return f"{setting_name(*place[:2])}, {experiment.name}, {place[2]} protocol"


# Split errors -------------------------------------------------------------------------------------


def is_papers(place: Where) -> bool:
    """Whether the paper has this ablation: it is on MNIST (iii)."""
    return place[:2] == ("mnist", "iii")


def split_error_grid(experiment: Experiment, place: Where) -> tuple[list[str], list[float]]:
    """Shifts and rates of the table: what was run, and on MNIST (iii) what the paper ran."""
    shifts = set(shifts_of(experiment, place, "split_error"))
    rates = {0.0} | {r for d in DIRECTIONS for r in amounts(experiment, place, d)}
    if is_papers(place):
        shifts |= set(PAPER_NOISES)
        rates |= set(PAPER_RATES)
    return [shift for shift in SHIFTS if shift in shifts], sorted(rates)


def split_error_row(
    experiment: Experiment, place: Where, shift: str, direction: str, rate: float
) -> Row | None:
    """Our cell; at rate 0 that is the true split."""
    variants = amounts(experiment, place, direction) | {0.0: "oracle"}
    variant = variants.get(rate, f"{direction}_{rate:g}")
    return experiment.row(Key(Place(*place[:2], shift), place[2], "giw", variant))


def split_error_sheet(experiment: Experiment, place: Where) -> Sheet:
    """The true split with a share of either group on the wrong side, beside the paper."""
    shifts, rates = split_error_grid(experiment, place)
    found = {
        (shift, direction, rate): split_error_row(experiment, place, shift, direction, rate)
        for shift in shifts
        for direction in DIRECTIONS
        for rate in rates
    }
    rows = [row for row in found.values() if row is not None]
    usual = usual_trials(rows)

    def cells(shift: str, direction: str, rate: float) -> list[Entry]:
        row = found[shift, direction, rate]
        paper = paper_split_error(direction, rate, shift) if is_papers(place) else None
        ours = accuracy_entry(row, usual, bold=False)  # no contest
        return [ours, paper_entry(paper), difference_entry(row, paper)]

    groups = [
        Group(
            shift_name(shift),
            [
                [Entry(f"{rate:g}"), *(c for d in DIRECTIONS for c in cells(shift, d, rate))]
                for rate in rates
            ],
        )
        for shift in shifts
    ]
    columns = [c for name in DIRECTIONS.values() for c in (name, "paper", "difference")]
    return Sheet(
        name=f"split-errors-{experiment.slug}-{'-'.join(place)}",
        title=f"Split errors, {_title(experiment, place)}",
        head=["share moved", *columns],
        groups=groups,
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
    sizes = {float(paper_setting(*place[:2], "support").n_val): ""} | found
    return {f"{int(size):,}": sizes[size] for size in sorted(sizes)}


def size_rows(experiment: Experiment, place: Where, shift: str, variant: str) -> dict[str, Row]:
    """All methods at one size."""
    return experiment.standings(Place(*place[:2], shift), place[2], variant)


def size_sheet(experiment: Experiment, place: Where, family: str) -> Sheet:
    """All methods with fewer training points, or another number of validation points."""
    what = "training" if family == "n_train" else "validation"
    variants = size_variants(experiment, place, family)
    shifts = shifts_of(experiment, place, family)
    found = {(s, v): size_rows(experiment, place, s, v) for s in shifts for v in variants.values()}
    rows = [row for standing in found.values() for row in standing.values()]
    usual = usual_trials(rows)
    ran = {row.method for row in rows}
    methods = [m for m in experiment.methods if m in PAPER_METHODS or m in ran]

    def line(shift: str, label: str) -> list[Entry]:
        here = found[shift, variants[label]]
        return [Entry(label), *(accuracy_entry(here.get(m), usual, digits=1) for m in methods)]

    pairing = [
        f"{label}: {note}"
        for label, variant in variants.items()
        for note in pairing_notes({Place(*place[:2], s): found[s, variant] for s in shifts})
    ]
    return Sheet(
        name=f"{family.replace('_', '-')}-{experiment.slug}-{'-'.join(place)}",
        title=f"Number of {what} points, {_title(experiment, place)}",
        head=[f"{what} points", *map(name_of, methods)],
        groups=[Group(shift_name(s), [line(s, label) for label in variants]) for s in shifts],
        notes=[MEASURE, BOLD, trials_note(rows), *pairing],
    )


# One thing changed, against the method as it is ---------------------------------------------------


def changed_sheet(
    experiment: Experiment,
    name: str,
    title: str,
    family: str,
    always: Sequence[str],
    label: Label = lambda method, variant: variant_name(variant),
) -> Sheet | None:
    """Variants beside the method as it is: accuracy, difference over shared trials, test.

    ``always`` names the variants that are shown as missing where they were not run, ``label`` says
    what a line is called.
    """
    groups = []
    for base, variants in contests(experiment, family, always).items():
        lines = []
        for variant in variants:
            key = base._replace(variant=variant)
            cells = [*_accuracy_and_trials(experiment, key), *_difference(experiment, base, key)]
            lines.append([Entry(label(base.method, variant)), *cells])
        groups.append(Group(contest_name(base), lines))
    if not groups:
        return None
    return Sheet(
        name=f"{name}-{experiment.slug}",
        title=f"{title}, {experiment.name}",
        head=["variant", "accuracy", "trials", "difference", "p", "shared trials"],
        groups=groups,
        notes=[
            MEASURE,
            "Difference: variant minus the method as it is, over the trials that both have; p by "
            "a two-sided paired t-test over them, a dash where fewer than two are shared.",
        ],
    )


def contests(experiment: Experiment, family: str, always: Sequence[str]) -> dict[Key, list[str]]:
    """Methods as they are whose variants were run, each with the variants to stand beside it."""
    keys = [k for k in experiment.cells if k.variant and family_of(k.variant) == family]
    bases = sorted(
        {key._replace(variant="") for key in keys},
        key=lambda k: (
            order_of(k.place),
            PROTOCOLS.index(k.protocol),
            experiment.methods.index(k.method),
        ),
    )
    found = {}
    for base in bases:
        here = {key.variant for key in keys if key._replace(variant="") == base}
        found[base] = ["", *always, *sorted(here - set(always))]
    return found


def contest_name(base: Key) -> str:
    """A method in its setting, such as ``GIW on MNIST (iii), support shift, honest``."""
    return f"{name_of(base.method)} on {place_name(base.place)}, {base.protocol}"


def _accuracy_and_trials(experiment: Experiment, key: Key) -> list[Entry]:
    row = experiment.row(key)
    return [accuracy_entry(row, bold=False), count_entry(row)]


def _difference(experiment: Experiment, base: Key, key: Key) -> list[Entry]:
    """Difference, p-value and number of shared trials of one cell against another."""
    if key == base:
        return [NONE, NONE, NONE]
    p_value, ahead, common = paired(experiment.accuracy(base), experiment.accuracy(key))
    if not common:
        return [NONE, NONE, Entry("0")]
    return [Entry(signed(100 * ahead)), Entry(p_text(p_value)), Entry(str(common))]


def p_text(p_value: float | None) -> str:
    """A p-value as one reads it."""
    if p_value is None:
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def protocol_sheet(experiment: Experiment) -> Sheet | None:
    """Honest against published protocol, wherever a method was run under the published one."""
    keys = sorted(
        (key for key in experiment.cells if key.protocol == "published"),
        key=lambda k: (experiment.methods.index(k.method), k.variant),
    )
    groups = []
    for place in experiment.places_of(keys):
        lines = []
        for key in (key for key in keys if key.place == place):
            base = key._replace(protocol="honest")
            variant = f", {variant_name(key.variant)}" if key.variant else ""
            lines.append(
                [
                    Entry(name_of(key.method) + variant),
                    *_accuracy_and_trials(experiment, base),
                    *_accuracy_and_trials(experiment, key),
                    *_difference(experiment, base, key),
                ]
            )
        groups.append(Group(place_name(place), lines))
    if not groups:
        return None
    return Sheet(
        name=f"protocols-{experiment.slug}",
        title=f"Honest against published protocol, {experiment.name}",
        head=["method", "honest", "trials", "published", "trials", "difference", "p", "shared"],
        groups=groups,
        notes=[
            MEASURE,
            "Honest: validation points are no training points and are drawn anew in each trial. "
            "Published: they are drawn once for all trials from the training pool and stay in it, "
            "so that the spread over trials leaves out the draw. Difference: published minus "
            "honest over the trials that both have, which share label noise and initial net; p by "
            "a two-sided paired t-test.",
        ],
    )


def _representation_label(method: str, variant: str) -> str:
    return f"{name_of(method)}-{'F' if variant else 'L'}"


CHANGED: dict[str, tuple[str, str, Sequence[str], Iterable[Label]]] = {
    "representation": (
        "representation",
        "Weights from losses (-L) or from the hidden layer (-F)",
        ["hidden"],
        [_representation_label],
    ),
    "split_way": ("split-ways", "Calibrated against published split", SPLIT_WAYS_SHOWN, []),
    "soft": ("soft", "Soft against hard membership", ["soft"], []),
    "other": ("other", "Other variants", [], []),
}


def ablation_sheets(experiment: Experiment) -> dict[str, list[Sheet]]:
    """All tables of ablations by kind; a kind that was not run has none."""
    sheets = {
        "split_error": [split_error_sheet(experiment, p) for p in where(experiment, "split_error")]
    }
    for family in ("n_train", "n_val"):
        sheets[family] = [size_sheet(experiment, p, family) for p in where(experiment, family)]
    few = {"protocol": protocol_sheet(experiment)}
    for family, (name, title, always, label) in CHANGED.items():
        few[family] = changed_sheet(experiment, name, title, family, always, *label)
    return sheets | {kind: [] if sheet is None else [sheet] for kind, sheet in few.items()}
