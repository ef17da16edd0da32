"""Numbers, categories and missing values, as a person expects them."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from giw.tables import Encoder, Table, as_table

RNG = np.random.default_rng(0)


def text(*values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def column(*values):
    return np.array(values, dtype=float)[:, None]


def encoded(train, val):
    encoder = Encoder().fit(train, val)
    return encoder.transform(train), encoder.transform(val)


TRAIN = Table(
    {"age": np.array([10.0, np.nan, 30.0, 50.0]), "town": text("Rome", "Oslo", None, "Rome")},
    source="train.csv",
)


# -- which features there are


def test_training_rows_by_hand():
    encoder = Encoder().fit(TRAIN)

    names = ["age", "age=(missing)", "town=Oslo", "town=Rome", "town=(missing)", "town=(unseen)"]
    assert encoder.feature_names_ == names
    assert encoder.feature_columns_ == ["age"] * 2 + ["town"] * 4
    assert_array_equal(
        encoder.numbers(TRAIN),
        [
            [10, 0, 0, 1, 0, 0],
            [30, 1, 1, 0, 0, 0],  # the median of 10, 30, 50, and an indicator
            [30, 0, 0, 0, 1, 0],
            [50, 0, 0, 1, 0, 0],
        ],
    )


def test_an_unseen_category_has_a_value_of_its_own():
    encoder = Encoder().fit(TRAIN)
    new = Table({"town": text("Lima"), "age": np.array([1.0])})  # columns in another order

    assert_array_equal(encoder.numbers(new), [[1, 0, 0, 0, 0, 1]])
    assert not encoder.numbers(TRAIN)[:, -1].any()
    assert encoder.transform(new)[0, -1] == 1  # constant in training: its unit stays


def test_values_missing_only_in_validation_get_an_indicator_and_the_training_median():
    train, val = column(1, 2, 9), column(100, np.nan)
    encoder = Encoder().fit(train, val)

    assert_array_equal(encoder.numbers(train), [[1, 0], [2, 0], [9, 0]])
    assert_array_equal(encoder.numbers(val), [[100, 0], [2, 1]])


def test_rare_and_new_categories_share_a_feature():
    values = ["a", "b"] * 3 + ["r1", "r2"]
    encoder = Encoder(max_categories=2).fit(Table({"c": text(*values)}))

    rows = encoder.numbers(Table({"c": text("r1", "r2", "a", "new")}))
    assert [encoder.feature_names_[j] for j in rows.argmax(axis=1)] == [
        "c=(rare)", "c=(rare)", "c=a", "c=(rare)"
    ]  # fmt: skip


def test_columns_nobody_can_learn_from_are_left_out_with_a_note():
    ids = text(*[f"id {j}" for j in range(300)])
    table = Table({"id": ids, "none": np.full(300, np.nan), "x": np.arange(300.0)})
    encoder = Encoder().fit(table, table)

    assert encoder.feature_names_ == ["x"]
    assert len(encoder.notes_) == 2
    assert encoder.transform(table.without("id").without("none")).shape == (300, 1)


@pytest.mark.parametrize("n", [40, 300])
def test_a_word_among_measured_numbers_does_not_cost_the_column(n):
    """Left out as text, or made categories, the column would be missed by nobody."""
    values = [f"{j / 7:.3f}" for j in range(n)]
    values[5] = "n/k"
    table = Table({"a": text(*values), "b": np.arange(float(n))}, source="train.csv")
    with pytest.raises(ValueError, match=r"train\.csv: column 'a' .* 'n/k' in row 5; leave"):
        Encoder().fit(table)
    assert "b" in Encoder(categorical=["a"]).fit(table).feature_names_


@pytest.mark.parametrize("n", [40, 300])
def test_decimal_commas_are_named_and_do_not_cost_the_column(n):
    values = [f"{j / 7:.3f}".replace(".", ",") for j in range(n)]
    table = Table({"a": text(None, *values[1:]), "b": np.arange(float(n))}, source="train.csv")
    with pytest.raises(
        ValueError, match="column 'a' holds numbers with decimal commas, such as '0,143' in row 1"
    ):
        Encoder().fit(table)


def test_the_word_among_numbers_is_named_and_not_the_numbers():
    encoder = Encoder().fit(Table({"age": np.arange(30.0)}))
    with pytest.raises(
        ValueError, match=r"holds text \('unknown' in row 2\).*fit again and name it"
    ):
        encoder.transform(Table({"age": text("70", None, "unknown")}, source="new.csv"))


def test_numbers_written_as_text_are_named_so():
    """They may be identifiers, so they are left out; the note says what to do if not."""
    table = Table({"id": text(*(f"{j:05d}" for j in range(300))), "b": np.arange(300.0)})
    assert "holds numbers written as text" in Encoder().fit(table).notes_[0]


def test_numbers_can_be_declared_names():
    train = Table({"zip": np.array([100.0, 200.0, np.nan, 1.5])})
    encoder = Encoder(categorical=["zip"]).fit(train)

    wanted = ["zip=1.5", "zip=100", "zip=200", "zip=(missing)", "zip=(unseen)"]
    assert encoder.feature_names_ == wanted
    found = encoder.numbers(Table({"zip": text("200", "x")}))
    assert_array_equal(found.argmax(axis=1), [2, 4])
    with pytest.raises(ValueError, match=r"no column 'zipp'; did you mean 'zip'\?"):
        Encoder(categorical=["zipp"]).fit(train)


def test_categories_that_look_like_numbers_in_one_file_still_match():
    """A column of codes such as 1, 2, x is text in training; a file without x holds numbers."""
    encoder = Encoder().fit(Table({"code": text("1", "2", "x")}))
    found = encoder.numbers(Table({"code": np.array([2.0, 7.0])}))
    assert_array_equal(found.argmax(axis=1), [1, 4])


def test_a_column_that_is_empty_in_validation_counts_as_missing():
    val = Table({"age": text(None, None), "town": np.full(2, np.nan)})
    assert_array_equal(Encoder().fit(TRAIN).numbers(val), [[30, 1, 0, 0, 1, 0]] * 2)


# -- units


def test_training_rows_have_unit_spread_and_validation_rows_the_same_unit():
    z, z_val = encoded(np.tile(column(0, 10), (500, 1)), column(5, 20))

    assert_allclose(np.unique(z), [-1, 1])
    assert_allclose(z_val[:, 0], [0, 3])


def test_a_few_huge_values_do_not_flatten_the_others():
    """999999 is how many tables write "unknown"."""
    x = RNG.normal(size=(1_000, 1))
    ordinary = Encoder().fit(x).transform(x)[20:].std()
    for size in (999_999, -1e39, 1e300):
        x[:20] = size
        z = Encoder().fit(x).transform(x)
        assert 0.6 * ordinary < z[20:].std() < ordinary
        assert np.all(np.abs(z[:20]) > 100)


def test_a_feature_that_is_constant_in_training_keeps_its_unit():
    z, z_val = encoded(np.full((50, 1), 7.0), column(9))

    assert not z.any()
    assert_allclose(z_val, [[2.0]])


def test_a_constant_that_rounding_made_uneven_is_a_constant():
    x = np.where(np.arange(50) % 2, 0.3, 0.1 + 0.2)[:, None]
    assert np.abs(Encoder().fit(x).transform(x)).max() < 1e-15


def test_a_rare_category_still_has_a_finite_unit():
    x = np.zeros((1000, 1))
    x[0] = 1
    assert_allclose(Encoder().fit(x).transform(x).std(), 1, rtol=1e-6)


@pytest.mark.parametrize(("origin", "error"), [(1e8, 1e-7), (1e12, 1e-3)])
def test_a_small_spread_far_from_zero_is_seen(origin, error):
    x = RNG.normal(size=(500, 1))
    assert_allclose(
        Encoder().fit(x + origin).transform(x + origin), Encoder().fit(x).transform(x), atol=error
    )


@pytest.mark.parametrize("size", [1e39, 1e200, 1.7e308, 1e-300])
def test_numbers_of_any_size_have_the_same_units(size):
    x = RNG.uniform(-1, 1, size=(200, 2))
    z, z_val = encoded(size * x, size * x[:5])
    assert_allclose(z, Encoder().fit(x).transform(x), rtol=1e-9, atol=1e-12)
    assert_array_equal(z_val, z[:5])


def test_what_is_far_beyond_training_stays_finite_in_single_precision():
    _, z_val = encoded(column(0, 1e-300, 2e-300), column(1e300, -5))
    assert np.isfinite(np.square(z_val.astype(np.float32))).all()
    assert z_val[0] > 0 > z_val[1]


tables = st.lists(
    st.tuples(
        st.floats(-1e6, 1e6), st.one_of(st.just(float("nan")), st.integers(-3, 3).map(float)),
        st.sampled_from(["a", "b", "ü", "<b>", None]),
    ),
    min_size=3, max_size=20,
)  # fmt: skip


def as_columns(rows):
    x, gaps, words = zip(*rows, strict=True)
    return {"x": np.array(x), "gaps": np.array(gaps), "words": text(*words)}


@settings(deadline=None, max_examples=40)
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    a, b = (Encoder().fit(Table(as_columns(side))) for side in (rows, shuffled))
    table = Table(as_columns(rows))
    assert_array_equal(a.transform(table), b.transform(table))
    assert_array_equal(a.level_counts(table), b.level_counts(table))


@settings(deadline=None, max_examples=40)
@given(tables, st.permutations(["x", "gaps", "words"]))
def test_the_order_of_columns_does_not_matter(rows, order):
    columns = as_columns(rows)
    encoder = Encoder().fit(Table(columns))
    other = Table({name: columns[name] for name in order})
    assert_array_equal(encoder.transform(other), encoder.transform(Table(columns)))
    again = Encoder().fit(other)
    place = [again.feature_names_.index(name) for name in encoder.feature_names_]
    assert_array_equal(again.transform(other)[:, place], encoder.transform(other))


@settings(deadline=None, max_examples=40)
@given(tables, st.integers(-900, 900))
def test_a_power_of_two_in_the_unit_changes_not_one_bit(rows, power):
    columns = as_columns(rows)
    x = columns["x"] = np.round(columns["x"], 3)
    if np.ptp(x) == 0:  # a constant keeps its unit
        return
    other = columns | {"x": np.ldexp(x, power)}
    assert_array_equal(
        Encoder().fit(Table(columns)).transform(Table(columns)),
        Encoder().fit(Table(other)).transform(Table(other)),
    )


@settings(deadline=None, max_examples=30)
@given(st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_units_and_origin_of_the_user_do_not_matter(unit, steps):
    x, x_val = np.random.default_rng(1).normal(size=(2, 60, 2))
    origin = unit * steps
    one, other = encoded(x, x_val), encoded(unit * x + origin, unit * x_val + origin)
    assert_allclose(np.vstack(one), np.vstack(other), atol=1e-6)


# -- levels that training does not have


def test_new_levels_are_unseen_categories_and_new_gaps():
    train = pd.DataFrame({"town": ["a", "a", "b"], "age": [1.0, 2.0, 3.0], "gone": [None] * 3})
    val = pd.DataFrame({"town": ["b", "c", None], "age": [9.0, np.nan, 1.0], "gone": [None, 1, 2]})
    encoder = Encoder().fit(train, val)

    assert encoder.columns_ == ["town", "age", "gone"]
    assert_array_equal(
        encoder.level_counts(val) == 0, [[False] * 3, [True, True, True], [True, False, True]]
    )
    assert encoder.level_counts(train).all()


def test_counts_say_which_training_rows_have_a_level_of_their_own():
    train = pd.DataFrame({"town": ["a", "a", "b", None], "age": [1.0, 2.0, None, 4.0]})
    counts = Encoder().fit(train).level_counts(train)
    assert_array_equal(counts, [[2, 3], [2, 3], [1, 1], [1, 3]])


def test_identifiers_are_no_new_levels():
    train, val = (
        pd.DataFrame({"id": [f"{k} {j}" for j in range(300)], "x": np.arange(300)}) for k in "ab"
    )
    assert Encoder().fit(train, val).level_counts(val).all()
    assert (Encoder().fit(train, val).level_counts(train) == 300).all()


def test_rare_categories_are_levels_of_their_own():
    train = pd.DataFrame({"c": ["a"] * 5 + ["b"] * 4 + ["r", "s"]})
    encoder = Encoder(max_categories=1).fit(train)
    found = encoder.level_counts(pd.DataFrame({"c": ["b", "s", "t"]})) == 0
    assert_array_equal(found[:, 0], [False, False, True])


# -- what comes in


FRAME = pd.DataFrame({"n": [1.5, 2.5, None], "c": ["u", "v", "u"]})


@pytest.mark.parametrize(
    "other",
    [
        pa.Table.from_pandas(FRAME),
        FRAME.astype({"c": "category"}),
        FRAME.convert_dtypes(),
        np.array([[1.5, "u"], [2.5, "v"], [None, "u"]], dtype=object),
        FRAME.to_numpy().tolist(),
    ],
    ids=["pyarrow", "categories", "nullable", "objects", "lists"],
)
def test_the_same_rows_in_another_type_are_the_same_numbers(other):
    encoder = Encoder().fit(FRAME)
    assert_array_equal(encoder.transform(other), encoder.transform(FRAME))
    assert_array_equal(Encoder().fit(other).transform(other), encoder.transform(FRAME))


def test_polars_comes_through_arrow():
    class Frame:
        """All that is asked of it."""

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.Table.from_pandas(FRAME).__arrow_c_stream__(requested_schema)

    assert_array_equal(
        Encoder().fit(Frame()).transform(FRAME), Encoder().fit(FRAME).transform(FRAME)
    )


def test_arrays_tensors_and_images_are_taken():
    torch = pytest.importorskip("torch")
    images = RNG.normal(size=(6, 1, 2, 2))
    wanted = Encoder().fit(images.reshape(6, 4)).transform(images)
    for value in (images, torch.as_tensor(images), pd.DataFrame(images.reshape(6, 4))):
        assert_array_equal(Encoder().fit(value).transform(value), wanted)
    assert Encoder().fit(torch.ones(3, 2, dtype=torch.bfloat16)).feature_names_ == ["x0", "x1"]


def test_truth_values_dates_and_spans_are_numbers():
    days = pd.to_datetime(["2020-01-01", "2020-01-03", None])
    frame = pd.DataFrame({"b": [True, False, True], "d": days, "s": days - days[0]})
    frame["o"] = [pd.Timestamp("2020-01-01").date(), pd.Timestamp("2020-01-03").date(), None]
    found = Encoder().fit(frame).numbers(frame)
    first = 18_262
    assert_array_equal(
        found[:2], [[1, first, 0, 0, 0, first, 0], [0, first + 2, 0, 2, 0, first + 2, 0]]
    )
    assert_array_equal(Encoder().fit(days.to_numpy()).numbers(days.to_numpy()), found[:, 1:3])


def test_a_date_that_stands_for_never_is_later_than_all_others():
    never = as_table(pd.DataFrame({"d": ["2020-01-01", "9999-12-31", None]}), "X").columns["d"]
    assert_array_equal(never, [18_262, 2_932_896, np.nan])


def test_a_frame_and_an_array_meet_by_place():
    frame = pd.DataFrame({"b": [1.0, 2.0, 4.0], "a": [0.0, 5.0, 1.0]})
    assert_array_equal(Encoder().fit(frame).transform(frame.to_numpy()), encoded(frame, frame)[1])
    assert_array_equal(Encoder().fit(frame.to_numpy()).transform(frame), encoded(frame, frame)[1])


def test_names_for_the_columns_of_an_array():
    table = as_table(np.eye(2), "X", column_names=["a", "b"])
    assert Encoder().fit(table).feature_names_ == ["a", "b"]


PERIODS = pd.DataFrame({"p": pd.period_range("2020", periods=3, freq="M")})
INTERVALS = pd.DataFrame({"i": pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3])})


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (column(1, np.inf, 2), r"X: column 'x0' holds infinite numbers \(the first in row 1\)"),
        (sparse.eye(3).tocsr(), r"X is sparse; pass X\.toarray\(\)"),
        (PERIODS, r"column 'p' holds periods; .* X\['p'\]\.dt\.to_timestamp\(\)"),
        (INTERVALS, "column 'i' holds intervals; make .* i.mid"),
        (pd.DataFrame([[1, 2]] * 3, columns=["a", "a"]), "two columns called 'a'; rename one"),
        (pd.DataFrame([[1, 2]] * 3, columns=["1", 1]), "two columns called '1'; rename one"),
        (pd.DataFrame({"l": [[1], [2], [3]]}), "column 'l' holds lists or records"),
        (np.eye(3) * 1j, "complex numbers; pass real ones"),
        (pd.DataFrame({"c": [1j, 2, 3]}, dtype=object), "'c' holds complex numbers"),
        ([[1, 2], [3]], "the rows of X differ in length"),
        ("t.csv", "X must be an array or a table, got str"),
        (None, "X must be an array or a table, got NoneType"),
        (np.ones((0, 3)), "X has no rows"),
        (np.ones((3, 0)), "X has no column to learn from"),
        (np.full((3, 1), np.nan), "no column to learn from .*'x0' is empty in training"),
    ],
)
def test_what_is_no_table_of_numbers_and_text_is_refused_in_one_line(X, words):
    with pytest.raises(ValueError, match=words) as caught:
        Encoder().fit(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (Table({"age": np.ones(1)}, "v.csv"), "v.csv differ.*it lacks 'town'"),
        (
            Table({"age": np.ones(1), "town": text("a"), "more": np.ones(1)}, "v.csv"),
            "v.csv differ.*it also has 'more'",
        ),
        (Table({"age": text("old"), "town": text("a")}, "v.csv"), "'old' in row 0"),
        (Table({"age": np.array([np.inf]), "town": text("a")}), "infinite"),
        (np.ones((1, 3)), "X_val has 3 columns and the training data 2"),
    ],
)
def test_validation_tables_that_do_not_fit_are_refused_in_one_line(table, message):
    with pytest.raises(ValueError, match=message) as caught:
        encoded(TRAIN, table)
    assert "\n" not in str(caught.value)


def test_columns_that_training_never_had_do_no_harm_later():
    more = Table({**TRAIN.columns, "more": np.ones(4)})
    encoder = Encoder().fit(TRAIN)
    assert_array_equal(encoder.transform(more), encoder.transform(TRAIN))


# -- kept on disk


@settings(deadline=None, max_examples=40)
@given(tables)
def test_through_json_the_encoder_does_the_same(rows):
    table = Table(as_columns(rows))
    encoder = Encoder().fit(table)
    again = Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))

    assert again.feature_names_ == encoder.feature_names_
    assert_array_equal(again.transform(table), encoder.transform(table))
    assert_array_equal(again.level_counts(table), encoder.level_counts(table))
