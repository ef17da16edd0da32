"""The command ``giw``: one file per subcommand, which imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from giw.cli.bench import bench
from giw.cli.data import data
from giw.cli.demo import demo
from giw.cli.diagnose import diagnose
from giw.cli.fit import fit
from giw.cli.predict import predict
from giw.cli.report import report

app = typer.Typer(
    help="Generalized importance weighting: for training data and a real world that part ways.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import giw

        typer.echo(f"giw {giw.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options that come before the command."""


app.command()(demo)
app.command()(bench)
app.command()(diagnose)
app.command()(fit)
app.command()(predict)
app.command()(data)
app.command()(report)

__all__ = ["app"]
