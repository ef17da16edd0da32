"""Tables as people have them, good and bad."""

import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from giw.tables import Encoder, Table, read_table, read_within, sample_file

FRAME = pd.DataFrame(
    {
        "age": [31, 45, 27],
        "income": [1.5, np.nan, 2.5],
        "town": ["Rome", None, "Oslo"],
        "member": [True, False, True],
        "since": pd.to_datetime(["1970-01-02", "1970-01-01T12:00", None], format="ISO8601"),
        "y": ["no", "yes", "no"],
    }
)


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


@pytest.mark.parametrize("name", ["t.csv", "semicolons.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_every_kind_of_file_holds_the_same_table(tmp_path, name):
    if name == "t.parquet":
        FRAME.to_parquet(tmp_path / name)
    else:
        separator = {"semicolons.csv": ";", "t.tsv": "\t"}.get(name, ",")
        FRAME.to_csv(tmp_path / name, index=False, sep=separator)
    table = read_table(tmp_path / name)

    assert_array_equal(table.columns["age"], [31.0, 45.0, 27.0])
    assert_array_equal(table.columns["income"], [1.5, np.nan, 2.5])
    assert list(table.columns["town"]) == ["Rome", None, "Oslo"]
    assert_array_equal(table.columns["member"], [1.0, 0.0, 1.0])
    assert_array_equal(table.columns["since"], [1.0, 0.5, np.nan])  # days since 1970
    assert list(table.labels("y")) == ["no", "yes", "no"]
    assert table.names == list(FRAME)


def test_a_nameless_column_that_counts_rows_is_left_out_and_said_so(tmp_path):
    """It would make every validation row look new."""
    FRAME.to_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv")

    assert "Unnamed: 0" not in table.names
    assert "counts the rows" in table.notes[0]


def test_arrays_of_an_npz_file_become_columns(tmp_path):
    np.savez(tmp_path / "t.npz", X=[[1, 2], [3, 4]], town=["a", "b"], y=[0, 1])
    table = read_table(tmp_path / "t.npz")

    assert table.names == ["X[0]", "X[1]", "town", "y"]
    assert_array_equal(table.columns["X[1]"], [2.0, 4.0])
    assert table.labels("y").dtype == np.int64
    assert table.without("y").names == ["X[0]", "X[1]", "town"]


def test_labels_are_whole_numbers_text_or_numbers():
    table = Table({"a": np.array([1.0, 2.0]), "b": np.array([0.5, 1.0]), "c": _text("u", "v")})

    assert table.labels("a").dtype == np.int64
    assert table.labels("b").dtype == np.float64
    assert table.labels("c").dtype.kind == "U"


def test_a_missing_label_column_suggests_the_likely_one():
    table = Table({"Label": np.zeros(1), "age": np.zeros(1)}, source="t.csv")

    with pytest.raises(ValueError, match=r"t.csv has no column 'labl'; did you mean 'Label'\?"):
        table.labels("labl")
    with pytest.raises(ValueError, match=r"no column 'target'; it has 'Label', 'age'$"):
        table.labels("target")


def test_rows_of_files_are_counted_as_in_a_spreadsheet(tmp_path):
    """Names are in row 1."""
    path = write(tmp_path / "t.csv", "x,y\n1,a\n2,\n1e999,b\n")
    table = read_table(path)
    with pytest.raises(ValueError, match=r"no label in column 'y' \(the first in row 3\)"):
        table.labels("y")
    with pytest.raises(ValueError, match=r"infinite numbers \(the first in row 4\)"):
        Encoder().fit(table)
    sample = sample_file(path, 3)
    assert [sample.row_number(j) for j in range(3)] == [2, 3, 4]
    with pytest.raises(ValueError, match=r"no label in column 'y' \(the first in row 3\)"):
        sample_file(path, 3, label="y")


def test_rows_without_a_label_are_refused():
    table = Table({"y": _text("a", None, None)}, source="t.csv")
    with pytest.raises(ValueError, match=r"2 of 3 rows have no label in column 'y'.*row 1"):
        table.labels("y")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "\n\n", "is empty"),
        ("t.csv", "a,b\n", "holds no rows"),
        ("t.csv", "a,b,a\n1,2,3\n", "two columns called 'a'; rename one"),
        ("t.csv", "1.5,2.5\n3.5,4.5\n", "the first line must name the columns"),
        ("t.csv", 'a,b\n1,2\n"3,4\n5,6', "not a regular csv file"),
        ("t.csv", "a,b\n1,2\n3,4,5,6\n", "not a regular csv file.*Row #3"),
        ("t.csv", "a,b\n1,2\n1\n", "not a regular csv file"),
        ("t.xlsx", "a", "name must end in one of"),
        ("t.parquet", "PAR1 and nothing more", "not a whole parquet file"),
        ("t.npz", "PK\x03\x04 and nothing more", "not a whole npz file"),
    ],
)
def test_bad_files_are_refused_in_one_line_that_names_them(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    for read in (read_table, lambda path: read_within(path, 0.0)):
        with pytest.raises(ValueError, match=message) as caught:
            read(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_text_in_another_encoding_is_named(tmp_path):
    path = write(tmp_path / "t.csv", "town\nZürich\n", encoding="latin-1")
    with pytest.raises(ValueError, match="UTF-8"):
        read_table(path)


def test_a_path_that_is_not_there_or_a_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.csv does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize("keep", [0.2, 0.6, 0.98])
@pytest.mark.parametrize("kind", ["parquet", "npz", "csv.gz"])
def test_a_truncated_file_is_refused(tmp_path, kind, keep):
    path = tmp_path / f"t.{kind}"
    values = np.random.default_rng(0).normal(size=2000)
    if kind == "npz":
        np.savez_compressed(path, x=values, y=values)
    else:
        frame = pd.DataFrame({"x": values, "y": values})
        frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    what = {"parquet": "whole parquet", "npz": "whole npz", "csv.gz": "regular csv"}[kind]
    for read in (read_table, lambda path: read_within(path, 0.0)):
        with pytest.raises(ValueError, match=f"{path.name} is not a {what} file"):
            read(path)


class Bomb:
    def __reduce__(self):
        return (open, ("exploded", "w"))


def test_pickled_objects_in_an_npz_file_are_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bomb = np.empty(2, dtype=object)
    bomb[:] = [Bomb(), Bomb()]
    np.savez("t.npz", x=bomb)
    with pytest.raises(ValueError, match="array 'x' holds pickled objects"):
        read_table("t.npz")
    (tmp_path / "bare.npz").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="pickled"):
        read_table("bare.npz")

    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((3, 2)), "y": np.zeros(2)}, "same number of rows"),
        ({"X": np.zeros((3, 2)), "y": 1.0}, "same number of rows"),
        ({}, "holds no rows"),
        ({"X": np.zeros((3, 0))}, "holds no rows"),
        ({"X": np.zeros((3, 2, 2))}, "two dimensions"),
        ({"X": np.zeros((3, 2), dtype=complex)}, "complex128"),
    ],
)
def test_arrays_that_are_no_table_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.npz")


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_an_npz_file_are_read_in_the_order_that_they_were_kept_in(tmp_path, order):
    np.savez_compressed(tmp_path / "t.npz", X=np.array([[1.0, 2], [3, 4], [5, 6]], order=order))
    assert read_table(tmp_path / "t.npz").columns["X[1]"].tolist() == [2, 4, 6]


def test_an_array_that_claims_more_than_its_bytes_is_refused_before_memory_is_asked_for(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % 2**57
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as file:
        file.writestr("x.npy", content)
    with pytest.raises(ValueError, match="not a whole npz file: array 'x' claims shape"):
        read_table(tmp_path / "t.npz")


def test_a_member_of_an_npz_file_that_is_no_array_is_refused(tmp_path):
    np.savez(tmp_path / "inner.npz", x=[1])
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as file:
        file.write(tmp_path / "inner.npz", "inner.npz")
    with pytest.raises(ValueError, match="not a whole npz file"):
        read_table(tmp_path / "t.npz")


def test_many_names_are_cut_short():
    table = Table({f"column {j}": np.zeros(1) for j in range(20)})
    with pytest.raises(ValueError, match=r"'column 7' and 12 more$"):
        table.labels("zzz")


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_survive_every_format(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("t")
    frame = pd.DataFrame({"x": np.array(values), "k": 1})
    frame.to_parquet(folder / "t.parquet")
    np.savez(folder / "t.npz", x=np.array(values))
    for name in ("t.parquet", "t.npz"):
        assert_array_equal(read_table(folder / name).columns["x"], values)


def _text(*values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
