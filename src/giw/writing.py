"""Files that are there whole or not at all, whoever is killed or reads meanwhile."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A binary file to write to, which takes its name only when all of it is on the disk.

    Until then it stands beside ``path`` under a hidden name that no other writer uses. If anything
    fails before the end, that one is removed and an old file of this name stays as it was.

    Parameters
    ----------
    path : Path
        The file; its folder is made where needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = hidden_beside(path)
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file in one stroke; text is written as UTF-8."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def sync_folder(folder: Path) -> None:
    """Names, too, must reach the disk: after a power cut a new file is found under its name."""
    if os.name != "posix":
        return  # no other system lets a folder be opened
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def hidden_beside(path: Path) -> Path:
    """A name in the same folder that nobody else has; unlike ``tempfile``, it creates nothing.

    Whatever is made under it has the permissions of any new file, not those of a secret.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")
