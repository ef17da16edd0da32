"""Files that are there whole or not at all, whoever is killed or reads meanwhile."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

# what the system says when there is no room: a full disk, a quota, a limit on the size of files
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# control characters, lone surrogates, non-characters and marks that turn text around: no XML page
# can hold the first, no file the second, and a terminal obeys some
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(chr(plane * 0x10000 + 0xFFFE + last) for plane in range(1, 17) for last in (0, 1))
    + "]"
)
ABANDONED_SECONDS = 600.0  # nobody pauses for so long between the last byte and the name


def visible(text: str) -> str:
    r"""Text for pages and terminals: characters that nobody sees are spelled, as in ``\x1b``."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def put_out(text: str) -> None:
    """Print to standard output; a reader who is gone or a full disk is an error of one line."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        print(text, flush=True)
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # or Python tries again when it ends
        said = f"standard output is lost: {os.strerror(error.errno or 0)}; files are written"
        raise RuntimeError(said) from error


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A binary file to write to, which takes its name only when all of it is on the disk.

    Until then it stands beside ``path`` under a hidden name that no other writer uses. If anything
    fails before the end, that one is removed and an old file of this name stays as it was. What a
    writer left behind who was killed is removed by a later one.

    Parameters
    ----------
    path : Path
        The file; its folder is made where needed.

    Raises
    ------
    IsADirectoryError
        Where a folder has that name.
    OSError
        Where the disk is full, with one line that names the file and says what is left of it.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    with room_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = hidden_beside(path)
        try:
            with open(part, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            remove_abandoned(path, by=part)
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Let an error about a full disk name the file, and say that nothing was lost."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        kept = "what it held before is unchanged" if path.exists() else "nothing was written"
        said = f"cannot write {path}: {os.strerror(error.errno)}; {kept}; make room and try again"
        raise OSError(error.errno, said) from error


def remove_abandoned(path: Path, *, by: Path) -> None:
    """Remove what killed writers of ``path`` left under hidden names.

    Their age is counted up to ``by``, just written on the same disk, whose clock may be its own.
    """
    ours = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{16}")
    now = by.stat().st_mtime
    for old in path.parent.iterdir():
        if not ours.fullmatch(old.name) or old == by:
            continue
        try:
            if now - old.stat().st_mtime < ABANDONED_SECONDS:
                continue
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        except OSError:
            continue  # another writer was quicker, or it is not ours to remove: it blocks nothing


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file in one stroke; text is written as UTF-8, lone surrogates spelled."""
    with whole_file(path) as file:
        file.write(
            content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        )


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
