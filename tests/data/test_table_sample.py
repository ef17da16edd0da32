import numpy as np
import pytest

from giw.data import Table, TableSample, read_within, sample_parquet
from giw.data import table_sample as module

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
N = 5_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Row numbers, a category that occurs once, a gap that occurs once, and a rare class."""
    town = np.full(N, "Rome", dtype=object)
    town[1::2], town[4_321] = "Oslo", "Lima"
    income = np.linspace(0, 1, N)
    income[3_210] = np.nan
    y = np.where(np.arange(N) % 4 == 0, "yes", "no").astype(object)
    y[2_345] = "perhaps"
    file = tmp_path_factory.mktemp("tables") / "large.parquet"
    frame = pd.DataFrame({"i": np.arange(N), "town": town, "income": income, "y": y})
    frame.to_parquet(file, row_group_size=1_200)
    return file


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 700)


def test_a_sample_has_its_rows_in_place_every_rare_value_and_exact_counts(path):
    sample = sample_parquet(path, 100, label="y")

    assert (sample.total, sample.label_counts) == (N, {"yes": 1_250, "no": 3_749, "perhaps": 1})
    assert np.array_equal(sample.columns["i"], sample.rows)
    assert np.all(np.diff(sample.rows) > 0)
    assert {2_345, 3_210, 4_321} <= set(sample.rows)
    assert len(sample.rows) == 100 + 3 - np.isin([2_345, 3_210, 4_321], first_draw()).sum()
    assert set(sample.labels("y")) == {"yes", "no", "perhaps"}
    assert "y" not in sample.without("y").columns


def first_draw():
    return np.random.default_rng(0).choice(N, size=100, replace=False, shuffle=False)


def test_every_row_has_the_same_chance(path):
    """Mean row of 40 draws of 200 rows, within five standard errors; another seed, other rows."""
    means = [sample_parquet(path, 200, random_state=s).rows.mean() for s in range(40)]
    error = N / np.sqrt(12 * 200 * 40)
    assert abs(np.mean(means) - N / 2) < 5 * error
    assert len(set(means)) == 40


def test_a_table_is_read_whole_where_it_fits(path):
    assert isinstance(read_within(path, 1e9), Table)
    assert isinstance(read_within(path, 1e3), TableSample)


def test_all_rows_are_the_sample_where_that_many_are_asked_for(path):
    sample = sample_parquet(path, 10 * N, label="none such")
    assert np.array_equal(sample.rows, np.arange(N))
    assert sample.label_counts is None


@pytest.mark.parametrize(
    ("label", "words"), [("income", "no label in column 'income'"), ("i", "a number and not a cl")]
)
def test_what_is_no_label_is_refused(path, label, words, monkeypatch):
    monkeypatch.setattr(module, "MOST_KINDS", 1_000)
    with pytest.raises(ValueError, match=words):
        sample_parquet(path, 10, label=label)


def test_more_rare_values_than_rows_may_join_is_told(path, monkeypatch):
    monkeypatch.setattr(module, "MOST_ADDED", 1)
    sample = sample_parquet(path, 10, label="y")
    assert any("rare values are not in the sample" in note for note in sample.table.notes)


def test_half_a_file_is_named(path, tmp_path):
    half = tmp_path / "half.parquet"
    half.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match="is not a whole parquet file"):
        read_within(half, 1e3)
