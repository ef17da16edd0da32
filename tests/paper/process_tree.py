"""Processes and those that they started, as Linux tells of them in /proc."""

import os
import signal
from pathlib import Path

AVAILABLE = Path("/proc/self/stat").exists()


def workers_of(pid: int) -> list[int]:
    """Processes that joblib has started in the name of a process."""
    return [child for child in children_of(pid) if b"popen_loky" in _read(child, "cmdline")]


def is_alive(pid: int) -> bool:
    """Whether a process is there and not only remembered by its parent."""
    stat = _read(pid, "stat")
    return bool(stat) and stat.rsplit(b")", 1)[1].split()[0] != b"Z"


def is_importing(pid: int) -> bool:
    """Whether a process has begun to load torch, which takes it seconds."""
    return b"libtorch_cpu" in _read(pid, "maps")


def children_of(pid: int) -> list[int]:
    """Processes that a process has started."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []
    return [
        int(child) for task in tasks for child in _read(pid, f"task/{task.name}/children").split()
    ]


def kill_if_alive(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal; a process that has ended meanwhile is what was wanted anyway."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _read(pid: int, name: str) -> bytes:
    """A process may end at any time: nothing then."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
