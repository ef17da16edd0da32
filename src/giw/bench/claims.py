"""Who works on what: a small file per run, held by one process at a time.

A claim names its host and process and is touched while its owner lives. On the same host a claim
is void when its process is gone; a claim from elsewhere is void when nobody has touched it for a
while, as after a machine was taken away, or in a folder copied from one.
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


@contextmanager
def take(path: Path) -> Iterator[bool]:
    """Try to be the one owner of a claim; yields whether that worked, and lets go at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not _take(path):
        yield False
        return
    done = threading.Event()
    beat = threading.Thread(target=_touch_until, args=(path, done), daemon=True)
    beat.start()
    try:
        yield True
    finally:
        done.set()
        beat.join()
        path.unlink(missing_ok=True)


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
        if host != socket.gethostname() or not pid.isdigit():
            # an empty claim is one whose writer died before its first byte, or is just writing it
            return _silence(path) < SILENT_SECONDS
        os.kill(int(pid), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _silence(path: Path) -> float:
    """Seconds since a claim was touched, by the clock of the disk that it is on."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".now-") as now:
        return os.stat(now.name).st_mtime - path.stat().st_mtime
