"""The page on the theory names the test of each statement; the names must be real."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "theory.md"


def test_every_test_that_the_theory_page_names_exists():
    written = {
        name
        for file in HERE.glob("test_*.py")
        for name in [file.name, *re.findall(r"^def (test_\w+)", file.read_text(), re.M)]
    }
    named = set(re.findall(r"`(test_\w+(?:\.py)?)`", PAGE.read_text()))

    assert len(named) > 10
    assert named <= written
