"""The page about results says what the stored results say."""

import importlib.util
import re
from pathlib import Path

import pytest

from giw.pages.sheet import markdown_sheet
from giw.paper.report.bench_page import bench_sheets, read_folder

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
SPEC = importlib.util.spec_from_file_location("page", ROOT / "benchmarks" / "results_page.py")


@pytest.fixture(scope="module")
def stored():
    return read_folder(ROOT / "results")


@pytest.fixture(scope="module")
def sheets(stored):
    return bench_sheets(stored[0])


def test_no_stored_result_is_damaged(stored):
    assert stored[1] == []


def test_tables_of_the_page_are_those_of_the_results(sheets):
    script = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(script)
    assert script.refreshed(PAGE, sheets) == PAGE
    assert PAGE.count("<!-- table ") >= 4


def test_kept_tables_are_those_of_the_results(sheets):
    kept = (ROOT / "results" / "report" / "tables.md").read_text(encoding="utf-8")
    assert kept == "\n".join(markdown_sheet(sheet) for sheet in sheets)


def test_pictures_and_links_of_the_page_are_there():
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert len(links) > 5
    for link in links:
        name, _, anchor = link.partition("#")
        target = ROOT / "docs" / (name or "results.md")
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page):
    """Of the headings of a page, as the pages of the documentation name them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [re.sub(r"[^a-z0-9 _-]", "", head.lower()).strip().replace(" ", "-") for head in heads]
