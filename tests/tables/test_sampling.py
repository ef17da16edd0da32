import numpy as np
import pandas as pd
import pytest

from giw.tables import read_within, sample_file

N = 5_000


@pytest.fixture(scope="module", params=["parquet", "csv", "tsv.gz"])
def path(tmp_path_factory, request):
    """Row numbers, a category that occurs once, a gap that occurs once, and a rare class."""
    town = np.full(N, "Rome", dtype=object)
    town[1::2], town[4_321] = "Oslo", "Lima"
    income = np.linspace(0, 1, N)
    income[3_210] = np.nan
    y = np.where(np.arange(N) % 4 == 0, "yes", "no").astype(object)
    y[2_345] = "perhaps"
    file = tmp_path_factory.mktemp("tables") / f"large.{request.param}"
    frame = pd.DataFrame({"i": np.arange(N), "town": town, "income": income, "y": y})
    if request.param == "parquet":
        frame.to_parquet(file, row_group_size=1_200)
    else:
        frame.to_csv(file, index=False, sep="," if request.param == "csv" else "\t")
    return file


def sample_of(path, most, **how):
    return sample_file(path, most, block_bytes=20_000, **how)  # so many that there are several


def test_a_sample_has_its_rows_in_place_every_rare_value_and_exact_counts(path):
    sample = sample_of(path, 100, label="y")

    assert (sample.total, sample.label_counts) == (N, {"yes": 1_250, "no": 3_749, "perhaps": 1})
    assert np.array_equal(sample.columns["i"], sample.rows)
    assert np.all(np.diff(sample.rows) > 0)
    assert {2_345, 3_210, 4_321} <= set(sample.rows)
    assert len(sample.rows) == 100 + 3 - np.isin([2_345, 3_210, 4_321], first_draw()).sum()
    assert set(sample.labels("y")) == {"yes", "no", "perhaps"}
    assert "y" not in sample.without("y").columns


def first_draw():
    return np.random.default_rng(0).choice(N, size=100, replace=False, shuffle=False)


@pytest.mark.parametrize("path", ["parquet"], indirect=True)  # rows are drawn before any are read
def test_every_row_has_the_same_chance(path):
    """Mean row of 40 draws of 200 rows, within five standard errors; another seed, other rows."""
    means = [sample_of(path, 200, random_state=s).rows.mean() for s in range(40)]
    error = N / np.sqrt(12 * 200 * 40)
    assert abs(np.mean(means) - N / 2) < 5 * error
    assert len(set(means)) == 40


def test_a_table_is_read_whole_where_it_fits(path):
    assert read_within(path, 1e9).rows is None
    assert read_within(path, 1e3).rows is not None


def test_all_rows_are_the_sample_where_that_many_are_asked_for(path):
    sample = sample_of(path, 10 * N, label="none such")
    assert np.array_equal(sample.rows, np.arange(N))
    assert sample.label_counts is None


@pytest.mark.parametrize(
    ("label", "most", "words"),
    [("income", N, "no label in column 'income'"), ("i", N - 1, "a number and not a class")],
)
def test_what_is_no_label_is_refused(path, label, most, words):
    with pytest.raises(ValueError, match=words):
        sample_of(path, 10, label=label, most_levels=most)


def test_more_rare_values_than_rows_may_join_is_told(path):
    sample = sample_of(path, 10, label="y", most_added=1)
    assert any("rare values are not in the sample" in note for note in sample.notes)


def test_the_sample_does_not_depend_on_the_kind_of_file(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=3_000), "word": rng.choice(["a", "b"], 3_000)})
    frame.loc[[7, 2_900], "word"] = [None, "c"]
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)

    first, second = (
        sample_of(tmp_path / name, 50, label="x2", random_state=3)
        for name in ("t.parquet", "t.csv")
    )

    assert np.array_equal(first.rows, second.rows)
    for name in frame:
        assert first.columns[name].tolist() == second.columns[name].tolist()


def test_a_damaged_page_is_told_in_one_line_that_names_the_file(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": np.arange(1_000.0)}).to_parquet(path, compression=None)
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36  # the header of the first page
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.parquet is not a whole parquet file: ") as told:
        sample_file(path, 10)
    assert "\n" not in str(told.value)
