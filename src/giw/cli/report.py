"""``giw report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    results: Annotated[Path, typer.Argument(help="Folder that giw bench has filled.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the report.", show_default="RESULTS/report"),
    ] = None,
) -> None:
    """Draw tables and figures from stored results: no GPU, no data set, no training.

    Writes report.html, which holds everything; tables.txt, tables.md and tables.tex; and the
    figures as SVG and PNG. Means are over trials with the same epochs, seed and protocol, never
    across them. Cells that were not run are shown as missing, and damaged files are named.

    The same results give the same bytes.
    """
    from giw.report.bench_page import report_folder

    try:
        made = report_folder(results)
        page = made.write(results / "report" if out is None else out)
    except (ValueError, OSError) as error:
        typer.echo(f"giw report: {error}", err=True)
        raise typer.Exit(2) from None
    for line in made.damaged:
        typer.echo(f"not used: {line}", err=True)
    for line in made.remarks:
        typer.echo(f"note: {line}", err=True)
    typer.echo(made.page.answer)
    typer.echo(
        f"{made.n_results} results, {len(made.sheets)} tables, {len(made.pictures)} figures; "
        f"open {page}"
    )
