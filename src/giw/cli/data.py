"""``giw data``."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from giw.cli.messages import FAILED, AsJson, Quiet, err_console, one_line_errors, say_json

if TYPE_CHECKING:
    from giw.paper.readers import FileStatus


class DataSet(StrEnum):
    """Data sets that can be fetched."""

    mnist = "mnist"
    cifar100 = "cifar100"


def data(
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every file and compare its checksum.")
    ] = False,
    fetch: Annotated[
        DataSet | None, typer.Option(help="Download a data set first, where the network allows.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Data folder.", show_default="$GIW_DATA, else ~/.cache/giw"),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say where data sets are looked for, what is there, and whether it is whole.

    One edition of a data set is enough. The demo needs no files.

    Example:

        GIW_DATA=~/data giw data --verify

        giw data --fetch mnist

    Exit code 0 if nothing is wrong, missing files included; 1 if a file is altered or could not
    be fetched; 2 for a mistake in the command.
    """
    with one_line_errors("giw data"):
        from giw.paper.readers import catalogue, data_folder

        if fetch is not None:
            from giw.paper.readers import fetch as download

            shown = not (quiet or as_json)
            with err_console().status(f"fetching {fetch}") if shown else _nothing():
                try:
                    download(str(fetch), data_dir)
                except ValueError as error:  # a checksum, and no mistake of the user's
                    raise RuntimeError(str(error)) from error
        files = catalogue(data_dir, verify=verify)
        folder = data_folder(data_dir)
        if as_json:
            say_json({"folder": str(folder), "files": [_plain(found) for found in files]})
        elif not quiet:
            _show(files, folder)
    altered = [found for found in files if found.state == "altered"]
    for found in altered:
        typer.echo(
            f"giw data: {found.path} is truncated or altered: its md5 sum is {found.md5}, expected "
            f"{found.file.md5}; remove it and fetch it again",
            err=True,
        )
    if altered:
        raise typer.Exit(FAILED)


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def _plain(found: FileStatus) -> dict[str, Any]:
    values = asdict(found)
    return values | {"path": None if found.path is None else str(found.path)}


def _show(files: tuple[FileStatus, ...], folder: Path) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("data set", "edition", "file", "size", "state"):
        table.add_column(name, justify="right" if name == "size" else "left")
    style = {"missing": "dim", "altered": "bold red", "verified": "green", "present": ""}
    for found in files:
        size = "" if found.size is None else f"{found.size / 2**20:.1f} MB"
        table.add_row(
            found.file.dataset, found.file.edition, found.file.name, size, found.state,
            style=style[found.state],
        )  # fmt: skip
    there = folder if folder.is_dir() else f"{folder} (not there)"
    console.print(f"Data folder: {there}", highlight=False, soft_wrap=True)
    console.print(table)
    for dataset in dict.fromkeys(found.file.dataset for found in files):
        whole = _whole_edition(files, dataset)
        way_out = f"not there; copy its files into the folder, or giw data --fetch {dataset}"
        told = f"{dataset}: {f'ready ({whole})' if whole else way_out}"
        console.print(told, highlight=False, soft_wrap=True)


def _whole_edition(files: tuple[FileStatus, ...], dataset: str) -> str | None:
    """An edition of which every file is there and none is known to be altered."""
    editions: dict[str, list[str]] = {}
    for found in files:
        if found.file.dataset == dataset:
            editions.setdefault(found.file.edition, []).append(found.state)
    good = {"present", "verified"}
    return next((name for name, states in editions.items() if set(states) <= good), None)
