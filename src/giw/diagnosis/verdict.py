"""The one verdict: what was found, what to do, and the code and steps that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from giw.diagnosis.data import Data
from giw.diagnosis.findings import Finding, counted, percent
from giw.diagnosis.share import CaseVerdict
from giw.tables.table import listed

ACTIONS = {
    "giw": "Train with generalized importance weighting (giw.ReweightedClassifier): training rows "
    "are weighted by what validation shows, features and labels, and validation rows outside "
    "join training.",
    "weighting": "Train with giw.ReweightedClassifier, which weights training rows to look like "
    "validation rows.",
    "class weights": "Weight every training row by its class's share in validation over its share "
    "in training; nothing more is needed.",
    "plain": "Train plainly on all rows together.",
}
SHIFTS = {  # and what is added where that is all there is
    "covariate": (
        "the features are distributed differently",
        "; training covers them all the same",
    ),
    "class prior": ("the classes are mixed in other shares", ", and look the same otherwise"),
    "label": ("the same features get other labels in validation than in training", ""),
}
REPAIRS = {
    "missing column": "First add {} to the other table, or leave out.",
    "unit": "First bring {} to one unit.",
    "constant": "First leave out {}.",
    "timestamp": "First derive what repeats from {}, such as the hour or the weekday, or leave "
    "out.",
}
REMAINDER = {  # what a kind of shift leaves alone, and the p-value below which it needs another
    "class prior": ("within class", 0.01),
    "covariate": ("by features", 0.005),
    "label": ("covariate", 0.005),
}


@dataclass(frozen=True)
class Recommendation:
    """What to do.

    Attributes
    ----------
    answer : str
        The finding in one sentence.
    action : str
        What to do about it, in one sentence.
    next_steps : tuple of str
        What would help further.
    remedy : {"giw", "weighting", "class weights", "plain"}
        What ``action`` comes down to: :class:`giw.ReweightedClassifier` with and without rows
        outside, weights by class, or one model of all rows.
    kinds : tuple of str
        What ``answer`` names: kinds of :class:`Finding`; empty without a shift.
    code : str
        Python that does it with the very tables, named X, y, X_val and y_val; empty without labels.
    """

    answer: str
    action: str
    next_steps: tuple[str, ...]
    remedy: str
    kinds: tuple[str, ...] = ()
    code: str = ""


def recommend(
    findings: Sequence[Finding],
    *,
    case: CaseVerdict,
    outside: float,
    n_outside_rows: int,
    n_new_rows: int = 0,
    effective_share: float = 1.0,
    label_p: float = 1.0,
    column: str = "",
) -> Recommendation:
    """Weigh the findings: what is certain first, then what training cannot show, then the rest.

    Coverage is claimed only if the upper bound of the share outside is below the materiality, no
    row is listed as outside and no class or category is unseen. ``n_new_rows`` of the rows listed
    have something that training never has, which facts tell already; ``column`` is where features
    differ most.
    """
    repairs, news = [f for f in findings if f.to_repair], [f for f in findings if f.is_news]
    shifts, (low, high) = what_shifted(findings, label_p), case.val_outside
    others = n_outside_rows - n_new_rows
    outside_found = others > 0 or any(f.kind == "outside" and f.found for f in findings)
    nothing_new = not (news or n_outside_rows or outside_found)
    covered = nothing_new and high < case.materiality
    told = [_told(facts) for facts in _by_kind([*repairs, *news])]
    if others > 0 and low >= case.materiality:
        told.append(f"about {percent(outside)} of the test distribution lies outside the training "
                    f"data ({percent(low)} to {percent(high)})")  # fmt: skip
    elif others > 0:
        lie = "lies" if others == 1 else "lie"
        told.append(f"{counted(others, 'validation row')} {lie} outside the training data")
    elif outside_found:
        told.append("some validation rows lie outside the training data, none of them for certain")
    alone = covered and not told and len(shifts) == 1
    for kind in shifts:
        where = f", most of all column {column!r}" if column and kind == "covariate" else ""
        told.append(SHIFTS[kind][0] + where + SHIFTS[kind][1] * alone)
    if not told:
        certain = [f for f in findings if f.is_fact and f.found]
        told = [f"no shift was found in {counted(case.points, 'validation row')}"]
        if covered:
            told = ["training and validation data look alike"]
        if certain:
            told = [f"no shift was found by a test; see to this first: {certain[0].text[:-1]}"]
    remedy = "plain"
    if not nothing_new or "label" in shifts:
        remedy = "giw"
    elif shifts:
        remedy = "class weights" if shifts == ("class prior",) else "weighting"
    action = " ".join([*map(_repair, _by_kind(repairs)), ACTIONS[remedy]])
    if remedy == "plain" and not covered:
        action += " Collect more validation rows before ruling out a shift."
    kinds = [*(fact.kind for fact in (*repairs, *news)), *["outside"] * outside_found]
    effective_share = effective_share if remedy != "plain" else 1.0
    steps = _next_steps({test.kind for test in findings}, case, effective_share, n_outside_rows)
    told[0] = told[0][0].upper() + told[0][1:]
    return Recommendation(
        "; ".join(told) + ".", action, tuple(steps), remedy, (*dict.fromkeys(kinds), *shifts)
    )


def what_shifted(
    findings: Sequence[Finding], label_p: float = 1.0, simpler: float = 10.0
) -> tuple[str, ...]:
    """The fewest kinds of shift that explain what was found.

    Class shares that change change the features too, and features that change change class shares
    where classes depend on them. One kind explains everything if what it leaves alone, which is
    features within a class, labels given the features, or features, shows nothing; of several such
    kinds the one whose remainder has the largest p-value is named, that of class shares, which have
    the fewest parameters, times ``simpler``. Where class shares differ, the test of labels leaves
    them alone, and ``label_p``, by features alone, is what the features leave.
    """
    p_value = {test.kind: test.p_value for test in findings if not test.is_fact}
    p_value["by features"] = min(label_p, p_value.get("label", 1.0))
    found = [kind for kind in REMAINDER if any(f.kind == kind and f.found for f in findings)]
    # what is left by each kind, and below what it needs another
    rest = {kind: p_value.get(REMAINDER[kind][0], 1.0) for kind in found}
    alone = {kind: p for kind, p in rest.items() if p > REMAINDER[kind][1]}
    if "class prior" in alone:
        alone["class prior"] *= simpler
    if alone:
        return (max(alone, key=lambda kind: alone[kind]),)
    return tuple(kind for kind in ("covariate", "label") if kind in found) or tuple(found)


def _by_kind(facts: Sequence[Finding]) -> list[list[Finding]]:
    """Facts in their order, those of a kind together."""
    return [list(each) for _, each in groupby(facts, lambda fact: fact.kind)]


def _told(facts: Sequence[Finding]) -> str:
    """The first fact of a kind, and how many others there are."""
    more = f" ({len(facts) - 1:,} more likewise)" if len(facts) > 1 else ""
    return facts[0].text.removesuffix(".") + more


def _repair(facts: Sequence[Finding]) -> str:
    """What to do about the columns of one kind of fact."""
    names = f"column{'s' * (len(facts) > 1)} {listed([str(f.column) for f in facts], 3)}"
    way = REPAIRS.get(facts[0].kind, "First write {} in the same way in both tables.")
    return way.format(names)


def _next_steps(
    asked: set[str], case: CaseVerdict, effective_share: float, n_outside_rows: int
) -> Iterator[str]:
    low, high = case.val_outside
    if n_outside_rows:
        rows = "row" if n_outside_rows == 1 else f"{n_outside_rows:,} rows"
        yield f"Label more data like the {rows} listed as outside."
    if low < case.materiality <= high:
        more = case.points_needed
        way = "features that separate better would help more than further rows."
        if more and more > case.points:
            way = f"about {more:,} validation rows would decide (now {case.points:,})."
        yield (
            f"Between {percent(low)} and {percent(high)} of the test distribution lie outside the "
            f"training data, at 95 % confidence. Whether that is {percent(case.materiality)} or "
            f"more cannot be told yet: {way}"
        )
    if effective_share < 0.1:  # weights are fragile
        yield (
            f"Weighted, the training rows are worth only {percent(effective_share)} of their "
            "number. Prefer a method that shrinks weights, or collect validation rows."
        )
    if "label" not in asked:
        yield (
            "Too few labelled validation rows lie inside the training data (at least 8 are needed) "
            "to tell whether labels have shifted too."
            if "class prior" in asked
            else "Label validation rows (at least 8) to learn whether labels have shifted too."
        )


def python_code(remedy: str, data: Data, *, frame: bool) -> str:
    """Lines that train as advised, with boosted trees, and an encoder where there is text.

    Columns of another unit are converted, and those that cannot be compared are left out. Tables
    are data frames or, without ``frame``, arrays with the names of ``data``.
    """
    from giw.pages.page import render

    table, facts = data.train.table, data.facts
    text = any(c.dtype == object or name in table.dates for name, c in table.columns.items())
    lost = [f.column for f in facts if f.aside]
    units = [f"{f.column!r}: X_val[{f.column!r}] / {f.factor:g}" for f in facts if f.kind == "unit"]
    return render(
        "advice.py.txt", remedy=remedy, text=text, val_labels=data.val.y is not None, frame=frame,
        names=data.names, lost=lost, units=units, changed=bool(lost or units),
    ).strip()  # fmt: skip
