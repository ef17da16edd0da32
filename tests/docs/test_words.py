"""Pages are short, and use the words of the glossary."""

import re

import pytest
from tests.docs.pages import ROOT
from tools.prose import complaints, files, words_of

# a page may be as long as it is now, or as was wanted, whichever is less by more
MOST = {
    "README.md": 900, "docs/index.md": 400, "docs/estimators.md": 1_200,
    "docs/diagnosing.md": 1_000, "docs/judging.md": 800, "docs/loops.md": 200,
    "docs/commands.md": 1_000, "docs/saving.md": 1_000,
    "docs/how_it_works.md": 900, "docs/theory.md": 1_300, "docs/weights.md": 1_200,
    "docs/giw_plus.md": 960, "docs/reproduce.md": 1_200, "docs/results.md": 2_500,
    "docs/reliability.md": 600,
    "docs/glossary.md": 500, "docs/faq.md": 500, "docs/from_0.1.md": 300,
}  # fmt: skip


def words(name):
    """Words of a page, with its programs, without the bars of tables."""
    return sum(bool(re.search(r"\w", word)) for word in (ROOT / name).read_text().split())


@pytest.mark.parametrize("name", MOST)
def test_a_page_is_short(name):
    assert words(name) <= MOST[name]


def test_all_pages_together_are_short():
    """Without the list of objects and the gallery, which are made by programs."""
    names = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert sum(words(f"docs/{name}") for name in names if name != "api.md") <= 18_000


def test_no_page_or_program_uses_a_word_of_its_own():
    """Else: python tools/prose.py."""
    assert [line for path in files() for line in complaints(path)] == []


def test_prose_is_comments_and_strings_that_have_a_space(tmp_path):
    program = tmp_path / "a.py"
    program.write_text('"""The world."""\nvicinity = 1  # a stranger\nseed = "vicinity"\n')
    found = [line.split("; ")[0] for line in complaints(program)]
    assert found == [f"{program}:1: 'The world'", f"{program}:2: 'stranger'"]
    assert len(list(words_of(program))) == 2
