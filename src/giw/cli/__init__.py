"""The command ``giw``: one file for each command, which imports what it needs when it runs.

To add a command ``giw do-this``:

1. Write ``cli/do_this.py`` with one function ``do_this``. Its docstring is the help: what it does,
   an example, the exit codes. Its parameters are the arguments; take those that other commands have
   too from :mod:`giw.cli.common` (``Train``, ``Val``, ``Seed``, ``AsJson``, ``Quiet``, …) and
   declare the others with ``option``. Files to write are ``--out``, ``-o``.
2. Import the rest of the package inside the function: ``giw --help`` stays quick.
3. Raise ``ValueError`` for a mistake of the user's, with the way out; it becomes one line and exit
   code 2. Return what was found as ``Told``; warnings become notes.
4. Name the function in ``COMMANDS`` below, and add a section to ``docs/commands.md``.
"""

from __future__ import annotations

from typing import Annotated

import typer

from giw.cli import paper
from giw.cli.common import WRONG, Command, Commands, stop
from giw.cli.demo import demo
from giw.cli.diagnose import diagnose
from giw.cli.example import example
from giw.cli.fit import fit
from giw.cli.label_next import label_next
from giw.cli.predict import predict

COMMANDS = {
    "Your tables": (example, diagnose, fit, predict, label_next),
    "The paper": (demo,),
}
OLD_NAMES = {"bench": "run", "data": "data", "report": "report"}  # of version 0.1.0

app = typer.Typer(
    cls=Commands,
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


for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(cls=Command, rich_help_panel=panel)(command)
app.add_typer(paper.app, name="paper", rich_help_panel="The paper")


def renamed(
    context: typer.Context, words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None
) -> None:
    """Say what a command of version 0.1.0 is called now."""
    old = context.info_name or ""
    stop(f"giw {old}", f"is now called giw paper {OLD_NAMES[old]}", WRONG)


for old_name in OLD_NAMES:
    app.command(old_name, hidden=True, context_settings={"ignore_unknown_options": True})(renamed)

__all__ = ["app"]
