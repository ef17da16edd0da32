"""What a person sees while ``giw paper run`` is at work: jobs as they end, and the time left."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from giw.paper.estimate import in_words, job_seconds, measured_seconds, speedup
from giw.paper.parallel import Done
from giw.paper.plan import Job, Run, group
from giw.paper.rows import Store
from giw.paper.run import device_name


@dataclass
class GridView:
    """How far a grid is.

    Parameters
    ----------
    seconds : mapping from a job to the seconds that it is expected to take
    speedup : float
        How many times as fast as one process the processes are expected to be.
    """

    seconds: Mapping[Job, float]
    speedup: float = 1.0
    failed: int = 0
    written: int = 0
    ended: int = 0
    expected: float = 0.0  # of the jobs that have ended
    started: float = field(default_factory=time.perf_counter)

    @property
    def jobs(self) -> list[Job]:
        """What is to do."""
        return list(self.seconds)

    def seconds_left(self, elapsed: float) -> float:
        """Time left, from how the work done so far compares with what was expected of it."""
        rest = max(0.0, sum(self.seconds.values()) - self.expected)
        if self.expected == 0:
            return max(0.0, rest / self.speedup - elapsed)
        return rest * elapsed / self.expected

    def elapsed(self) -> str:
        """Time since the start in words."""
        return in_words(time.perf_counter() - self.started)

    def add(self, done: Done) -> str:
        """Take note of a job that ended; returns one line about it."""
        self.ended += 1
        self.written += done.written
        self.failed += bool(done.error)
        self.expected += self.seconds[done.job]
        if done.error:
            said = done.error
        elif not done.accuracy:
            said = "left to another process"
        else:
            several = len(done.accuracy) > 1
            spread = f" ± {100 * np.std(done.accuracy, ddof=1):.1f}" if several else ""
            said = f"{100 * np.mean(done.accuracy):.1f}{spread} %"
        left = in_words(self.seconds_left(time.perf_counter() - self.started))
        return f"{self.ended}/{len(self.jobs)} {done.job.name}: {said}; {left} left"


def follow(view: GridView, stream: Iterable[Done], console: Console, *, quiet: bool) -> None:
    """Show jobs as they end, a line each, with a bar beneath them on a terminal."""
    shown = console.is_terminal and not quiet
    columns = (TextColumn("jobs"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not shown) as progress:
        bar = progress.add_task("jobs", total=len(view.jobs))
        for done in stream:
            line = view.add(done)
            if done.error or not quiet:
                style = "red" if done.error else ""
                progress.console.print(Text(line, style=style), soft_wrap=True)
            progress.advance(bar)


def look_ahead(store: Store, runs: list[Run], device: str, processes: int) -> tuple[GridView, str]:
    """What is to do, and in words how long that will take by what the folder has measured."""
    kind = "cuda" if device.startswith("cuda") else "cpu"
    results = store.read_all()[0] if store.folder.is_dir() else []
    measured = measured_seconds(results, device_name(device))
    finished = {result.run.key: result.accuracy for result in results}
    todo = [one for one in runs if one.key not in finished]  # a damaged file is none
    seconds = job_seconds(group(todo), kind, measured)
    view = GridView(seconds, speedup(processes, kind, measured=bool(measured)))
    words = (
        f"{len(runs)} runs, {len(runs) - len(todo)} done, {len(todo)} to do in {len(seconds)} jobs "
        f"of {runs[0].epochs} epochs on {device}; about {in_words(view.seconds_left(0.0))}"
    )
    return view, words + (", by what the folder has measured" if measured else "")
