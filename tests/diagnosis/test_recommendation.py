"""What is advised follows from what was found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giw.diagnosis import CaseVerdict
from giw.diagnosis.facts import Fact
from giw.diagnosis.label_noise import LabelNoise
from giw.diagnosis.recommendation import NBSP, percent, recommend, span
from giw.diagnosis.shift_tests import ShiftTest

KINDS = ("covariate", "class prior", "within class", "label")


LIMA = Fact("new category", "town", "Category 'Lima' is new.", 2, 0, (0, 1))
COPIES = Fact("duplicates", None, "3 of 9 validation rows are training rows too.", 3, 3)
COVERED = ("look alike", "training covers them", "look the same otherwise")


def verdict_of(outside, needed=None):
    return CaseVerdict("i", ("i",), outside, (0.0, 0.0), 0.1, needed, 50)


def shifts_of(found, kinds=KINDS):
    return tuple(ShiftTest(k, "", 0.3, (0.2, 0.4), 0.001, found=k in found) for k in kinds)


def advice(
    *found, outside=(0.0, 0.02), needed=None, effective=0.9, noise=None, kinds=KINDS, listed=0,
    facts=(),
):  # fmt: skip
    return recommend(
        verdict=verdict_of(outside, needed),
        outside=sum(outside) / 2,
        outside_interval=outside,
        tests=shifts_of(found, kinds),
        effective_share=effective,
        noise=noise,
        n_outside_rows=listed,
        facts=facts,
    )


FEW, MANY = (0.0, 0.02), (0.0, 0.3)
BOTH_FEATURES = ("covariate", "within class")
OPEN = "up to 30 % may lie outside the training data, too few rows to say more."


@pytest.mark.parametrize(
    ("found", "outside", "listed", "facts", "remedy", "sentence"),
    [
        ((), FEW, 0, (), "plain", "Training and validation data look alike."),
        ((), MANY, 0, (), "plain", f"No shift was found; {OPEN}"),
        ((), FEW, 1, (), "giw", "1 validation row lies outside the training data."),
        ((), FEW, 3, (), "giw", "3 validation rows lie outside the training data."),
        ((), FEW, 2, (LIMA,), "giw", "Category 'Lima' is new."),
        (
            (), FEW, 0, (COPIES,), "plain",
            "No shift was found by a test; see to this first: 3 of 9 validation rows are training "
            "rows too.",
        ),
        (
            BOTH_FEATURES, FEW, 0, (), "weighting",
            "The features are distributed differently; training covers them all the same.",
        ),
        (
            BOTH_FEATURES, FEW, 29, (), "giw",
            "The features are distributed differently; 29 validation rows lie outside the training "
            "data.",
        ),
        (
            BOTH_FEATURES, MANY, 0, (), "giw",
            f"The features are distributed differently; {OPEN}",
        ),
        (
            BOTH_FEATURES, FEW, 2, (LIMA,), "giw",
            "The features are distributed differently; Category 'Lima' is new.",
        ),
        (
            ("covariate", "class prior"), FEW, 0, (), "class weights",
            "The classes are mixed in other shares, and look the same otherwise.",
        ),
        (
            ("class prior",), FEW, 3, (), "giw",
            "The classes are mixed in other shares; 3 validation rows lie outside the training "
            "data.",
        ),
        (
            ("covariate", "class prior", "within class"), FEW, 0, (), "weighting",
            "The features are distributed differently; training covers them all the same.",
        ),
        (
            ("label",), FEW, 0, (), "giw",
            "The same features get other labels in validation than in training.",
        ),
        (
            KINDS, (0.2, 0.4), 7, (), "giw",
            "About 30 % of what the model will meet lies where training data have nothing "
            "(20 % to 40 %).",
        ),
    ],
)  # fmt: skip
def test_each_finding_has_its_sentence(found, outside, listed, facts, remedy, sentence):
    told = advice(*found, outside=outside, listed=listed, facts=facts)
    assert told.answer.replace(NBSP, " ") == sentence
    assert told.remedy == remedy


@given(
    found=st.sets(st.sampled_from(KINDS)),
    bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
    listed=st.integers(0, 30),
    known=st.lists(st.sampled_from([LIMA, COPIES]), max_size=2, unique=True),
)
def test_no_answer_claims_coverage_that_a_row_a_fact_or_a_bound_denies(
    found, bounds, listed, known
):
    told = advice(*found, outside=tuple(bounds), listed=listed, facts=tuple(known))
    claimed = any(words in told.answer for words in COVERED)
    if bounds[1] >= 0.1 or listed or LIMA in known:
        assert not claimed
    if not found and not listed and LIMA not in known and bounds[0] < 0.1:
        assert told.remedy == "plain"


def test_every_question_that_was_asked_is_evidence():
    told = advice("covariate")
    assert len(told.evidence) == 1 + len(KINDS)
    assert sum("Not shown that" in line for line in told.evidence) == 3


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
