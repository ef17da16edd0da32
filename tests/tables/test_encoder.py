"""Categories and missing values, as a person expects them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from giw.tables.encoder import MOST_CATEGORIES, TableEncoder
from giw.tables.reading import Table


def text(*values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


TRAIN = Table(
    {"age": np.array([10.0, np.nan, 30.0, 50.0]), "town": text("Rome", "Oslo", None, "Rome")},
    source="train.csv",
)


def test_training_rows_by_hand():
    encoder = TableEncoder.fit(TRAIN)

    names = ["age", "age=(missing)", "town=Oslo", "town=Rome", "town=(missing)", "town=(unseen)"]
    assert encoder.feature_names == names
    assert encoder.feature_columns == ["age"] * 2 + ["town"] * 4
    assert_array_equal(
        encoder.encode(TRAIN),
        [
            [10, 0, 0, 1, 0, 0],
            [30, 1, 1, 0, 0, 0],  # the median of 10, 30, 50, and an indicator
            [30, 0, 0, 0, 1, 0],
            [50, 0, 0, 1, 0, 0],
        ],
    )


def test_an_unseen_category_has_a_value_of_its_own():
    encoder = TableEncoder.fit(TRAIN)
    new = Table({"town": text("Lima"), "age": np.array([1.0])})  # columns in another order

    assert_array_equal(encoder.encode(new), [[1, 0, 0, 0, 0, 1]])
    assert not encoder.encode(TRAIN)[:, -1].any()


def test_values_missing_only_in_validation_get_an_indicator_and_the_training_median():
    train = Table({"a": np.array([1.0, 2.0, 9.0])})
    val = Table({"a": np.array([100.0, np.nan])})
    encoder = TableEncoder.fit(train, val)

    assert_array_equal(encoder.encode(train), [[1, 0], [2, 0], [9, 0]])
    assert_array_equal(encoder.encode(val), [[100, 0], [2, 1]])


def test_without_missing_values_numbers_stay_as_they_are():
    table = Table({"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])})
    assert_array_equal(TableEncoder.fit(table).encode(table), [[1, 3], [2, 4]])


def test_rare_categories_share_a_feature():
    values = [f"c{j:02d}" for j in range(MOST_CATEGORIES) for _ in range(3)] + ["r1", "r2"]
    encoder = TableEncoder.fit(Table({"c": text(*values)}))

    assert len(encoder.feature_names) == MOST_CATEGORIES + 3
    rows = encoder.encode(Table({"c": text("r1", "r2", "c00", "new")}))
    assert_array_equal(rows[0], rows[1])
    assert encoder.feature_names[int(rows[0].argmax())] == "c=(rare)"
    assert encoder.feature_names[int(rows[3].argmax())] == "c=(unseen)"


def test_columns_nobody_can_learn_from_are_left_out_with_a_note():
    ids = text(*[f"id {j}" for j in range(300)])
    table = Table({"id": ids, "none": np.full(300, np.nan), "x": np.arange(300.0)})
    encoder = TableEncoder.fit(table)

    assert encoder.feature_names == ["x"]
    assert len(encoder.notes) == 2
    encoder.check(table, strict=True)  # what was left out is not a stranger


def test_a_word_among_measured_numbers_does_not_cost_the_column():
    """Left out as text, the column would be missed by nobody who reads no notes."""
    values = [f"{j / 7:.3f}" for j in range(300)]
    values[5] = "n/k"
    table = Table({"a": text(*values), "b": np.arange(300.0)}, source="train.csv")
    with pytest.raises(ValueError, match=r"train\.csv: column 'a' .* 'n/k' in row 5; leave"):
        TableEncoder.fit(table)
    assert TableEncoder.fit(table, categorical=["a"]).left_out == ("a",)


def test_decimal_commas_are_named_and_do_not_cost_the_column():
    values = [f"{j / 7:.3f}".replace(".", ",") for j in range(300)]
    table = Table({"a": text(None, *values[1:]), "b": np.arange(300.0)}, source="train.csv")
    with pytest.raises(
        ValueError, match="column 'a' holds numbers with decimal commas, such as '0,143' in row 1"
    ):
        TableEncoder.fit(table)


def test_the_word_among_numbers_is_named_and_not_the_numbers():
    encoder = TableEncoder.fit(Table({"age": np.arange(30.0)}))
    with pytest.raises(
        ValueError, match=r"holds text \('unknown' in row 2\).*fit again and name it"
    ):
        encoder.encode(Table({"age": text("70", None, "unknown")}, source="new.csv"))


def test_numbers_written_as_text_are_named_so():
    """They may be identifiers, so they are left out; the note says what to do if not."""
    table = Table({"id": text(*(f"{j:05d}" for j in range(300))), "b": np.arange(300.0)})
    assert "holds numbers written as text" in TableEncoder.fit(table).notes[0]


def test_numbers_can_be_declared_names():
    train = Table({"zip": np.array([100.0, 200.0, np.nan, 1.5])})
    encoder = TableEncoder.fit(train, categorical=["zip"])

    wanted = ["zip=1.5", "zip=100", "zip=200", "zip=(missing)", "zip=(unseen)"]
    assert encoder.feature_names == wanted
    assert_array_equal(encoder.encode(Table({"zip": text("200", "x")})).argmax(axis=1), [2, 4])
    with pytest.raises(ValueError, match=r"no column 'zipp'; did you mean 'zip'\?"):
        TableEncoder.fit(train, categorical=["zipp"])


def test_categories_that_look_like_numbers_in_one_file_still_match():
    """A column of codes such as 1, 2, x is text in training; a file without x holds numbers."""
    encoder = TableEncoder.fit(Table({"code": text("1", "2", "x")}))
    assert_array_equal(encoder.encode(Table({"code": np.array([2.0, 7.0])})).argmax(axis=1), [1, 4])


@pytest.mark.parametrize(
    ("table", "strict", "message"),
    [
        (Table({"age": np.ones(1)}, "v.csv"), False, "v.csv differ.*it lacks 'town'"),
        (
            Table({"age": np.ones(1), "town": text("a"), "more": np.ones(1)}, "v.csv"),
            True,
            "v.csv differ.*it also has 'more'",
        ),
        (Table({"age": text("old"), "town": text("a")}, "v.csv"), False, "'old' in row 0"),
        (Table({"age": np.array([np.inf]), "town": text("a")}), False, "infinite"),
    ],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(table, strict, message):
    with pytest.raises(ValueError, match=message) as caught:
        TableEncoder.fit(TRAIN).encode(table, strict=strict)
    assert "\n" not in str(caught.value)


def test_a_column_that_is_empty_in_validation_counts_as_missing():
    val = Table({"age": text(None, None), "town": np.full(2, np.nan)})
    rows = TableEncoder.fit(TRAIN).encode(val)
    assert_array_equal(rows, [[30, 1, 0, 0, 1, 0]] * 2)


def test_a_table_with_a_label_only_is_refused():
    with pytest.raises(ValueError, match="no column to learn from"):
        TableEncoder.fit(Table({}, "t.csv"))


cell = st.one_of(st.none(), st.sampled_from(["a", "b", "ü", "<b>"]))
number = st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(number, cell), min_size=2, max_size=12))
def test_through_json_the_encoder_does_the_same(rows):
    table = Table({"x": np.array([r[0] for r in rows]), "c": text(*[r[1] for r in rows])})
    if np.isnan(table.columns["x"]).all() and all(v is None for v in table.columns["c"]):
        return
    encoder = TableEncoder.fit(table)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))

    assert again.feature_names == encoder.feature_names
    assert_array_equal(again.encode(table), encoder.encode(table))
    assert np.isfinite(encoder.encode(table)).all()
