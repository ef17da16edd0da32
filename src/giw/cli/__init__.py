"""The command ``giw``: one file per subcommand, which imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from giw.cli import paper
from giw.cli.demo import demo
from giw.cli.diagnose import diagnose
from giw.cli.example import example
from giw.cli.fit import fit
from giw.cli.messages import WRONG, stop
from giw.cli.predict import predict

TABLES, PAPER = "Your tables", "The paper"
OLD_NAMES = {"bench": "run", "data": "data", "report": "report"}  # of version 0.1.0

app = typer.Typer(
    help="Generalized importance weighting: for training data that differ from the data to come.",
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


for command in (example, diagnose, fit, predict):
    app.command(rich_help_panel=TABLES)(command)
app.command(rich_help_panel=PAPER)(demo)
app.add_typer(paper.app, name="paper", rich_help_panel=PAPER)


@app.command("bench", hidden=True, context_settings={"ignore_unknown_options": True})
@app.command("data", hidden=True, context_settings={"ignore_unknown_options": True})
@app.command("report", hidden=True, context_settings={"ignore_unknown_options": True})
def renamed(
    context: typer.Context, words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None
) -> None:
    """Say what a command of version 0.1.0 is called now."""
    old = context.info_name or ""
    stop(f"giw {old}", f"is now called giw paper {OLD_NAMES[old]}", WRONG)


__all__ = ["app"]
