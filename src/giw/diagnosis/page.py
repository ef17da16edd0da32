"""The diagnosis as a page that a person opens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from giw.diagnosis.findings import QUESTIONS, counted, p_in_words, percent, some
from giw.diagnosis.result import COUNTED, PARTS, Diagnosis, cost_in_words
from giw.pages import Page, Picture, Section, split_histogram
from giw.pages.tables import Entry, Group, Sheet, small_bars

SHOWN, SHOWN_COLUMNS = 12, 30  # rows of a list; the object, --rows and --json have all
CASES = {
    "i": "(i) neither lacks a material part of the other",
    "ii": "(ii) training has a material part that validation lacks",
    "iii": "(iii) validation has a material part that training lacks",
    "iv": "(iv) each has a material part that the other lacks",
}


def diagnosis_page(
    found: Diagnosis, *, title: str = "", command: str = "", next_command: str = ""
) -> Page:
    """The page: the answer, what to do, and then the evidence piece by piece."""
    told = found.recommendation
    sections = [
        Section("What is certain", some(fact.text for fact in found.facts)),
        Section("What to do", [told.action], code=next_command or told.code),
        Section("What helps further", told.next_steps),
        _shifts(found),
        Section("What does it cost a model?", cost_in_words(found.cost)[:1], sheets=_cost(found)),
        _columns(found),
        _support(found),
        _outside(found),
        _groups(found),
        _suspects(found),
        _sizes(found),
    ]
    return Page(
        title=title or "Training and validation data",
        answer=told.answer,
        lead=[
            "Two sets of rows were compared: training data, from which a model learns, and "
            "validation data, which come from where it will be used (the test distribution). This "
            "page says how they differ, how sure that is, and what helps.",
        ],
        sections=[s for s in sections if s.text or s.sheets],
        kicker="giw diagnose",
        footer=[f"Made by `{command}`."] if command else [],
    )


def _sheet(
    name: str, head: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
) -> list[Sheet]:
    """A table without a title of its own, or nothing where there are no rows."""
    cells = [[e if isinstance(e, Entry) else Entry(e) for e in row] for row in rows]
    notes = [note] if note else []
    return [Sheet(name, "", head, [Group("", cells)], notes, "l" * len(head))] if rows else []


def _shifts(found: Diagnosis) -> Section:
    rows = [
        [
            QUESTIONS[test.kind],
            Entry("yes" if test.found else "not shown", bold=test.found),
            f"{percent(test.effect)} ({percent(test.interval[0])} to {percent(test.interval[1])})",
            p_in_words(test.p_value),
        ]
        for test in found.shifts
    ]
    note = "Sizes are lower bounds, with 95 % intervals: a better model might see more. Yes is "
    note += "said at a joint error of 3 % over all questions. Rows that facts put outside, such as "
    note += "those of unseen categories, take no part."
    few = "Too few validation rows to test more: at least 8 are needed."
    return Section(
        "What has shifted?",
        [few] * (len(rows) < 3),
        sheets=_sheet("shifts", ["Question", "Answer", "Rows, at least", "p-value"], rows, note),
        details_title="How was this tested?",
        details=[
            "Features: a model learns to tell training rows from validation rows and is judged on "
            "rows it has not seen; if nothing had shifted it could only guess. Within a class: the "
            "same with both sides of equal weight in every class, so that class shares tell "
            "nothing. Class shares: a permutation test.",
            "Labels: a model of the training labels is asked about rows it has not seen. "
            "Validation labels should contradict it as often as training labels with the same "
            "features do; weights and a regression make the features comparable. Only rows inside "
            "the training support take part.",
        ],
    )


def _cost(found: Diagnosis) -> list[Sheet]:
    if found.cost is None:
        return []
    rows = [
        [PARTS[name], f"{100 * v:.1f}".replace("-", "−"),
         f"{100 * a:.1f} to {100 * b:.1f}".replace("-", "−")]
        for name, v, a, b in found.cost.parts
    ]  # fmt: skip
    note = "Points of the error rate. The parts add up to the difference between the tables; "
    note += "intervals are those of drawing the rows again."
    return _sheet("cost", ["Due to", "Points", "95 % interval"], rows, note)


def _columns(found: Diagnosis) -> Section:
    rows = [
        [
            c.column,
            Entry("", drawn=small_bars([s[1:] for s in c.shares], alt=c.in_words())),
            f"{c.distance:.2f}",
            "" if c.p_value is None else p_in_words(c.p_value),
            percent(c.behind_outside) if found.outside_rows else "",
        ]
        for c in found.columns[:SHOWN_COLUMNS]
    ]
    shown = f"The first {len(rows)} of {len(found.columns)} columns. "
    note = shown * (len(rows) < len(found.columns)) + (
        "Training is grey, validation blue. Distance: the largest difference of the cumulative "
        "shares of numbers, and the share of rows to exchange for categories. p-values are "
        "corrected for the number of columns. Behind outside rows: a column's part of what makes "
        "them unusual."
    )
    head = ["Column", "Shares", "Distance", "p-value", "Behind outside rows"]
    return Section("Column by column", sheets=_sheet("columns", head, rows, note))


def _support(found: Diagnosis) -> Section:
    low, high = found.outside_interval
    train, case, level = found.verdict.train_outside, found.verdict, found.split.level
    decided = len(case.possible) == 1
    cases = "; ".join(CASES[one] for one in case.possible)
    told = f"Which case this is cannot be told yet: {cases} remain possible."
    if decided:
        told = f"This is case {cases.replace(') ', '): ', 1)}, where shares below "
        told += f"{percent(case.materiality)} count as none."
        lies = bool(found.outside_rows) and case.val_outside[1] < case.materiality
        told += " Some rows lie outside all the same." * lies
    p_value, inside = np.asarray(found.split.p_value), np.asarray(found.split.inside)
    picture = Picture(
        split_histogram(
            p_value,
            inside,
            threshold=level,
            xlabel="how ordinary the row is among training rows",
            groups=("called inside", "called outside"),
        ),
        alt=f"Histogram of the p-values of {len(p_value):,} validation rows: {int(inside.sum()):,} "
        f"above the cut at {level:g} are called inside, {int((~inside).sum()):,} outside.",
        caption="Rows like training rows spread evenly from 0 to 1. A pile at the left is what "
        "training does not have.",
    )
    return Section(
        "Does training cover the test distribution?",
        [
            f"An estimated {percent(found.outside)} of the test distribution lies outside the "
            "region where training has data; with 95 % confidence the share is between "
            f"{percent(low)} and {percent(high)}. {told}"
        ],
        [picture],
        facts={
            "never visited": f"{percent(train[0])} to {percent(train[1])} of the training rows lie "
            "where validation has none; a sample can bound this and never prove it",
            "weights": f"weighted to look like validation, {found.sizes.n_train:,} training rows "
            f"are worth {found.effective_sample_size:,.0f} ({percent(found.effective_share)})",
        },
        details_title="How is a row called outside?",
        details=[
            "Each validation row is compared with its nearest training rows, in units of the "
            "spread of each feature. The p-value is the share of held-out training rows of the "
            f"same neighbourhood that lie as far from theirs. Rows at or below {level:g} are "
            "called outside; about that share of ordinary rows is called so by mistake. A label "
            "that training never saw puts a row outside, whatever its features.",
        ],
    )


def _outside(found: Diagnosis) -> Section:
    rows = [
        [f"{r.line}", p_in_words(r.p_value or 0.0), r.label or "", r.text]
        for r in found.outside_rows[:SHOWN]
    ]
    note = _first(len(rows), found.n_outside_rows, "the strangest first")
    note += ' "Usually" is where 98 % of training rows lie.'
    head = ["Row", "p-value", "Label", "What is unusual"]
    lead = f"{counted(found.n_outside_rows, 'validation row')} stand out so clearly that at most "
    lead += "one in ten of the list is expected to be there by mistake."
    return Section(
        "Which rows lie outside, and why",
        [lead.replace("1 validation row stand ", "1 validation row stands ")] * bool(rows),
        sheets=_sheet("outside", head, rows, note),
    )


def _groups(found: Diagnosis) -> Section:
    rows = [
        [g.group, f"{g.rows:,}", f"{g.outside:,}", p_in_words(g.p_value)]
        for g in found.groups[:SHOWN]
    ]
    note = _first(len(rows), len(found.groups), "the strangest first", "")
    head = ["Group", "Rows", "Outside", "p-value"]
    told = "Rows of one group are alike. One row of every group took part in tests and intervals."
    return Section("Group by group", [told] * bool(rows), sheets=_sheet("groups", head, rows, note))


def _suspects(found: Diagnosis) -> Section:
    told = "A model of the other training rows finds another label much likelier. Classes that "
    told += "overlap do so too: this is a hint and no proof."
    rows = [
        [f"{r.line}", r.label or "", r.likely or "", percent(r.probability or 0.0)]
        for r in found.suspects[:SHOWN]
    ]
    note = _first(len(rows), len(found.suspects), "the clearest first")
    note += f" {found.sizes.tested_train:,} rows were looked at."
    head = ["Row", "Label", "Likelier", "Probability"]
    sheets = _sheet("suspects", head, rows, note)
    return Section("Are training labels wrong?", [told] * bool(rows), sheets=sheets)


def _first(shown: int, every: int, order: str, counts: str = f" {COUNTED}") -> str:
    """Which part of a list is shown."""
    which = f"The first {shown} of {every:,}" if shown < every else f"All {every:,}"
    return f"{which}, {order}.{counts}"


def _sizes(found: Diagnosis) -> Section:
    sizes = found.sizes
    encoded = f", encoded as {sizes.n_features:,} features"
    rows = [
        ["training rows", f"{sizes.n_train:,}"],
        ["validation rows", f"{sizes.n_val:,}"],
        ["columns", f"{sizes.n_columns:,}{encoded * (sizes.n_features != sizes.n_columns)}"],
    ]
    sheets = _sheet("sizes", ["Table", "Size"], rows)
    return Section("Sizes and notes", list(found.notes), sheets=sheets)
