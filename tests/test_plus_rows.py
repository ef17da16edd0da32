"""Rows of GIW+ on tables survive a run that is cut off, and names of runs can be read back."""

import importlib.util
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from giw.paper.plan import RESAMPLED, Run

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ROWS = [{"task": "wine", "shift": "none", "seed": s, "method": "giw", "accuracy": 0.5}
        for s in (1, 2)]  # fmt: skip


@pytest.fixture
def plus(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("plus", BENCHMARKS / "plus.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "plus", module)
    spec.loader.exec_module(module)
    return module


def test_rows_are_appended_below_one_head_and_a_torn_line_is_dropped(plus, tmp_path):
    path = tmp_path / "rows.csv"
    assert plus.stored_rows(path) == []
    plus.append_rows(path, ROWS[:1])
    with path.open("a") as file:
        file.write("wine,none,9")  # killed in the middle of a line
    assert [row["seed"] for row in plus.stored_rows(path)] == ["1"]
    plus.append_rows(path, ROWS[1:])
    assert [row["seed"] for row in plus.stored_rows(path)] == ["1", "2"]
    assert path.read_text().count("accuracy") == 1


@pytest.mark.parametrize("method", ["giw", "giw_plus"])
def test_rows_of_one_method_are_counted_and_compared_with_nothing(plus, capsys, method):
    plus.report_tables([{**row, "method": method} for row in ROWS])
    assert capsys.readouterr().out == f"2 rows of {method}: nothing to compare giw_plus with\n"


def test_what_a_file_has_is_not_done_again(plus, tmp_path, monkeypatch):
    path, asked = tmp_path / "rows.csv", []

    class Now:
        def __init__(self, jobs):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def submit(self, fit, *item):
            asked.append(item)
            rows = [dict(zip(("task", "shift", "seed"), item, strict=False), method=m, accuracy=0.5)
                    for m in item[3]]  # fmt: skip
            return Namespace(result=lambda: rows)

    monkeypatch.setattr(plus, "ProcessPoolExecutor", Now)
    monkeypatch.setattr(plus, "as_completed", iter)
    options = Namespace(from_csv=None, first_seed=1, repeats=2, task=["wine"], csv=path, jobs=1,
                        shift=["none", "support"], method=["giw", "giw_plus"])  # fmt: skip
    plus.append_rows(path, ROWS)
    plus.tables(options)
    assert ("wine", "none", 1, ("giw_plus",)) in asked
    assert ("wine", "support", 1, ("giw", "giw_plus")) in asked
    assert {shift for _, shift, *_ in asked} == {"none", "support"}  # and no other
    asked.clear()
    plus.tables(options)
    assert asked == []


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (Run("mnist", "iii", "support", "giw", 0), "giw"),
        (Run("mnist", "iii", "support", "giw", 0, RESAMPLED), "giw:published"),
        (Run("mnist", "iii", "support", "giw", 0, RESAMPLED, "soft"), "giw:published_soft"),
        (Run("mnist", "iii", "support", "giw_plus", 0, variant="plus_hard"), "giw_plus:plus_hard"),
    ],
)
def test_names_of_runs(plus, run, name):
    assert plus._name(run) == name
