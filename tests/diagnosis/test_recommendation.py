"""What is advised follows from what was found."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giw.diagnosis import CaseVerdict
from giw.diagnosis.findings import Finding, answered, percent
from giw.diagnosis.verdict import recommend, what_shifted

KINDS = ("covariate", "class prior", "within class", "label")


LIMA = Finding("new category", "town", "Category 'Lima' is new.", 0.001, True, rows=(0, 1))
RARE = Finding("new category", "town", "Category 'Bern' is new.", 0.4, False, rows=(2,))
COPIES = Finding("duplicates", None, "3 of 9 validation rows are training rows too.", found=True)
UNIT = Finding("unit", "x", "Column 'x' is 10 times larger.", found=True, factor=10.0)
EMPTY = Finding("missing column", "x", "Column 'x' is empty in training.", found=True, aside=True)
LATER = Finding("timestamp", "t", "Column 't' is later.", found=True, aside=True, rows=(0,))
DATES = Finding("timestamp", "t", "Column 't' holds dates.", found=True)
COVERED = ("look alike", "training covers them", "look the same otherwise")


def verdict_of(outside, needed=None):
    return CaseVerdict("i", ("i",), outside, (0.0, 0.0), 0.1, needed, 50)


def shifts_of(found, kinds=KINDS):
    return tuple(
        Finding(k, None, "", 0.001 if k in found else 0.5, k in found, 0.3, (0.2, 0.4))
        for k in kinds
    )


def advice(
    *found, outside=(0.0, 0.02), needed=None, effective=0.9, kinds=KINDS, listed=0,
    facts=(),
):  # fmt: skip
    return recommend(
        (*facts, *shifts_of(found, kinds)),
        case=verdict_of(outside, needed),
        outside=sum(outside) / 2,
        n_outside_rows=listed,
        n_new_rows=len(LIMA.rows) * (LIMA in facts),
        effective_share=effective,
    )


FEW, MANY = (0.0, 0.02), (0.0, 0.3)
BOTH_FEATURES = ("covariate", "within class")
DIFFERENT = "he features are distributed differently"


@pytest.mark.parametrize(
    ("found", "outside", "listed", "facts", "remedy", "sentence"),
    [
        ((), FEW, 0, (), "plain", "Training and validation data look alike."),
        ((), MANY, 0, (), "plain", "No shift was found in 50 validation rows."),
        ((), FEW, 1, (), "giw", "1 validation row lies outside the training data."),
        ((), FEW, 3, (), "giw", "3 validation rows lie outside the training data."),
        ((), FEW, 2, (LIMA,), "giw", "Category 'Lima' is new."),
        ((), FEW, 0, (RARE,), "plain", "Training and validation data look alike."),
        ((), FEW, 0, (UNIT,), "plain", "Column 'x' is 10 times larger."),
        ((), FEW, 0, (EMPTY,), "plain", "Column 'x' is empty in training."),
        ((), FEW, 0, (LATER,), "plain", "Column 't' is later."),
        (
            (), FEW, 0, (DATES,), "plain",
            "No shift was found by a test; see to this first: Column 't' holds dates.",
        ),
        (
            ("class prior", "covariate"), FEW, 0, (UNIT,), "class weights",
            "Column 'x' is 10 times larger; the classes are mixed in other shares.",
        ),
        (
            (), FEW, 0, (COPIES,), "plain",
            "No shift was found by a test; see to this first: 3 of 9 validation rows are training "
            "rows too.",
        ),
        (
            BOTH_FEATURES, FEW, 0, (), "weighting",
            f"T{DIFFERENT}; training covers them all the same.",
        ),
        (
            BOTH_FEATURES, FEW, 29, (), "giw",
            f"29 validation rows lie outside the training data; t{DIFFERENT}.",
        ),
        (BOTH_FEATURES, MANY, 0, (), "weighting", f"T{DIFFERENT}."),
        (BOTH_FEATURES, FEW, 2, (LIMA,), "giw", f"Category 'Lima' is new; t{DIFFERENT}."),
        (
            ("covariate", "class prior"), FEW, 0, (), "class weights",
            "The classes are mixed in other shares, and look the same otherwise.",
        ),
        (
            ("class prior",), FEW, 3, (), "giw",
            "3 validation rows lie outside the training data; the classes are mixed in other "
            "shares.",
        ),
        (
            ("covariate", "class prior", "within class"), FEW, 0, (), "weighting",
            f"T{DIFFERENT}; training covers them all the same.",
        ),
        (
            ("label",), FEW, 0, (), "giw",
            "The same features get other labels in validation than in training.",
        ),
        (
            KINDS, (0.2, 0.4), 7, (), "giw",
            "About 30 % of the test distribution lies outside the training data (20 % to 40 %); "
            f"t{DIFFERENT}; the same features get other labels in validation than in training.",
        ),
    ],
)  # fmt: skip
def test_each_finding_has_its_sentence(found, outside, listed, facts, remedy, sentence):
    told = advice(*found, outside=outside, listed=listed, facts=facts)
    assert told.answer == sentence
    assert told.remedy == remedy


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (("class prior",), ("class prior",)),
        (("class prior", "label"), ("class prior",)),
        (("class prior", "label", "within class"), ("label",)),
        (("covariate", "class prior", "within class"), ("covariate",)),
        (("covariate", "label", "within class"), ("covariate", "label")),
        (KINDS, ("covariate", "label")),
        ((), ()),
    ],
)
def test_the_fewest_kinds_of_shift_are_named(found, kinds):
    """Class shares that change change features too, and features that change change the shares."""
    assert what_shifted(shifts_of(found)) == kinds


def test_features_alone_do_not_explain_labels_that_only_class_shares_do():
    """Classes of equal features within them; by features alone labels differ."""
    found = shifts_of(("covariate", "class prior"))
    found = [replace(f, p_value=0.02) if f.kind == "within class" else f for f in found]
    assert what_shifted(found) == ("covariate",)
    assert what_shifted(found, label_p=0.001) == ("class prior",)


@given(
    found=st.sets(st.sampled_from(KINDS)),
    bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
    listed=st.integers(0, 30),
    known=st.lists(st.sampled_from([LIMA, RARE, COPIES]), max_size=3, unique=True),
)
def test_no_answer_claims_coverage_that_a_row_a_fact_or_a_bound_denies(
    found, bounds, listed, known
):
    listed = max(listed, 2 * (LIMA in known))
    told = advice(*found, outside=tuple(bounds), listed=listed, facts=tuple(known))
    claimed = any(words in told.answer for words in COVERED)
    if bounds[1] >= 0.1 or listed:
        assert not claimed
    if not found - {"within class"} and not listed:
        assert told.remedy == "plain"
        assert told.kinds == ()


def test_every_question_that_was_asked_is_evidence():
    told = [answered(test, test.found).text for test in shifts_of(["covariate"])]
    assert told[0] == (
        "Do the features look different? Yes, at least 30 % of rows (20 % to 40 %), p = 0.001."
    )
    assert told[1] == "Do class shares differ? Not shown, p = 0.5."


def test_the_column_that_differs_most_is_named():
    told = recommend(
        shifts_of(BOTH_FEATURES), case=verdict_of(FEW), outside=0.0, n_outside_rows=0, column="age"
    )
    assert told.answer == (
        "The features are distributed differently, most of all column 'age'; training covers them "
        "all the same."
    )


def test_rows_outside_that_only_their_number_shows_are_told():
    told = advice("outside", outside=(0.0, 0.3), kinds=("outside", "covariate"))
    assert told.answer == (
        "Some validation rows lie outside the training data, none of them for certain."
    )
    assert (told.remedy, told.kinds) == ("giw", ("outside",))
    none = Finding("outside", p_value=0.01, interval=(0.0, 0.3))
    assert "Yes, up to 30 % of rows" in answered(none, True).text


def test_an_open_case_says_how_many_rows_would_decide():
    told = advice(outside=(0.0, 0.3), needed=4000)
    assert "about 4,000" in told.next_steps[0]
    assert "Between 0 % and 30 %" in told.next_steps[0]
    assert "30 %" not in told.answer
    assert "separate better" in advice(outside=(0.0, 0.3)).next_steps[0]
    assert advice().next_steps == ()


def test_fragile_weights_are_mentioned():
    assert "worth only" in " ".join(advice("covariate", effective=0.02).next_steps)


def test_many_facts_of_a_kind_make_one_clause():
    others = [replace(UNIT, column=f"x{j}", text=f"Column 'x{j}' differs.") for j in range(9)]
    told = advice(facts=(UNIT, *others))
    assert told.answer == "Column 'x' is 10 times larger (9 more likewise)."
    assert "First bring columns 'x', 'x0', 'x1' and 7 more to one unit." in told.action


def test_missing_validation_labels_are_asked_for():
    assert "Label validation rows" in advice(kinds=("covariate",)).next_steps[-1]


def test_labels_that_are_there_are_not_asked_for_again():
    last = advice(kinds=("covariate", "class prior")).next_steps[-1]
    assert "Too few labelled validation rows lie inside" in last


def test_shares_in_words():
    assert percent(0.123) == "12 %"
    assert percent(0.001) == "under 1 %"
