"""The diagnosis as a page that a person opens."""

from __future__ import annotations

from giw.diagnosis.pictures import class_picture, column_picture, support_picture
from giw.diagnosis.recommendation import p_in_words, percent, span
from giw.diagnosis.result import Diagnosis, reasons_in_words
from giw.pages import Listing, Page, Section

SHOWN = 12  # rows of a list; the object and --json have more
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
        *(
            [Section(title="What is certain", text=[f.text for f in found.facts])]
            * bool(found.facts)
        ),
        Section(
            title="What to do",
            text=[told.action],
            code=next_command or told.code,
        ),
        *([Section(title="What helps further", text=told.next_steps)] if told.next_steps else []),
        _support(found),
        *_outside(found),
        *_shifts(found),
        *_noise(found),
        _sizes(found),
    ]
    return Page(
        title=title or "Training data and validation data compared",
        answer=told.answer,
        lead=[
            "Two sets of rows were compared: training data, from which a model learns, and "
            "validation data, which come from where it will be used (the test distribution). This "
            "page says how they differ, how sure that is, and what helps.",
        ],
        sections=sections,
        kicker="giw diagnose",
        footer=[f"Made by `{command}`."] if command else [],
    )


def _support(found: Diagnosis) -> Section:
    low, high = found.outside_interval
    train_low, train_high = found.verdict.train_outside
    possible = found.verdict.possible
    decided = len(possible) == 1
    if decided and found.verdict.val_outside[1] < found.verdict.materiality:
        small = " Some rows lie outside all the same." * bool(found.n_outside_rows)
    else:
        small = ""
    cases = "; ".join(CASES[case] for case in possible)
    return Section(
        title="Does training cover the test distribution?",
        text=[
            f"An estimated {percent(found.outside)} of the test distribution lies outside the "
            f"region where training has data; with 95 % confidence the share is between "
            f"{percent(low)} and {percent(high)}. "
            + (
                f"This is case {cases.replace(') ', '): ', 1)}, "
                f"where shares below {percent(found.verdict.materiality)} count as none.{small}"
                if decided
                else f"Which case this is cannot be told yet: {cases} remain possible."
            ),
        ],
        pictures=[support_picture(found.split)],
        facts={
            "outside training": f"{span(low, high)} of the test distribution",
            "never visited": f"{span(train_low, train_high)} of the training rows lie where "
            "validation has none; a sample can bound this and never prove it",
            "counts as none": f"shares below {percent(found.verdict.materiality)}",
            "weights": f"weighted to look like validation, {found.sizes.n_train:,} training rows "
            f"are worth {found.effective_sample_size:,.0f} ({percent(found.effective_share)})",
        },
        details_title="How is a row called outside?",
        details=[
            "Each validation row is compared with its nearest training rows, in units of the "
            "spread of each feature. The p-value is the share of held-out training rows of the "
            "same neighbourhood that lie as far from theirs. Rows at or below "
            f"{found.split.level:g} are called outside; about that share of ordinary rows is "
            "called so by mistake, which costs a method precision and never truth. A label that "
            "training never saw puts a row outside, whatever its features.",
        ],
    )


def _outside(found: Diagnosis) -> list[Section]:
    if not found.n_outside_rows:
        return []
    labelled = any(row.label is not None for row in found.outside_rows)
    rows = [
        [f"{row.row}", *([row.label or ""] if labelled else []), reasons_in_words(row)]
        for row in found.outside_rows[:SHOWN]
    ]
    names = ["Row", *(["Label"] if labelled else []), "What is unusual"]
    more = found.n_outside_rows > len(rows)
    shown = f"The first {len(rows)} of {found.n_outside_rows:,}" if more else f"All {len(rows)}"
    sampled = " of the sampled rows" if found.sizes.used_val < found.sizes.n_val else ""
    return [
        Section(
            title="Which rows lie outside, and why",
            text=[
                f"{found.n_outside_rows:,}{sampled} stand out so clearly that at most one in ten "
                "of the list is expected to be there by mistake."
            ],
            pictures=[column_picture(found.outside_columns)] if found.outside_columns else [],
            listing=Listing(
                names,
                rows,
                f'{shown}, the strangest first. Rows are counted from 0; "usually" is where '
                "98 % of training rows lie.",
            ),
        )
    ]


def _shifts(found: Diagnosis) -> list[Section]:
    few = "Too few validation rows to test more: at least 8 are needed."
    differs = any(test.kind == "class prior" and test.found for test in found.shifts)
    pictures = [class_picture(found.class_shares)] if differs else []
    names = ["Question", "Answer", "Rows, at least", "p-value"]
    rows = [
        [
            test.question,
            "yes" if test.found else "not shown",
            f"{percent(test.effect)} ({percent(test.interval[0])} to {percent(test.interval[1])})",
            p_in_words(test.p_value),
        ]
        for test in found.shifts
    ]
    return [
        Section(
            title="What has shifted?",
            text=[few] * (len(found.shifts) < 3),
            pictures=pictures,
            listing=Listing(
                names,
                rows,
                "Sizes are lower bounds, with 95 % intervals: a better model might see more. Yes "
                "is said at a joint error of 5 % over all questions.",
            ),
            details_title="How was this tested?",
            details=[
                "Features: a model learns to tell training rows from validation rows and is "
                "judged on rows it has not seen; if nothing had shifted it could only guess. "
                "Within a class: the same with both sides of equal weight in every class, so that "
                "class shares tell nothing. Class shares: a permutation test.",
                "Labels: a model of the training labels is asked about rows it has not seen. "
                "Validation labels should contradict it as often as training labels with the same "
                "features do; weights and a regression make the features comparable. Only rows "
                "inside the training support take part.",
            ],
        )
    ]


def _noise(found: Diagnosis) -> list[Section]:
    noise = found.label_noise
    if noise is None:
        return []
    low, high = noise.train_interval
    val = (
        f", against {percent(noise.val)} of validation labels ({span(*noise.val_interval)})"
        if noise.val_rows >= 8
        else ""
    )
    rows = [
        (f"{s.row}", s.label, s.likely, f"{100 * s.probability:.0f} %")
        for s in noise.suspects[:SHOWN]
    ]
    return [
        Section(
            title="Are training labels wrong?",
            text=[
                "Where a model of the other training rows is most confident, "
                f"{percent(noise.train)} of training labels contradict it ({span(low, high)})"
                f"{val}. "
                "Overlapping classes disagree where the model is unsure; wrong labels disagree "
                "everywhere. This is a hint and no proof.",
            ],
            listing=Listing(
                ["Row", "Label", "Likelier", "Probability"],
                rows,
                f"The clearest of {noise.n_suspects:,} training rows, among {noise.rows:,} looked "
                "at. Rows are counted from 0.",
            )
            if rows
            else None,
        )
    ]


def _sizes(found: Diagnosis) -> Section:
    sizes = found.sizes
    facts = {
        "training rows": f"{sizes.n_train:,}",
        "validation rows": f"{sizes.n_val:,}",
        "columns": f"{sizes.n_columns:,}"
        + (
            f", encoded as {sizes.n_features:,} features"
            if sizes.n_features != sizes.n_columns
            else ""
        ),
    }
    return Section(title="Sizes and notes", text=list(found.notes), facts=facts)
