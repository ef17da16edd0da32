"""Who works on what: a small file per run, held by one process at a time.

A claim names its host and process and is touched while its owner lives. On the same host a claim
is void when its process is gone; any claim is void when nobody has touched it for a while, as after
a machine was taken away, in a folder copied from one, or where a number was given to another
process. A claim that bears this process's number and is not its own is left from a former life, as
in containers, where the first process has the same number each time.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BEAT_SECONDS = 20.0
SILENT_SECONDS = 180.0  # many beats: a busy disk may swallow some
_MINE: set[Path] = set()


@contextmanager
def take(path: Path) -> Iterator[bool]:
    """Try to be the one owner of a claim; yields whether that worked, and lets go at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not _take(path):
        yield False
        return
    _MINE.add(path.absolute())
    done = threading.Event()
    beat = threading.Thread(target=_touch_until, args=(path, done), daemon=True)
    beat.start()
    try:
        yield True
    finally:
        done.set()
        beat.join()
        path.unlink(missing_ok=True)
        _MINE.discard(path.absolute())


def _touch_until(path: Path, done: threading.Event) -> None:
    while not done.wait(BEAT_SECONDS):
        try:
            os.utime(path)
        except OSError:
            return  # someone removed it; the work goes on, and its result is written whole


def _take(path: Path) -> bool:
    """Create a claim, or take over one whose owner is gone."""
    me = f"{socket.gethostname()} {os.getpid()}"
    for _ in range(2):
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(me)
            return True
        except FileExistsError:
            if _alive(path):
                return False
            path.unlink(missing_ok=True)
    return False


def _alive(path: Path) -> bool:
    """Whether the owner of a claim may still be at work."""
    try:
        host, _, pid = path.read_text(encoding="utf-8").rpartition(" ")
        if host == socket.gethostname() and pid.isdigit():
            if int(pid) == os.getpid():
                return path.absolute() in _MINE
            os.kill(int(pid), 0)
    except (FileNotFoundError, ProcessLookupError, OverflowError):
        return False
    except (PermissionError, UnicodeDecodeError):
        pass
    try:
        # an empty claim is one whose writer died before its first byte, or is just writing it
        return _silence(path) < SILENT_SECONDS
    except FileNotFoundError:  # its owner is done
        return False


def _silence(path: Path) -> float:
    """Seconds since a claim was touched, by the clock of the disk that it is on."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".now-") as now:
        return os.stat(now.name).st_mtime - path.stat().st_mtime
