"""A csv file has the columns that pandas finds in it, whole and in pieces."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from giw.tables import read_table, read_within, sample_file, table_from_frame

CELLS = ("1", "0", "-2.5", "+7", "07", "1e3", "", "NA", "True", "false", "a", "2020-01-31")
CELLS += ("2020-02-30", '"x,y"', " 3", "inf", "2020-01-31T10:00:00", '"two\nlines"')


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def assert_same(sample, whole):
    assert list(sample.columns) == whole.names
    for name, column in whole.columns.items():
        assert sample.columns[name].dtype == column.dtype, name
        np.testing.assert_array_equal(sample.columns[name], column)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7).flatmap(lambda n: st.lists(rows_of(n), min_size=1, max_size=3)))
@example([["1", "1", "True", "True"]])  # pandas: words, as they are written
@example([["07", "8", "", "", "x"]])
@example([["", "", "", "True", "False", "NA"]])
@example([["2020-01-31", "2020-01-31", "2020-02-30"]])
def test_columns_are_those_of_the_file_in_one_piece(folder, columns):
    rows = [f"{j},{','.join(row)}" for j, row in enumerate(zip(*columns, strict=True))]
    names = ",".join(["row", *(f"c{j}" for j in range(len(columns)))])
    path = write(folder / "t.csv", names, *rows)

    whole = read_table(path)

    assert_same(table_from_frame(pd.read_csv(path, low_memory=False)), whole)
    assert_same(sample_file(path, 100, block_bytes=100), whole)


def rows_of(n):
    """A column of n cells, of few kinds, so that many columns are of one type."""
    kinds = st.lists(st.sampled_from(CELLS), min_size=1, max_size=3)
    return kinds.flatmap(lambda some: st.lists(st.sampled_from(some), min_size=n, max_size=n))


@pytest.mark.parametrize("start", [0, 5])
def test_a_first_column_that_counts_the_rows_is_left_out(tmp_path, start):
    path = write(tmp_path / "t.csv", ",x", *(f"{start + j},{j % 3}" for j in range(7)))
    assert_same(sample_file(path, 100), read_table(path))
    assert list(sample_file(path, 2).columns) == ["x"]
    path = write(path, ",x", "0,1", "1,1", "2,1", "4,1")
    assert list(sample_file(path, 2).columns) == ["Unnamed: 0", "x"]


def test_dates_beside_a_word_that_was_not_drawn_stay_text(tmp_path):
    days = [f"2020-01-{j + 1:02}" for j in range(30)]
    path = write(tmp_path / "t.csv", "day,x", *(f"{day},1" for day in [*days, "later"]))

    sample = sample_file(path, 3, random_state=1, most_levels=5)  # a name: none joins

    assert "later" not in sample.columns["day"]
    assert set(sample.columns["day"]) < set(days)
    path = write(path, "day,x", *(f"{day},1" for day in days))
    assert set(sample_file(path, 3).columns["day"]) < set(range(18_262, 18_292))


def test_short_numbers_take_more_room_in_memory_than_on_the_disk(tmp_path):
    """2 bytes a cell in the file, 8 in the table, and six copies of that."""
    path = write(tmp_path / "t.csv", "a,b,c", *["1,2,3"] * 1_000)
    room = 6 * 8 * 3 * 1_000
    assert read_within(path, 0.98 * room).total == 1_000
    assert read_within(path, 1.02 * room).rows is None


def test_of_a_small_file_that_unpacks_to_much_a_sample_is_read(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"x\n" + b"0\n" * 2**20)

    assert path.stat().st_size < 1e5
    sample = read_within(path, 1e6, label="x")
    assert sample.total == 2**20
    assert sample.label_counts == {0: 2**20}


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n1,x\r\n")
    assert read_table(path).names == ["a", "b"]
