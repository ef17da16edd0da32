"""How commands speak: results on stdout, everything else on stderr, one line for a mistake.

Exit codes: 0 done, 1 something failed at work, 2 the command or its input was wrong, 130 stopped
by Ctrl-C.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

FAILED, WRONG, STOPPED = 1, 2, 130
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes; errors are still told.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random draws.")]


@contextmanager
def one_line_errors(command: str, way_on: str = "run it again") -> Iterator[None]:
    """Turn errors into one line that names the command, and an exit code that means something.

    Parameters
    ----------
    command : str
    way_on : str
        What to do after Ctrl-C.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        said = str(error)  # training says what it saved
        stop(command, f"{said}; {way_on}" if said else f"stopped by Ctrl-C; {way_on}", STOPPED)
    except (ValueError, ImportError, FileNotFoundError, IsADirectoryError) as error:
        if isinstance(error, ImportError) and error.name in ("torch", "safetensors"):
            stop(command, "this needs torch: pip install 'giw[torch]'", WRONG)
        stop(command, str(error), WRONG)
    except (RuntimeError, OSError, MemoryError) as error:
        if isinstance(error, typer.Exit | typer.Abort):
            raise
        stop(command, str(error) or type(error).__name__, FAILED)


def stop(command: str, message: str, code: int) -> NoReturn:
    """Say it on stderr and leave."""
    typer.echo(f"{command}: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


@contextmanager
def heard_warnings() -> Iterator[list[str]]:
    """Warnings as plain sentences, each once, instead of lines of source code."""
    heard: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield heard
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            text = " ".join(str(warning.message).split())
            if text not in heard:
                heard.append(text)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


def say_notes(notes: Sequence[str], *, quiet: bool) -> None:
    """What a person should know, on stderr."""
    for note in () if quiet else notes:
        typer.echo(f"note: {note}", err=True)


def say_json(values: dict[str, Any]) -> None:
    """One object for a program."""
    typer.echo(json.dumps(values, ensure_ascii=False, allow_nan=False))


def err_console() -> Console:
    """Where progress is shown: stderr, so that stdout holds results only."""
    return Console(stderr=True)


def check_writable(path: Path, option: str, *, a_file: bool = False) -> None:
    """Minutes of work should not end at a place that cannot be written."""
    if a_file and path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; {option}")
    folder = path.resolve().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"cannot write {path}: {folder} cannot be written to; {option}")
