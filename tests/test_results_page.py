"""The page about results says what the stored results say."""

import importlib.util
import re
from pathlib import Path

import pytest

from giw.paper.report import paper_sheets
from giw.paper.rows import read_folder

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
SPEC = importlib.util.spec_from_file_location("page", ROOT / "benchmarks" / "results_page.py")


@pytest.fixture(scope="module")
def stored():
    return read_folder(ROOT / "results")


@pytest.fixture(scope="module")
def sheets(stored):
    return paper_sheets(stored[0])


def test_no_stored_result_is_damaged(stored):
    assert stored[1] == []


def test_tables_of_the_page_are_those_of_the_results(sheets):
    script = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(script)
    assert script.refreshed(PAGE, sheets) == PAGE
    assert PAGE.count("<!-- table ") >= 1


def test_every_cell_of_every_table_is_the_golden_one(sheets):
    """Made with version 0.1.0; new runs replace it by what ``cells_of`` gives."""
    golden = (ROOT / "tests" / "golden" / "made" / "paper_tables.txt").read_text(encoding="utf-8")
    assert cells_of(sheets) == golden


def cells_of(sheets):
    lines = []
    for sheet in sheets:
        lines += [f"# {sheet.name}: {sheet.title}", " | ".join(sheet.head)]
        for group in sheet.groups:
            lines += [f"-- {group.label}"] if group.label else []
            for row in group.rows:
                lines.append(" | ".join(map(marked, row)))
    return "\n".join(lines) + "\n"


def test_the_page_is_short_and_stored_rows_are_small():
    assert len(PAGE.split()) <= 2_500
    packs = [path for path in (ROOT / "results").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in packs) < 4e6
    assert {path.suffix for path in packs} <= {".jsonl", ".csv"}


def marked(entry):
    return f"*{entry.text}*" if entry.bold else f"[{entry.text}]" if entry.missing else entry.text


def test_pictures_and_links_of_the_page_are_there():
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert len(links) > 3
    for link in links:
        name, _, anchor = link.partition("#")
        target = ROOT / "docs" / (name or "results.md")
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page):
    """Of the headings of a page, as the pages of the documentation name them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [re.sub(r"[^a-z0-9 _-]", "", head.lower()).strip().replace(" ", "-") for head in heads]
