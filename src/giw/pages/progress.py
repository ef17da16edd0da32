"""A bar that shows how far some work is."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def make_progress(*, shown: bool = True, console: Console | None = None) -> Progress:
    """Name, bar, count, time left and the last values; silent where ``shown`` is False."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        disable=not shown,
        console=console,
    )
