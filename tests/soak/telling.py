"""How work that will be killed tells how far it is: a file beside its folder for each stage."""

import functools
import os
import re
from pathlib import Path

from giw.nets.training.step import Descent

FOLDER = "GIW_SOAK_FOLDER"  # programs that start others tell them by this variable
HIDDEN = re.compile(r"\..+\.[0-9a-f]{16}")  # what is being written: giw.writing


def mark(folder: Path, stage: str) -> Path:
    return folder.with_name(f"{folder.name}.{stage}")


def tell_first_step(folder: Path) -> None:
    """From now on, leave a mark when this process begins its first epoch."""
    untold = Descent.run_epoch

    @functools.wraps(untold)
    def told(self, *arguments, **how):
        Descent.run_epoch = untold
        mark(folder, "ready").touch()
        return untold(self, *arguments, **how)

    Descent.run_epoch = told


def tell_programs(folder: Path) -> dict[str, str]:
    return {**os.environ, FOLDER: str(folder)}


def told_by_a_program() -> None:
    """In a program: tell those who asked."""
    if FOLDER in os.environ:
        tell_first_step(Path(os.environ[FOLDER]))


def being_written(folder: Path) -> set[Path]:
    """Files and folders that have not got their name yet; of killed writers, they stay."""
    return {path for path in folder.rglob(".*") if HIDDEN.fullmatch(path.name)}
