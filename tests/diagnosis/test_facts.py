"""Facts are counted: each case is small enough to check by eye."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.diagnosis.facts import all_by_chance, facts, new_by_chance
from giw.tables.table import Table, as_table


def tables(n=200, m=50, seed=0, digits=6, **change):
    """Two tables of one distribution; ``change`` replaces columns of validation, or adds pairs."""
    rng = np.random.default_rng(seed)

    def side(size):
        return {
            "age": rng.normal(40, 10, size).round(digits),
            "town": rng.choice(["Rome", "Oslo", "Bern"], size).astype(object),
        }

    train, val = side(n), side(m)
    for name, value in change.items():
        if isinstance(value, tuple):
            train[name], val[name] = value
        else:
            val[name] = value(val[name])
    return Table(train), Table(val)


def put(value, rows=(0, 1, 2, 3, 4)):
    def change(column):
        changed = column.copy()
        changed[list(rows)] = value
        return changed

    return change


def text(values):
    return np.array(values, dtype=object)


def kinds(found):
    return [fact.kind for fact in found]


def test_nothing_differs_nothing_is_said():
    assert facts(*tables()) == ()


def test_a_category_that_training_lacks_is_counted_with_its_rows():
    (fact,) = facts(*tables(town=put("Lima", (7, 9))))
    assert (fact.kind, fact.column, fact.rows) == ("new category", "town", (7, 9))
    assert fact.text == (
        "Category 'Lima' of column 'town' is in 2 of 50 validation rows and in no training row."
    )


def test_codes_of_which_training_has_many_once_are_told_as_what_is_to_be_expected():
    rng = np.random.default_rng(0)
    code = [f"c{k}" for k in rng.integers(0, 300, 250)]
    (fact,) = facts(*tables(code=(text(code[:200]), text(code[200:]))))
    assert fact.p_value > 0.5
    assert fact.text.endswith("about 25.8 such rows are to be expected.")


@given(
    levels=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    m=st.integers(1, 4),
)
@settings(max_examples=20, deadline=None)
def test_unseen_levels_by_chance_are_those_of_rows_dealt_at_random(levels, m):
    """Expected rows exactly, over all ways to deal the rows; the p-value falls with each row."""
    rows = [j for j, count in enumerate(levels) for _ in range(count)]
    m = min(m, len(rows) - 1) or 1
    if len(rows) < 2:
        return
    dealt = list(combinations(range(len(rows)), m))
    seen = []
    for chosen in dealt:
        val = [rows[j] for j in chosen]
        train = [rows[j] for j in range(len(rows)) if j not in chosen]
        seen.append(sum(v not in train for v in val))
        expected, p_value = new_by_chance(train, val)
        assert 0 <= p_value <= 1
        assert p_value == 1 or seen[-1]
    assert expected == pytest.approx(np.mean(seen))


def test_the_chance_of_one_new_level_by_hand():
    """A level of three rows is in validation alone with (3 choose 3) / (9 choose 3) = 1 / 84."""
    expected, p_value = new_by_chance(["a"] * 6, ["b"] * 3)
    assert all_by_chance(3, 6, 3) == pytest.approx(1 / 84)
    assert p_value == pytest.approx(1 / 84)
    assert expected == pytest.approx(3 / 84)


def test_columns_of_one_table_alone_are_told():
    train, val = tables()
    (fact,) = facts(train.without("age"), val)
    assert (fact.kind, fact.column) == ("missing column", "age")
    assert fact.text == "Column 'age' is in the validation table and not in the training table."


def test_a_class_that_training_lacks_comes_first():
    train, val = tables(town=put("Lima"))
    y, y_val = np.array(["a", "b"] * 100), np.array(["a", "c"] * 25)
    found = facts(train, val, y, y_val)
    assert kinds(found) == ["new class", "new category"]
    assert found[0].text == "Label 'c' is in 25 of 50 validation rows and in no training row."


def test_a_new_class_is_one_question_and_a_new_category_one_of_as_many_as_there_are_columns():
    """Three of 200 + 50 rows are all among the 50 with a chance of 0.0076."""
    y, y_val = np.array(["a", "b"] * 100), np.array(["c"] * 3 + ["a"] * 47)
    codes = {f"c{j}": (text(["u", "v"] * 100), text(["u", "v"] * 25)) for j in range(20)}
    found = facts(*tables(town=put("Lima", (0, 1, 2)), **codes), y, y_val)
    assert [(f.kind, f.found) for f in found] == [("new class", True), ("new category", False)]
    assert found[0].p_value == pytest.approx(all_by_chance(3, 200, 50), rel=1e-6)


@pytest.mark.parametrize("power", [-3, -2, -1, 1, 2, 3])
def test_another_unit_is_told_by_its_factor(power):
    (fact,) = facts(*tables(age=lambda age: age * 10.0**power))
    assert fact.kind == "unit"
    assert f"{10 ** abs(power):,} times {'larger' if power > 0 else 'smaller'}" in fact.text


def test_a_mere_shift_is_no_unit():
    assert "unit" not in kinds(facts(*tables(age=lambda age: age + 60)))


def test_missing_values_count_where_training_has_none():
    (fact,) = facts(*tables(age=put(np.nan)))
    assert (fact.kind, len(fact.rows)) == ("newly missing", 5)
    train, val = tables(age=put(np.nan))
    train.columns["age"][3] = np.nan
    assert facts(train, val) == ()


def test_a_range_is_left_by_more_rows_than_chance_allows():
    """The three largest of 250 rows are all of the 50 with probability 0.0076."""
    age = np.arange(200.0)
    shuffled = np.random.default_rng(0).permutation(age) + 0.5
    inside = np.linspace(10.1, 150.1, 50)
    for beyond, told in ((2, False), (6, True)):
        val_age = inside.copy()
        val_age[:beyond] = 300.1
        found = facts(*tables(size=(shuffled, val_age)))
        assert ("range" in kinds(found)) == told
    assert found[0].rows == (0, 1, 2, 3, 4, 5)


def test_text_against_numbers_is_another_type():
    (fact,) = facts(*tables(age=lambda age: text([str(a) for a in age])))
    assert fact.kind == "type"
    assert "numbers in the training" in fact.text


@pytest.mark.parametrize(("val", "aside"), [(np.arange(50) % 2.0, False), (np.ones(50), True)])
def test_a_column_that_training_does_not_vary(val, aside):
    """Where no validation row has the value of training, nothing else could be compared."""
    (fact,) = facts(*tables(flag=(np.zeros(200), val)))
    assert (fact.kind, fact.aside, fact.is_news) == ("constant", aside, not aside)


def test_what_asks_for_care_comes_before_what_is_only_told():
    second = 1.7e9 + 60.0 * np.random.default_rng(0).permutation(250)
    found = facts(*tables(town=put("Lima"), at=(second[:200], second[200:])))
    assert kinds(found) == ["new category", "timestamp"]


def test_dates_in_another_format():
    days = [f"{d:02d}" for d in range(1, 29)] * 10
    iso, german = [f"2024-03-{d}" for d in days], [f"{d}.03.2024" for d in days]
    found = facts(*tables(day=(text(iso[:200]), text(german[:50]))))
    assert kinds(found) == ["date format"]
    assert found[0].aside
    assert "like 2024-12-31 in training and like 31.12.2024 in validation" in found[0].text


def test_days_and_text_are_dates_in_another_format():
    """Dates such as 2024-12-31 are numbers of days once they are read."""
    frames = [
        pd.DataFrame({"day": pd.date_range("2024-01-01", periods=30).strftime(form)})
        for form in ("%Y-%m-%d", "%d.%m.%Y")
    ]
    (fact,) = facts(*(as_table(frame, "X") for frame in frames))
    assert (fact.kind, fact.aside) == ("date format", True)


@pytest.mark.parametrize(("later", "aside"), [(0, False), (365, True)])
def test_dates_are_left_out_where_validation_is_later(later, aside):
    days = pd.date_range("2024-01-01", periods=250).to_numpy()
    mixed = np.random.default_rng(0).permutation(days)
    sides = mixed[:200], mixed[200:] + np.timedelta64(later, "D")
    (fact,) = facts(*(as_table(pd.DataFrame({"day": side}), "X") for side in sides))
    assert (fact.kind, fact.aside, len(fact.rows)) == ("timestamp", aside, 50 * aside)
    assert ("50 of 50 validation rows have others" in fact.text) == aside


@pytest.mark.parametrize("where", [0, 1])
def test_an_empty_column_is_a_missing_one(where):
    pair = [np.arange(200.0) % 7, np.arange(50.0) % 7]
    pair[where][:] = np.nan
    (fact,) = facts(*tables(size=tuple(pair)))
    side = ("training", "validation")[where]
    assert (fact.kind, fact.aside) == ("missing column", True)
    assert fact.text.endswith(f"and empty in the {side} table.")


def test_a_column_that_chance_empties_is_not_missing():
    """Of 250 rows one has a value: it is in training with a probability of 0.8."""
    age = np.append(1.0, np.full(199, np.nan))
    assert facts(*tables(size=(age, np.full(50, np.nan)))) == ()


def test_codes_that_happen_to_be_numbers_are_text_as_in_training():
    codes = text(["250", "V58", "401", "E87"] * 50)
    assert facts(*tables(code=(codes, np.array([250.0, 401.0] * 25)))) == ()
    (fact,) = facts(*tables(code=(codes, np.array([250.0] * 40 + [7.0] * 10))))
    assert (fact.kind, len(fact.rows)) == ("new category", 10)
    assert "'7'" in fact.text


def test_row_numbers_and_moments_are_told_apart():
    number, second = np.arange(250.0), 1.7e9 + 60.0 * np.arange(250)
    found = facts(*tables(id=(number[:200], number[200:]), at=(second[:200], second[200:])))
    assert {fact.column: fact.kind for fact in found if fact.kind != "range"} == {
        "id": "identifier",
        "at": "timestamp",
    }


def test_whole_numbers_that_could_differ_by_chance_are_no_row_numbers():
    """Forty draws of 1 to 1,000 are all different with probability 0.45."""
    rng = np.random.default_rng(0)
    amount = rng.choice(1000, 40, replace=False).astype(float)
    assert facts(*tables(20, 20, amount=(amount[:20], amount[20:]))) == ()


def test_rows_of_both_tables_are_counted_once():
    train, val = tables()
    for name in train.names:
        val.columns[name][:4] = train.columns[name][:4]
    (fact,) = facts(train, val)
    assert (fact.kind, fact.rows) == ("duplicates", (0, 1, 2, 3))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_the_order_of_rows_does_not_matter(seed):
    train, val = tables(town=put("Lima"), age=put(np.nan))
    rng = np.random.default_rng(seed)
    mixed = [
        Table({name: column[order] for name, column in table.columns.items()})
        for table in (train, val)
        for order in [rng.permutation(len(table))]
    ]
    plain = [(f.kind, f.text) for f in facts(train, val)]
    assert [(f.kind, f.text) for f in facts(*mixed)] == plain


def test_halves_of_one_table_give_few_facts():
    """At a level of 0.01 for ranges and units, 60 pairs of halves give about one."""
    found = [facts(*tables(n=100, m=100, seed=seed, digits=1)) for seed in range(60)]
    assert sum(map(bool, found)) <= 4
