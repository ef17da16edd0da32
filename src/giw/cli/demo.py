"""``giw demo``: real tables and handwritten digits, giw beside its simple rivals."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from giw.cli.common import AsJson, Quiet, Seed, Told, check_writable, option, stderr

OUT = "Folder for report.html, the figures and the table."
TRIALS = "How often to draw validation data and train anew."


def demo(
    out: Annotated[Path, option("--out", "-o", help=OUT)] = Path("giw-demo"),
    trials: Annotated[int, option("--trials", help=TRIALS, min=1)] = 5,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Told:
    """Compare giw with its simple rivals on two real tables and on handwritten digits.

    Tables: flights of another season, and an airline that training never had; boosted trees in
    every simple way and by the stack.

    Digits: training data hold the digits 0 to 3; test data have all ten. The task is odd against
    even. Twenty validation images, two of each digit, are drawn anew in every trial and are never
    training images. Six methods learn from the same draws and the same initial net: giw, giw_plus,
    diw, pooled, pretrain_val and val_only; the report says what each does.

    It takes about two minutes. The flights come with giw and the digits with scikit-learn;
    nothing is downloaded.

    Example:

        giw demo --trials 3 -o demo/

    Exit code 0 when the report is written, 2 for a mistake in the command.
    """
    check_writable(out / "report.html", "--out", ".html")
    started = time.perf_counter()
    from giw.cli import demo_page
    from giw.pages.figures import save
    from giw.pages.page import write_page
    from giw.pages.tables import markdown_sheet, text_sheet
    from giw.writing import write_whole

    console = stderr(quiet or as_json)
    tables = demo_page.compare_tables(trials, seed, console)
    digits = demo_page.compare_digits(trials, seed, console)
    seconds = time.perf_counter() - started
    command = f"giw demo --trials {trials} --seed {seed}"
    page = demo_page.demo_page(tables, digits, command=command, seconds=seconds)
    for picture in (picture for section in page.sections for picture in section.pictures):
        save(picture.figure, out / picture.name)
    sheets = [sheet for section in page.sections for sheet in section.sheets]
    write_whole(out / "table.md", "\n".join(map(markdown_sheet, sheets)))
    path = write_page(page, out / "report.html")
    place = f"{seconds:.0f} s. Figures, table and page are in {out}/; open {path}"
    words = "\n".join([*map(text_sheet, sheets), page.answer, page.sections[1].text[0], place])
    values = {"page": str(path), "seconds": round(seconds, 1)}
    return Told({**values, "accuracy": digits.accuracy, "tables": tables}, words, brief=words)
