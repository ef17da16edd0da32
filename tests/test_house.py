"""The house does not grow: limits are what was reached and a little room, and only ever fall."""

import subprocess
import sys
from pathlib import Path

import pytest
from tools.house import count, figures, files_walked, loaded_by, too_large, walked_by_a_fit

import giw

ROOT = Path(__file__).parents[1]
MOST = {
    "lines": 21_500,
    "code": 12_250,
    "numbers": 60,
    "inner_numbers": 245,
    "weights": 1_475,
    "tables": 1_161,
    "root": 585,
    "cli": 1_731,
    "support": 890,
    "estimators": 2_610,
    "judging": 754,
    "diagnosis": 2_687,
    "pages": 752,
    "paper": 3_400,
    "nets": 4_607,
    "objective": 843,
}


def test_the_figures_of_a_file_by_hand(tmp_path):
    text = '''"""A docstring
of two lines."""

import os
from math import (
    pi,
)

A = 1  # a plain number
B = -2.5
C, D = (3, 4), {"x": 5}
E = "6"


class F:
    """Words."""

    g: int = 7

    def h(self, i=8):
        """Words."""
        # a comment
        return 9
'''
    (tmp_path / "file.py").write_text(text)
    found = count(tmp_path / "file.py")
    assert found.lines == 23
    assert found.code == 8  # four assignments, class, g, def, return
    assert (found.numbers, found.inner_numbers) == (2, 4)  # 1 and −2.5; 3, 4, 5 and 7


def test_the_house_has_not_grown():
    assert too_large(figures(), MOST) == []


def test_a_figure_above_its_limit_is_told():
    assert too_large({"lines": 3}, {"lines": 2, "gone": 0}) == ["lines: 3 and at most 2 wanted"]


@pytest.mark.parametrize(
    ("code", "never"),
    [
        ("import giw", {"torch", "sklearn", "pandas", "matplotlib", "giw.paper"}),
        ("import giw; giw.kmm", {"matplotlib", "giw.paper"}),
        ("import giw; giw.ReweightedClassifier", {"matplotlib", "giw.paper"}),
    ],
)
def test_an_import_loads_no_more_than_it_needs(code, never):
    assert never & set(loaded_by(code)["loads"]) == set()


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (giw.GIWClassifier(max_epochs=1, pretrain_epochs=1, random_state=0), 18),
        (giw.ReweightedClassifier(random_state=0), 12),
    ],
    ids=["net", "table"],
)
def test_a_fit_walks_through_few_files(model, most):
    assert len(walked_by_a_fit(model)) <= most


def test_a_walk_is_that_of_a_call():
    x = [[0.0], [1.0], [2.0]]
    walked = files_walked(lambda: giw.kmm(x, x))
    assert "weights/kmm.py" in walked
    assert "support/splitter.py" not in walked


def test_without_the_dependencies_lines_are_counted_and_one_line_says_what_is_missing():
    command = [sys.executable, "-I", "-S", str(ROOT / "tools" / "house.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{figures()['lines']:,}  lines" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("imports and fits are not measured: ")
    assert done.stderr == ""
