"""What to do, in plain words, with the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from giw.diagnosis.facts import UNSEEN, Fact
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
    code : str
        Python that does it with the very tables, named X, y, X_val and y_val; empty without labels.
    """

    answer: str
    action: str
    evidence: tuple[str, ...]
    next_steps: tuple[str, ...]
    remedy: str
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
    """Weigh the findings, the support first: what training cannot show, no weight can mend."""
    found = {test.kind for test in tests if test.found}
    asked = {test.kind for test in tests}
    perhaps = verdict.val_outside[1] >= verdict.materiality
    for_sure = verdict.val_outside[0] >= verdict.materiality
    low, high = outside_interval
    evidence = [_support_evidence(verdict, outside, low, high)]
    evidence += [_in_words(test) for test in tests]
    steps: list[str] = []
    rest = _on_coverage(verdict, facts, n_outside_rows)
    if for_sure:
        remedy = "giw"
        answer = (
            f"About {percent(outside)} of what the model will meet lies where training data "
            f"have nothing ({percent(low)} to {percent(high)})."
        )
    else:
        remedy, shifted = _what_shifted(found, asked, covered=not rest)
        answer = f"{shifted}; {rest}." if shifted and rest else f"{shifted or _capital(rest)}."
        if not shifted and (n_outside_rows or any(fact.kind in UNSEEN for fact in facts)):
            remedy = "giw"
        elif not shifted:
            answer = f"No shift was found; {rest}."
        if remedy == "plain" and facts and not rest:
            answer = f"No shift was found by a test; see to this first: {facts[0].text}"
    action = ACTIONS[remedy]
    if remedy == "plain" and perhaps:
        action += " Collect more validation rows before ruling out a shift."
    if n_outside_rows:
        steps.append(
            f"Label more data like the {n_outside_rows:,} rows listed as outside."
            if n_outside_rows > 1
            else "Label more data like the row listed as outside."
        )
    elif for_sure:
        steps.append("Label more data from where training has none.")
    if perhaps and not for_sure:
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
    return Recommendation(answer, action, tuple(evidence), tuple(steps), remedy)


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


def _what_shifted(found: set[str], asked: set[str], *, covered: bool) -> tuple[str, str]:
    """Remedy and the beginning of the answer, empty where no test found a shift."""
    if not found:
        return "plain", "Training and validation data look alike" if covered else ""
    if "label" in found:
        return "giw", "The same features get other labels in validation than in training"
    if "class prior" in found and "within class" in asked and "within class" not in found:
        if covered:
            return (
                "class weights",
                "The classes are mixed in other shares, and look the same otherwise",
            )
        return "giw", "The classes are mixed in other shares"
    told = "The features are distributed differently"
    if covered:
        return "weighting", f"{told}; training covers them all the same"
    return "giw", told


def _on_coverage(verdict: CaseVerdict, facts: tuple[Fact, ...], listed: int) -> str:
    """What speaks against saying that training covers validation; empty where nothing does."""
    unseen = [fact.text for fact in facts if fact.kind in UNSEEN]
    if unseen:
        return unseen[0].removesuffix(".")
    high = verdict.val_outside[1]
    if listed:
        rows = "1 validation row lies" if listed == 1 else f"{listed:,} validation rows lie"
        return f"{rows} outside the training data"
    if high >= verdict.materiality:
        return f"up to {percent(high)} may lie outside the training data, too few rows to say more"
    return ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
}


def _in_words(test: ShiftTest) -> str:
    yes = WORDS[test.kind]
    low, high = test.interval
    size = f"at least {percent(test.effect)} of rows ({percent(low)} to {percent(high)})"
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
