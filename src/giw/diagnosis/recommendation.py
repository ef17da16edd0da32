"""What to do, in plain words, with the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from giw.diagnosis.facts import BY_CHANCE, REPAIR, UNSEEN, Fact
from giw.diagnosis.label_noise import LabelNoise
from giw.diagnosis.shift_tests import ShiftTest
from giw.diagnosis.verdict import CaseVerdict

NBSP = "\u00a0"  # a number and its unit stay on one line
FEW_EFFECTIVE = 0.1  # share of the training rows below which weights are fragile


@dataclass(frozen=True)
class Recommendation:
    """What to do.

    Attributes
    ----------
    answer : str
        The finding in one sentence.
    action : str
        What to do about it, in one sentence.
    evidence : tuple of str
        Why.
    next_steps : tuple of str
        What would help further.
    remedy : {"giw", "weighting", "class weights", "plain"}
        What ``action`` comes down to: :class:`giw.ReweightedClassifier` with and without rows
        outside, weights by class, or one model of all rows.
    kinds : tuple of str
        What ``answer`` names: kinds of :class:`Fact` and of :class:`ShiftTest`; empty without a
        shift.
    code : str
        Python that does it with the very tables, named X, y, X_val and y_val; empty without labels.
    """

    answer: str
    action: str
    evidence: tuple[str, ...]
    next_steps: tuple[str, ...]
    remedy: str
    kinds: tuple[str, ...] = ()
    code: str = ""


def recommend(
    *,
    verdict: CaseVerdict,
    outside: float,
    outside_interval: tuple[float, float],
    tests: tuple[ShiftTest, ...],
    effective_share: float | None,
    noise: LabelNoise | None,
    n_outside_rows: int,
    facts: tuple[Fact, ...] = (),
) -> Recommendation:
    """Weigh the findings: what is certain first, then what training cannot show, then the rest."""
    repairs, news = [f for f in facts if f.kind in REPAIR], news_among(facts, tests)
    told = [fact.text.removesuffix(".") for fact in (*repairs, *news)]
    kinds = list(dict.fromkeys(fact.kind for fact in (*repairs, *news)))
    share = f"{percent(outside)} of the test distribution lies outside the training data"
    listed = n_outside_rows - len({row for fact in news for row in fact.rows})
    low, high = verdict.val_outside
    if listed > 0 and low >= verdict.materiality:
        told.append(f"about {share} ({percent(low)} to {percent(high)})")
    elif listed > 0:
        rows = "1 validation row lies" if listed == 1 else f"{listed:,} validation rows lie"
        told.append(f"{rows} outside the training data")
    kinds += ["outside"] * (listed > 0)
    shifts = what_shifted(tests)
    kinds += shifts
    covered = not news and not n_outside_rows and high < verdict.materiality
    told += _shifts_in_words(shifts, alone=not told, covered=covered)
    if not told:
        told = ["training and validation data look alike" if covered else "no shift was found"]
        certain = [f for f in facts if f.p_value <= BY_CHANCE and f.kind not in UNSEEN]
        if certain:
            told = [f"no shift was found by a test; see to this first: {certain[0].text[:-1]}"]
    if not covered and not news and not n_outside_rows:
        told.append(f"up to {percent(high)} may lie outside the training data, too few rows to say "
                    "more")  # fmt: skip
    answer = "; ".join(told)
    remedy = "plain"
    if news or n_outside_rows or "label" in shifts:
        remedy = "giw"
    elif shifts:
        remedy = "class weights" if shifts == ("class prior",) else "weighting"
    action = " ".join([*map(_repair, repairs), ACTIONS[remedy]])
    if remedy == "plain" and not covered:
        action += " Collect more validation rows before ruling out a shift."
    return Recommendation(
        f"{answer[0].upper()}{answer[1:]}.",
        action,
        (_support_evidence(verdict, outside, *outside_interval), *map(_in_words, tests)),
        _next_steps(verdict, tests, remedy, effective_share, noise, n_outside_rows),
        remedy,
        tuple(kinds),
    )


def news_among(facts: Sequence[Fact], tests: Sequence[ShiftTest]) -> list[Fact]:
    """Unseen classes and categories, if there are more than chance explains."""
    if not any(test.kind == "unseen" and test.found for test in tests):
        return []
    return [fact for fact in facts if fact.kind in UNSEEN and fact.p_value <= BY_CHANCE]


SECOND = {"class prior": 0.01, "covariate": 0.005, "label": 0.005}  # p-values that need another
SIMPLER = 10.0  # by which class shares, which have the fewest parameters, are the likelier kind
REMAINDER = {"class prior": "within class", "covariate": "label", "label": "covariate"}


def what_shifted(tests: Sequence[ShiftTest]) -> tuple[str, ...]:
    """The fewest kinds of shift that explain what was found.

    Class shares that change change the features too, and features that change change class shares
    where classes depend on them. One kind explains everything if what it leaves alone, which is
    features within a class, labels given the features, or features, shows nothing; of several such
    kinds the one whose remainder has the largest p-value is named.
    """
    of = {test.kind: test for test in tests}
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


def _repair(fact: Fact) -> str:
    if fact.kind == "missing column":
        return f"First add column {fact.column!r} to the other table, or leave it out."
    return f"First write column {fact.column!r} in the same way in both tables."


def _shifts_in_words(shifts: Sequence[str], *, alone: bool, covered: bool) -> list[str]:
    """One clause for each kind of shift; the only finding says what it leaves alone."""
    only = alone and len(shifts) == 1
    words = {
        "covariate": "the features are distributed differently",
        "class prior": "the classes are mixed in other shares",
        "label": "the same features get other labels in validation than in training",
    }
    told = [words[kind] for kind in shifts]
    if only and shifts == ("class prior",) and covered:
        told[0] += ", and look the same otherwise"
    if only and shifts == ("covariate",) and covered:
        told.append("training covers them all the same")
    return told


def _next_steps(
    verdict: CaseVerdict,
    tests: Sequence[ShiftTest],
    remedy: str,
    effective_share: float | None,
    noise: LabelNoise | None,
    n_outside_rows: int,
) -> tuple[str, ...]:
    asked = {test.kind for test in tests}
    low, high = verdict.val_outside
    steps = []
    if n_outside_rows:
        rows = f"{n_outside_rows:,} rows" if n_outside_rows > 1 else "row"
        steps.append(f"Label more data like the {rows} listed as outside.")
    if low < verdict.materiality <= high:
        more = verdict.points_needed
        steps.append(
            "Whether material parts lie outside the training data cannot be told yet"
            + (
                f": about {more:,} validation rows would decide (now {verdict.points:,})."
                if more and more > verdict.points
                else "; features that separate better would help more than further rows."
            )
        )
    if effective_share is not None and effective_share < FEW_EFFECTIVE and remedy != "plain":
        steps.append(
            f"Weighted, the training rows are worth only {percent(effective_share)} of their "
            "number. Prefer a method that shrinks weights, or collect validation rows."
        )
    if noise is not None and noise.train_interval[0] > max(0.02, noise.val_interval[1]):
        steps.append(
            f"{percent(noise.train)} of confidently predicted training labels are contradicted, "
            f"against {percent(noise.val)} in validation: training labels are noisy. Have the "
            "listed ones checked."
        )
    elif noise is not None and noise.train_interval[0] > 0.05:
        steps.append(
            f"{percent(noise.train)} of training labels are contradicted even where the model is "
            "confident: have a look at the suspects."
        )
    if "label" not in asked:
        steps.append(
            "Too few labelled validation rows lie inside the training data (at least 8 are needed) "
            "to tell whether labels have shifted too."
            if "class prior" in asked
            else "Label validation rows (at least 8) to learn whether labels have shifted too."
        )
    return tuple(steps)


def _support_evidence(verdict: CaseVerdict, outside: float, low: float, high: float) -> str:
    cases = " or ".join(f"({case})" for case in verdict.possible)
    told = f"case {cases}" if len(verdict.possible) == 1 else f"cases {cases} remain possible"
    return (
        f"{percent(outside)} of the test distribution lies outside the training support, between "
        f"{percent(low)} and {percent(high)} with 95 % confidence: {told}."
    )


WORDS: Mapping[str, str] = {
    "covariate": "the features look different",
    "class prior": "class shares differ",
    "within class": "within a class the features look different",
    "label": "equal features get other labels",
    "outside": "rows lie outside the training data",
    "unseen": "classes or categories are unseen in training beyond chance",
}


def _in_words(test: ShiftTest) -> str:
    yes = WORDS[test.kind]
    low, high = test.interval
    least = "" if test.kind in ("outside", "unseen") else "at least "
    size = f"{least}{percent(test.effect)} of rows ({percent(low)} to {percent(high)})"
    told = f"{yes}: {size}" if test.found else f"not shown that {yes}"
    return f"{told[0].upper()}{told[1:]}, {p_in_words(test.p_value)}."


def p_in_words(p_value: float) -> str:
    """``p = 0.03`` or ``p < 0.001``."""
    told = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"
    return told.replace(" ", NBSP)


def span(low: float, high: float) -> str:
    """``3 % to 8 %``, ``none`` or ``under 8 %``."""
    if high < 0.005:
        return "none"
    return f"{percent(low)} to {percent(high)}" if low >= 0.005 else f"at most {percent(high)}"


def percent(share: float) -> str:
    """``12 %``; a share that rounds to nothing is still told from none."""
    if 0 < share < 0.01:
        return f"under 1{NBSP}%"
    return f"{100 * share:.0f}{NBSP}%"
