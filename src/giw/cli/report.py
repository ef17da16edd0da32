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
    tables: Annotated[
        bool, typer.Option("--tables", "-t", help="Print all tables and write nothing.")
    ] = False,
    pack: Annotated[
        Path | None,
        typer.Option(help="Copy the results to this folder instead, one small file per setting."),
    ] = None,
) -> None:
    """Draw tables and figures from stored results: no GPU, no data set, no training.

    Writes report.html, which holds everything; tables.txt, tables.md and tables.tex; and the
    figures as SVG and PNG. Means are over trials with the same epochs, seed and protocol, never
    across them. Cells that were not run are shown as missing, and damaged files are named.

    The same results give the same bytes.
    """
    try:
        if pack is not None:
            _pack(results, pack)
            return
        if tables:
            _print_tables(results)
            return
        from giw.paper.report.bench_page import report_folder

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


def _print_tables(results: Path) -> None:
    from giw.pages.sheet import text_sheet
    from giw.paper.report.bench_page import bench_sheets, read_folder

    found, damaged = read_folder(results)
    for line in damaged:
        typer.echo(f"not used: {line}", err=True)
    typer.echo("\n".join(text_sheet(sheet) for sheet in bench_sheets(found)))


def _pack(results: Path, folder: Path) -> None:
    from giw.paper.bench.store import Store
    from giw.paper.report.bench_page import read_folder

    found, damaged = read_folder(results)
    for line in damaged:
        typer.echo(f"not used: {line}", err=True)
    written = Store(folder).pack(found)
    size = sum(path.stat().st_size for path in written)
    typer.echo(
        f"{len(found)} results in {len(written)} files of {size / 1e6:.2f} MB; see {folder}/"
    )
