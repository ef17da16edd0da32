import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from giw.pages.tables import (
    in_one_sentence,
    latex_sheet,
    markdown_sheet,
    paired_p_value,
    rows_sheet,
    summarize,
    text_table,
)

# Differences from giw: diw 0.2, 0.4 (t = 3, p = 2/pi arctan(1/3)); pooled 0 throughout.
TWO_TRIALS = {"giw": [0.8, 0.9], "diw": [0.6, 0.5], "pooled": [0.8, 0.9]}
FIVE_TRIALS = {
    "giw": [0.90, 0.92, 0.91, 0.93, 0.89],
    "diw": [0.60, 0.63, 0.61, 0.62, 0.60],
    "pooled": [0.91, 0.91, 0.90, 0.92, 0.90],
}


def of_markdown(rows):
    return markdown_sheet(rows_sheet(rows))


def of_latex(rows):
    return latex_sheet(rows_sheet(rows))


def by_method(accuracy):
    return {row.method: row for row in summarize(accuracy)}


def test_two_trials_by_hand():
    """With one degree of freedom t is Cauchy, so p = 1 - 2 arctan(t) / pi, and t = 3."""
    rows = by_method(TWO_TRIALS)

    assert rows["giw"].mean == pytest.approx(0.85)
    assert rows["giw"].std == pytest.approx(np.sqrt(0.005))  # n - 1 in the denominator
    assert rows["diw"].p_value == pytest.approx(1 - 2 * np.arctan(3) / np.pi)
    assert [row.best for row in rows.values()] == [True, False, False]
    assert [row.tied for row in rows.values()] == [False, True, True]
    assert rows["pooled"].p_value == 1.0


def test_rows_keep_the_order_they_came_in():
    assert [row.method for row in summarize({"b": [0.1], "a": [0.9], "c": [0.5]})] == list("bac")


def test_the_test_is_paired():
    """A small gain in every trial is told apart although the trials differ by far more."""
    rows = by_method({"giw": [0.51, 0.72, 0.93], "diw": [0.50, 0.70, 0.92]})

    assert rows["diw"].p_value == pytest.approx(
        stats.ttest_1samp([0.01, 0.02, 0.01], 0).pvalue, rel=1e-9
    )
    assert stats.ttest_ind([0.51, 0.72, 0.93], [0.50, 0.70, 0.92]).pvalue > 0.9


@pytest.mark.parametrize("shift", [0.1, 0.01, 1e-6])
def test_the_same_gain_in_every_trial_is_no_tie(shift):
    rows = by_method({"giw": np.array([0.3, 0.6, 0.7]) + shift, "diw": [0.3, 0.6, 0.7]})

    assert rows["diw"].p_value == 0.0
    assert not rows["diw"].tied
    assert rows["diw"].verdict == "p < 0.001"


def test_equal_results_are_tied_and_the_first_is_called_best():
    rows = by_method({"diw": [1.0, 1.0], "giw": [1.0, 1.0]})

    assert rows["diw"].best
    assert rows["giw"].tied
    assert rows["giw"].p_value == 1.0


def test_a_single_trial_has_neither_spread_nor_test():
    rows = by_method({"giw": [0.9], "diw": [0.9]})

    assert rows["giw"].std is None
    assert rows["giw"].accuracy() == "90.0"
    assert rows["diw"].p_value is None
    assert not rows["diw"].tied
    assert rows["diw"].verdict == "not tested"


@given(arrays(float, (2, 6), elements=st.floats(0, 1)), st.permutations(range(6)))
@settings(deadline=None, max_examples=100)
def test_any_accuracies_give_a_verdict_that_the_order_of_trials_does_not_change(pair, order):
    """Also the awkward ones: constant, nearly constant, tiny; never a NaN, never a warning."""
    left, right = pair
    p_value = paired_p_value(left, right)

    assert 0 <= p_value <= 1
    assert paired_p_value(right, left) == pytest.approx(p_value, rel=1e-6, abs=1e-12)
    assert paired_p_value(left[order], right[order]) == pytest.approx(p_value, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("accuracy", "message"),
    [
        ({}, "one accuracy per trial"),
        ({"giw": []}, "one accuracy per trial"),
        ({"giw": [[0.1]]}, "one accuracy per trial"),
        ({"giw": [0.5, np.nan]}, "between 0 and 1"),
        ({"giw": [91.0]}, "divide percentages by 100"),
        ({"giw": [0.5, 0.5], "diw": [0.5]}, r"'giw': \(2,\), 'diw': \(1,\)"),
    ],
)
def test_what_cannot_be_summarized_is_refused_with_the_way_out(accuracy, message):
    with pytest.raises(ValueError, match=message):
        summarize(accuracy)


# What people read ---------------------------------------------------------------------------------


def test_the_table_of_methods_sets_best_and_tied_in_bold():
    assert markdown_sheet(rows_sheet(summarize(FIVE_TRIALS))) == (
        "| method | test accuracy (%) | against the best |\n"
        "| --- | ---: | --- |\n"
        "| GIW | **91.0 ± 1.6** | best |\n"
        "| DIW | 61.2 ± 1.3 | p \\< 0.001 |\n"
        "| Pooled | **90.8 ± 0.8** | tied, p = 0.70 |\n"
    )


def test_plain_text_shows_every_cell_and_no_colour_codes():
    text = text_table(summarize(FIVE_TRIALS), title="digits")

    assert text.startswith("digits\n")
    assert "\x1b" not in text
    for cell in ("GIW", "91.0 ± 1.6", "tied, p = 0.70", "against the best"):
        assert cell in text


def test_labels_with_markup_stay_labels():
    rows = summarize({"[red]a|b_&%<i>": [0.5]})

    assert "[red]a|b_&%<i>" in text_table(rows)
    assert r"\[red\]a\|b\_&%\<i\>" in of_markdown(rows)
    assert r"[red]a|b\_\&\%\textless{}i\textgreater{}" in of_latex(rows)


def test_a_backslash_is_escaped_once():
    rows = summarize({"a\\b": [0.5]})

    assert "| a\\\\b |" in of_markdown(rows)
    assert r"a\textbackslash{}b &" in of_latex(rows)


@pytest.mark.parametrize(
    ("accuracy", "says"),
    [
        (FIVE_TRIALS, "the most of all methods, though not told apart from Pooled."),
        ({"giw": [0.9, 0.8], "diw": [0.2, 0.1]}, "significantly more than every other method."),
        ({"giw": [0.2, 0.1], "diw": [0.9, 0.8]}, "70.0 points less than DIW, a significant diff"),
        ({"giw": [0.4, 0.6], "diw": [0.6, 0.5]}, "5.0 points less than DIW, though not told apart"),
        ({"giw": [0.6], "diw": [0.5]}, "the most of all methods; a single trial cannot say"),
        ({"giw": [0.5], "diw": [0.6]}, "10.0 points less than DIW; a single trial cannot say"),
    ],
)
def test_the_sentence_says_what_the_numbers_say_also_when_giw_loses(accuracy, says):
    assert says in in_one_sentence(summarize(accuracy))


def test_the_sentence_lists_all_that_are_tied():
    rows = summarize({name: [0.5, 0.6] for name in ("giw", "diw", "pooled", "val_only")})

    assert in_one_sentence(rows).endswith("not told apart from DIW, Pooled and Val-only.")
