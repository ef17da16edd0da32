"""What is advised follows from what was found."""

import pytest

from giw.diagnosis import CaseVerdict
from giw.diagnosis.label_noise import LabelNoise
from giw.diagnosis.recommendation import percent, recommend, span
from giw.diagnosis.shift_tests import ShiftTest

KINDS = ("covariate", "class prior", "within class", "label")


def advice(*found, outside=(0.0, 0.02), needed=None, effective=0.9, noise=None, kinds=KINDS):
    verdict = CaseVerdict("i", ("i",), outside, (0.0, 0.0), 0.1, needed, 50)
    tests = tuple(ShiftTest(k, "", 0.3, (0.2, 0.4), 0.001, found=k in found) for k in kinds)
    return recommend(
        verdict=verdict,
        outside=sum(outside) / 2,
        outside_interval=outside,
        tests=tests,
        effective_share=effective,
        noise=noise,
        n_outside_rows=7,
    )


@pytest.mark.parametrize(
    ("found", "outside", "method", "words"),
    [
        ((), (0.0, 0.02), "plain", "look alike"),
        ((), (0.0, 0.3), "giw", "too few to exclude"),
        (("covariate", "within class"), (0.0, 0.02), "weighting", "training covers them"),
        (("covariate", "class prior"), (0.0, 0.02), "class weights", "other shares"),
        (("covariate", "class prior", "within class"), (0.0, 0.02), "weighting", "covers"),
        (("label",), (0.0, 0.02), "giw", "other labels"),
        (KINDS, (0.2, 0.4), "giw", "training data have nothing"),
    ],
)
def test_each_finding_has_its_advice(found, outside, method, words):
    told = advice(*found, outside=outside)
    assert told.remedy == method
    assert words in told.answer


def test_every_question_that_was_asked_is_evidence():
    told = advice("covariate")
    assert len(told.evidence) == 1 + len(KINDS)
    assert sum("No evidence against" in line for line in told.evidence) == 3


def test_an_open_case_says_how_many_rows_would_decide():
    assert "about 4,000" in advice(outside=(0.0, 0.3), needed=4000).next_steps[0]
    assert "separate better" in advice(outside=(0.0, 0.3)).next_steps[0]
    assert advice().next_steps == ()


def test_fragile_weights_and_noisy_labels_are_mentioned():
    noise = LabelNoise(0.3, (0.25, 0.35), 0.01, (0.0, 0.05), 40, (), 9, 100)
    steps = " ".join(advice("covariate", effective=0.02, noise=noise).next_steps)
    assert "worth only" in steps
    assert "training labels are noisy" in steps


def test_missing_validation_labels_are_asked_for():
    assert "Label validation rows" in advice(kinds=("covariate",)).next_steps[-1]


def test_labels_that_are_there_are_not_asked_for_again():
    last = advice(kinds=("covariate", "class prior")).next_steps[-1]
    assert "Too few labelled validation rows lie inside" in last


def test_shares_in_words():
    assert percent(0.123) == "12\u00a0%"
    assert percent(0.001) == "under 1\u00a0%"
    assert span(0.0, 0.0) == "none"
    assert span(0.0, 0.2) == "at most 20\u00a0%"
    assert span(0.1, 0.2) == "10\u00a0% to 20\u00a0%"
