"""The one verdict: what was found, what to do, and the code and steps that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from giw.diagnosis.case import CaseVerdict
from giw.diagnosis.findings import Finding, counted, percent
from giw.tables.table import listed

FEW_EFFECTIVE = 0.1  # share of the training rows below which weights are fragile
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
SHIFTS = {
    "covariate": "the features are distributed differently",
    "class prior": "the classes are mixed in other shares",
    "label": "the same features get other labels in validation than in training",
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
) -> Recommendation:
    """Weigh the findings: what is certain first, then what training cannot show, then the rest.

    Coverage is claimed only if the upper bound of the share outside is below the materiality, no
    row is listed as outside and no class or category is unseen. ``n_new_rows`` of the rows listed
    have something that training never has, which facts tell already.
    """
    repairs, news = [f for f in findings if f.to_repair], [f for f in findings if f.is_news]
    told = [_told(facts) for facts in _by_kind((*repairs, *news))]
    others = n_outside_rows - n_new_rows
    low, high = case.val_outside
    if others > 0 and low >= case.materiality:
        told.append(f"about {percent(outside)} of the test distribution lies outside the training "
                    f"data ({percent(low)} to {percent(high)})")  # fmt: skip
    elif others > 0:
        lie = "lies" if others == 1 else "lie"
        told.append(f"{counted(others, 'validation row')} {lie} outside the training data")
    shifts = what_shifted(findings)
    nothing_new = not news and not n_outside_rows
    covered = nothing_new and high < case.materiality
    alone = not told and len(shifts) == 1 and covered
    told += [SHIFTS[kind] for kind in shifts]
    if alone and shifts == ("class prior",):
        told[0] += ", and look the same otherwise"
    if alone and shifts == ("covariate",):
        told.append("training covers them all the same")
    if not told:
        certain = [f for f in findings if f.is_fact and f.found]
        told = ["training and validation data look alike" if covered else "no shift was found"]
        if certain:
            told = [f"no shift was found by a test; see to this first: {certain[0].text[:-1]}"]
    if nothing_new and not covered:
        told.append(f"up to {percent(high)} may lie outside the training data, too few rows to say "
                    "more")  # fmt: skip
    remedy = "plain"
    if not nothing_new or "label" in shifts:
        remedy = "giw"
    elif shifts:
        remedy = "class weights" if shifts == ("class prior",) else "weighting"
    action = " ".join([*map(_repair, _by_kind(repairs)), ACTIONS[remedy]])
    if remedy == "plain" and not covered:
        action += " Collect more validation rows before ruling out a shift."
    answer, kinds = "; ".join(told), [fact.kind for fact in (*repairs, *news)]
    kinds += ["outside"] * (others > 0)
    steps = _next_steps(findings, case, remedy, effective_share, n_outside_rows)
    return Recommendation(
        f"{answer[0].upper()}{answer[1:]}.", action, tuple(steps), remedy,
        (*dict.fromkeys(kinds), *shifts),
    )  # fmt: skip


SECOND = {"class prior": 0.01, "covariate": 0.005, "label": 0.005}  # p-values that need another
SIMPLER = 10.0  # by which class shares, which have the fewest parameters, are the likelier kind
REMAINDER = {"class prior": "within class", "covariate": "label", "label": "covariate"}


def what_shifted(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The fewest kinds of shift that explain what was found.

    Class shares that change change the features too, and features that change change class shares
    where classes depend on them. One kind explains everything if what it leaves alone, which is
    features within a class, labels given the features, or features, shows nothing; of several such
    kinds the one whose remainder has the largest p-value is named.
    """
    of = {test.kind: test for test in findings if not test.is_fact}
    found = [kind for kind in REMAINDER if kind in of and of[kind].found]
    rest = {kind: of[r].p_value if (r := REMAINDER[kind]) in of else 1.0 for kind in found}
    alone = {
        kind: rest[kind] * (SIMPLER if kind == "class prior" else 1)
        for kind in found
        if rest[kind] > SECOND[kind]
    }
    if alone:
        return (max(alone, key=lambda kind: alone[kind]),)
    return tuple(kind for kind in ("covariate", "label") if kind in found) or tuple(found)


def _by_kind(facts: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Facts in their order, those of a kind together."""
    return (list(each) for _, each in groupby(facts, lambda fact: fact.kind))


def _told(facts: Sequence[Finding]) -> str:
    """The first fact of a kind, and how many others there are."""
    more = f" ({len(facts) - 1:,} more likewise)" if len(facts) > 1 else ""
    return facts[0].text.removesuffix(".") + more


def _repair(facts: Sequence[Finding]) -> str:
    """What to do about the columns of one kind of fact."""
    names = f"column{'s' * (len(facts) > 1)} {listed([str(f.column) for f in facts], 3)}"
    return {
        "missing column": f"First add {names} to the other table, or leave out.",
        "unit": f"First bring {names} to one unit.",
        "constant": f"First leave out {names}.",
        "timestamp": f"First derive what repeats from {names}, such as the hour or the weekday, or "
        "leave out.",
    }.get(facts[0].kind, f"First write {names} in the same way in both tables.")


def _next_steps(
    findings: Sequence[Finding],
    case: CaseVerdict,
    remedy: str,
    effective_share: float,
    n_outside_rows: int,
) -> list[str]:
    asked = {test.kind for test in findings}
    low, high = case.val_outside
    steps = []
    if n_outside_rows:
        rows = "row" if n_outside_rows == 1 else f"{n_outside_rows:,} rows"
        steps.append(f"Label more data like the {rows} listed as outside.")
    if low < case.materiality <= high:
        more = case.points_needed
        way = "; features that separate better would help more than further rows."
        if more and more > case.points:
            way = f": about {more:,} validation rows would decide (now {case.points:,})."
        told = "Whether material parts lie outside the training data cannot be told yet"
        steps.append(told + way)
    if effective_share < FEW_EFFECTIVE and remedy != "plain":
        steps.append(
            f"Weighted, the training rows are worth only {percent(effective_share)} of their "
            "number. Prefer a method that shrinks weights, or collect validation rows."
        )
    if "label" not in asked:
        steps.append(
            "Too few labelled validation rows lie inside the training data (at least 8 are needed) "
            "to tell whether labels have shifted too."
            if "class prior" in asked
            else "Label validation rows (at least 8) to learn whether labels have shifted too."
        )
    return steps


def python_code(
    remedy: str,
    *,
    text: bool,
    labels: bool,
    val_labels: bool,
    frame: bool,
    facts: Sequence[Finding] = (),
    names: Sequence[str] = (),
) -> str:
    """Lines that train as advised, with boosted trees and an encoder where there is text.

    Parameters
    ----------
    remedy : str
        Of :class:`Recommendation`.
    text : bool
        Whether any column holds text.
    labels, val_labels : bool
        Whether training and validation rows have them.
    frame : bool
        Whether the tables are data frames.
    facts : sequence of Finding
        Columns of another unit are converted, and those that cannot be compared are left out.
    names : sequence of str
        Of the columns, where tables are arrays.
    """
    if not labels:
        return ""
    lost = [f.column for f in facts if f.aside]
    before = [f"X, X_val = (t.drop(columns={lost}, errors='ignore') for t in (X, X_val))"]
    before = before * bool(lost)
    before += [f"X_val = X_val.assign(**{{{f.column!r}: X_val[{f.column!r}] / {f.factor:g}}})"
               for f in facts if f.kind == "unit"]  # fmt: skip
    if before and not frame:
        before = [f"X, X_val = (pd.DataFrame(t, columns={list(names)}) for t in (X, X_val))",
                  *before]  # fmt: skip
    weighted = remedy in ("giw", "weighting")
    fit = ["model.fit(X, y)"]
    if remedy == "class weights":
        step = "histgradientboostingclassifier__" * text
        fit = ["new, old = (", "    pd.Series(side).value_counts(normalize=True)",
               "    for side in (y_val, y)", ")", "weight = pd.Series(y).map(new / old).fillna(0)",
               f"model.fit(X, y, {step}sample_weight=weight)"]  # fmt: skip
    elif weighted:
        more = ", y_val=y_val" * val_labels
        fit = ["model = giw.ReweightedClassifier(model)", f"model.fit(X, y, X_val=X_val{more})"]
    elif val_labels:
        rows = "pd.concat" if frame or before else "np.concatenate"
        fit = ["model.fit(", f"    {rows}([X, X_val]),", "    np.concatenate([y, y_val]),", ")"]
    model = ["model = HistGradientBoostingClassifier()"]
    imports = ["from sklearn.ensemble import HistGradientBoostingClassifier"]
    if text:
        imports += ["from sklearn.pipeline import make_pipeline",
                    "from sklearn.preprocessing import FunctionTransformer",
                    "from giw.tables import Encoder"]  # fmt: skip
        model += ["encoder = Encoder().fit(X, X_val)",
                  "encode = FunctionTransformer(encoder.transform)",
                  "model = make_pipeline(encode, model)"]  # fmt: skip
    used = "\n".join([*before, *fit])
    uses = {"giw": "import giw", "np": "import numpy as np", "pd": "import pandas as pd"}
    head = [line for name, line in uses.items() if f"{name}." in used]
    return "\n".join([*head, *imports, "", *before, *model, *fit])
