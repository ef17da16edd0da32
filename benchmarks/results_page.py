"""Copy tables of the stored results into docs/results.md, between the marks that name them.

    python benchmarks/results_page.py            write the page anew
    python benchmarks/results_page.py --names    print the names of all tables

A mark is a line ``<!-- table NAME -->``; everything up to ``<!-- end -->`` is replaced.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from giw.pages.tables import Sheet, markdown_sheet
from giw.paper.report import paper_sheets
from giw.paper.rows import read_folder

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "results.md", ROOT / "results"
MARKED = re.compile(r"<!-- table (\S+) -->\n.*?<!-- end -->", flags=re.DOTALL)


def refreshed(page: str, sheets: Sequence[Sheet]) -> str:
    """The page with every marked table as the results have it now."""
    by_name = {sheet.name: sheet for sheet in sheets}

    def table(mark: re.Match[str]) -> str:
        name = mark[1]
        if name not in by_name:
            raise ValueError(f"no table {name!r} among the results, which have {sorted(by_name)}")
        return f"<!-- table {name} -->\n\n{markdown_sheet(by_name[name], level=4)}\n<!-- end -->"

    return MARKED.sub(table, page)


def main() -> None:
    """Refresh the page, or print the names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--names", action="store_true")
    options = parser.parse_args()
    sheets = paper_sheets(read_folder(RESULTS)[0])
    if options.names:
        print("\n".join(sheet.name for sheet in sheets))
        return
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), sheets), encoding="utf-8")


if __name__ == "__main__":
    main()
