"""What all commands share: their options, how they speak, and one line for a mistake.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 something failed at work,
2 the command or its input was wrong, 3 new rows have drifted, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from giw.writing import UNSEEN, put_out, visible

FAILED, WRONG, DRIFTED, STOPPED = 1, 2, 3, 130

# Options ------------------------------------------------------------------------------------------


def option(*names: str, help: str, **more: Any) -> Any:
    """An option with its words: ``Annotated[int, option("--epochs", help="…", min=1)]``.

    A number is shown as ``N`` in the help; typer's own ``<int range> [x>=1]`` leaves no room for
    words on 80 columns.
    """
    if "min" in more:
        more = {"metavar": "N", **more}
    return typer.Option(*names, help=help, **more)


Train = Annotated[Path, typer.Argument(metavar="TRAIN", help="Training data: csv, parquet or npz.")]
Val = Annotated[
    Path,
    typer.Argument(metavar="VAL", help="Validation data, from where the model will be used."),
]
Label = Annotated[str, option("--label", "-l", help="Column that holds the label.")]
AsJson = Annotated[bool, option("--json", help="Print one JSON object for programs.")]
Quiet = Annotated[
    bool, option("--quiet", "-q", help="No progress and no notes; errors are still told.")
]
Seed = Annotated[int, option("--seed", help="Seed of all random draws.", min=0)]
DataFolder = Annotated[
    Path | None,
    option("--data", help="Data folder.", show_default="$GIW_DATA, else ~/.cache/giw"),
]


# A command ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """What a command has found: one object for a program, words for a person."""

    values: dict[str, Any]  # for --json; notes stand under "notes"
    words: str  # for a person
    brief: str = ""  # for a person who says --quiet
    notes: Sequence[str] = ()  # what a person should know; goes to stderr
    code: int = 0  # how the program ends

    def tell(self, heard: Iterable[str], *, as_json: bool, quiet: bool) -> None:
        """Print it, with warnings as further notes, and leave with its exit code."""
        values, notes = self.values, [*self.notes, *heard]
        if as_json:
            if notes:
                values = {**values, "notes": [*values.get("notes", ()), *notes]}
            text = json.dumps(values, ensure_ascii=False, allow_nan=False)
            put_out(UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text))
        else:
            say_notes(notes, quiet=quiet)
            if words := self.brief if quiet else self.words:
                put_out(wrapped(visible(words), sys.stdout))
        if self.code:
            raise typer.Exit(self.code)


class Command(TyperCommand):
    """A command whose help wraps at any width and whose mistakes are told in one line."""

    def __init__(self, name: str | None, *, help: str | None = None, **more: Any) -> None:
        # lines are broken inside the paragraphs of a docstring only; indented ones stay
        parts = (help or "").split("\n\n")
        joined = (part if part.startswith(" ") else part.replace("\n", " ") for part in parts)
        super().__init__(name, help="\n\n".join(joined), **more)
        for param in self.params:
            if getattr(param, "is_flag", False):
                param.metavar = ""  # a flag takes no value
            elif getattr(param, "multiple", False):
                param.metavar = "NAME"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line."""
        if any(param.name == "val" for param in self.params):
            args = positional_val(args, spelled(ctx))
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            mistaken(ctx, error)

    def invoke(self, ctx: Any) -> None:
        """Do the work and tell what it found, or in one line why not, with an exit code."""
        command = spelled(ctx)
        try:
            with heard_warnings() as heard:
                told = super().invoke(ctx)
            if told is not None:
                told.tell(heard, as_json=ctx.params["as_json"], quiet=ctx.params["quiet"])
        except KeyboardInterrupt as error:
            again = "run the same command again"
            saved = str(error)  # by training
            said = f"{saved}; {again} to go on" if saved else f"stopped by Ctrl-C; {again}"
            stop(command, said, STOPPED)
        except (typer.Exit, typer.Abort):  # both are kinds of RuntimeError
            raise
        except (ValueError, ImportError, FileNotFoundError, IsADirectoryError) as error:
            if isinstance(error, ImportError) and error.name in ("torch", "safetensors"):
                stop(command, "this needs torch: pip install 'giw[torch]'", WRONG)
            stop(command, str(error), WRONG)
        except (RuntimeError, OSError, MemoryError) as error:
            stop(command, str(error) or type(error).__name__, FAILED)


class Commands(TyperGroup):
    """Commands of which a wrong name is told in one line."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words of the command line name."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            mistaken(ctx, error)


def mistaken(ctx: Any, error: Any) -> NoReturn:
    """Say what is wrong with the words of a command line."""
    if not hasattr(error, "format_message"):  # nothing, but --help
        raise error
    told = error.format_message().rstrip(".?").replace("Value error, ", "")
    stop(spelled(ctx), f"{told}; see {spelled(ctx)} --help", WRONG)


def positional_val(args: list[str], command: str) -> list[str]:
    """``TRAIN --val VAL``, as version 0.1.0 had it, as ``TRAIN VAL``; one line says so."""
    args = [part for word in args for part in word.split("=", word.startswith("--val="))]
    if "--val" not in args:
        return args
    typer.echo(f"{command}: --val is going away; write {command} TRAIN VAL", err=True)
    at = args.index("--val")
    return [*args[:at], *args[at + 2 :], *args[at + 1 : at + 2]]


def spelled(ctx: Any) -> str:
    """The command as a person types it, however Python was started."""
    words = []
    while ctx.parent is not None:
        words.append(ctx.info_name)
        ctx = ctx.parent
    return " ".join(["giw", *reversed(words)])


def stop(command: str, message: str, code: int) -> NoReturn:
    """Say it on stderr and leave."""
    line = f"{command}: {visible(' '.join(message.split()))}"
    typer.echo(wrapped(line, sys.stderr), err=True)
    raise typer.Exit(code)


def check_writable(path: Path, option: str, *endings: str, read: Sequence[Path] = ()) -> None:
    """Minutes of work should not end at a place that cannot be written, nor over what is read."""
    if endings and path.suffix not in endings:
        raise ValueError(f"{option} must end in {' or '.join(endings)}, got {path}")
    if any(path.exists() and other.exists() and path.samefile(other) for other in read):
        raise ValueError(f"{path} is read by this command; name another file with {option}")
    if path.is_dir() if endings else path.is_file():
        kind, other = ("folder", "file") if endings else ("file", "folder")
        raise ValueError(f"cannot write {path}: it is a {kind}; name a {other} with {option}")
    folder = next(parent for parent in path.resolve().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"cannot write {path}: {folder} cannot be written to; name another place with {option}"
        )


# Speaking -----------------------------------------------------------------------------------------


def wrapped(text: str, stream: Any) -> str:
    """Long lines broken between words on a terminal; rows of tables and commands stay whole."""
    if stream is None or not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    fill = textwrap.TextWrapper(width, break_on_hyphens=False, break_long_words=False)
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if len(line) > width and "  " not in line.strip() and not line.startswith("  giw "):
            indent = line[: len(line) - len(line.lstrip(" -"))]
            fill.subsequent_indent = indent.replace("-", " ")
            lines[at] = fill.fill(line)
    return "\n".join(lines)


def say_notes(notes: Sequence[str], *, quiet: bool) -> None:
    """What a person should know, on stderr."""
    for note in () if quiet else notes:
        typer.echo(wrapped(f"note: {visible(note)}", sys.stderr), err=True)


def stderr(silent: bool = False) -> Console:
    """Where progress is shown: stderr, so that stdout holds results only."""
    return Console(stderr=True, quiet=silent)


@contextmanager
def heard_warnings() -> Iterator[dict[str, None]]:
    """Warnings of the package as plain sentences, each once, instead of lines of source code."""
    heard: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        show = warnings.showwarning

        def hear(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                heard[" ".join(str(message).split())] = None
            else:
                show(message, category, *where, **more)

        warnings.showwarning = hear
        yield heard
