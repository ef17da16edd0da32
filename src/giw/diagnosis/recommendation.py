"""What to do, in plain words, with the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
        What ``action`` comes down to: :class:`giw.GIWClassifier`, weights by features or by class
        for a model of any kind, or one model of all rows.
    """

    answer: str
    action: str
    evidence: tuple[str, ...]
    next_steps: tuple[str, ...]
    remedy: str


def recommend(
    *,
    verdict: CaseVerdict,
    outside: float,
    outside_interval: tuple[float, float],
    tests: tuple[ShiftTest, ...],
    effective_share: float | None,
    noise: LabelNoise | None,
    n_outside_rows: int,
) -> Recommendation:
    """Weigh the findings, the support first: what training cannot show, no weight can mend."""
    found = {test.kind: test for test in tests if test.found}
    asked = {test.kind for test in tests}
    outside_for_sure = verdict.val_outside[0] >= verdict.materiality
    outside_perhaps = verdict.val_outside[1] >= verdict.materiality
    low, high = outside_interval
    evidence = [_support_evidence(verdict, outside, low, high)]
    evidence += [_in_words(test) for test in tests]
    steps: list[str] = []
    if outside_for_sure:
        remedy = "giw"
        answer = (
            f"About {percent(outside)} of what the model will meet lies where training data "
            f"have nothing ({percent(low)} to {percent(high)})."
        )
        action = (
            "Use generalized importance weighting: no weighting of training rows can teach what "
            "they never show, so the validation rows outside have to join training."
        )
        steps.append(
            f"Label more data like the {n_outside_rows} rows listed as outside; each of them "
            "teaches what no training row can."
            if n_outside_rows
            else "Label more data from where training has none."
        )
    elif not found:
        remedy = "giw" if outside_perhaps else "plain"
        if outside_perhaps:
            answer = "No shift could be shown, but the data are too few to exclude one."
            action = (
                "Train with generalized importance weighting, which costs little where it is not "
                "needed, and collect more validation rows before trusting either answer."
            )
        else:
            answer = "Training and validation data look alike."
            action = "Train plainly on all rows together; there is nothing to correct."
    elif "label" in found:
        remedy = "giw"
        answer = "The same features get other labels in validation than in training."
        action = (
            "Use generalized importance weighting with labels (giw does so by default): training "
            "rows whose labels validation contradicts get little weight. Do not weight by features "
            "alone; it would keep the wrong labels."
        )
    elif "class prior" in found and "within class" in asked and "within class" not in found:
        remedy = "class weights"
        answer = "The classes are mixed in other shares, and look the same otherwise."
        action = (
            "Weight every training row by its class's share in validation over its share in "
            "training; nothing more is needed."
        )
    else:
        remedy = "weighting"
        answer = "The features are distributed differently; training covers them all the same."
        action = (
            "Weight training rows to look like validation rows. Generalized importance weighting "
            "does this by itself where nothing lies outside."
        )
    if outside_perhaps and not outside_for_sure:
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


def _support_evidence(verdict: CaseVerdict, outside: float, low: float, high: float) -> str:
    cases = " or ".join(f"({case})" for case in verdict.possible)
    told = f"case {cases}" if len(verdict.possible) == 1 else f"cases {cases} remain possible"
    return (
        f"{percent(outside)} of the test distribution lies outside the training support, between "
        f"{percent(low)} and {percent(high)} with 95 % confidence: {told}."
    )


WORDS: Mapping[str, tuple[str, str]] = {
    "covariate": ("the features look different", "the features look alike"),
    "class prior": ("class shares differ", "class shares agree"),
    "within class": (
        "within a class the features look different",
        "within a class the features look alike",
    ),
    "label": ("equal features get other labels", "equal features get the same labels"),
}


def _in_words(test: ShiftTest) -> str:
    yes, no = WORDS[test.kind]
    low, high = test.interval
    size = f"at least {percent(test.effect)} of rows ({percent(low)} to {percent(high)})"
    told = f"{yes}: {size}" if test.found else f"no evidence against: {no}"
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
