"""Rows of the benchmark on real tables survive a run that is cut off."""

import importlib.util
import sys
from dataclasses import make_dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("practice", ROOT / "benchmarks" / "practice.py")
practice = importlib.util.module_from_spec(SPEC)
sys.modules["practice"] = practice  # dataclasses look their module up
SPEC.loader.exec_module(practice)

Row = make_dataclass("Row", ["base", "task", "shift", "seed", "value"])
WORK = [("hgb", "wine", shift, seed) for seed in (1, 2) for shift in ("none", "support")]


@pytest.fixture(autouse=True)
def _threads_as_they_are(monkeypatch):
    """The benchmark takes one thread for the whole process, which is also the other tests'."""
    monkeypatch.setattr(practice, "one_thread", lambda: None)


def measured(done):
    def measure(*item):
        done.append(item)
        if len(done) > 3:
            raise KeyboardInterrupt
        return Row(*item, value=item[-1] / 3)

    return measure


def test_a_second_call_goes_on_where_the_first_was_cut_off(tmp_path):
    path, first, second = tmp_path / "rows.csv", [], []
    with pytest.raises(KeyboardInterrupt):
        practice.each(measured(first), WORK, 1, path)
    with path.open("a") as file:
        file.write("hgb,wine,supp")  # killed while writing
    rows = practice.each(measured(second), WORK, 1, path)
    assert second == WORK[3:]
    assert [(r["base"], r["task"], r["shift"], int(r["seed"])) for r in rows] == WORK
    assert path.read_text().splitlines() == [
        "base,task,shift,seed,value",
        *[f"{a},{b},{c},{seed},{round(seed / 3, 5)}" for a, b, c, seed in WORK],
    ]


def test_rows_of_other_cells_stay_in_the_file_and_out_of_the_answer(tmp_path):
    path = tmp_path / "rows.csv"
    practice.each(measured([]), WORK[:2], 1, path)
    rows = practice.each(measured([]), WORK[1:3], 1, path)
    assert [row["shift"] for row in rows] == ["support", "none"]
    assert len(path.read_text().splitlines()) == 4


def test_a_file_with_other_columns_is_not_written_to(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("base,task,shift,seed,other\n")
    with pytest.raises(SystemExit, match="has other columns"):
        practice.each(measured([]), WORK[:1], 1, path)
