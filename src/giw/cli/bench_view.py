"""What a person sees while ``giw bench`` is at work: a table that fills, and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from giw.paper.bench.engines import Done
from giw.paper.bench.estimate import Pace, in_words
from giw.paper.bench.plan import Job, Run

Row = tuple[str, str, str, str, str]  # data set, case, shift, protocol, variant


@dataclass
class GridView:
    """The grid as a table: settings by methods, each cell the mean accuracy in percent so far.

    Parameters
    ----------
    runs : sequence of Run
        The whole plan.
    jobs : sequence of Job
        What is to do.
    expected : callable
        From a run to the seconds that it is expected to take.
    finished : mapping from key of a run to its accuracy
        What was done before.
    processes : int
        How many jobs are at work at a time.
    speedup : float
        How many times as fast as one process they are expected to be.
    """

    runs: Sequence[Run]
    jobs: Sequence[Job]
    expected: Callable[[Run], float]
    finished: Mapping[str, float]
    processes: int = 1
    speedup: float = 1.0
    failed: int = 0
    written: int = 0
    ended: int = 0
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.methods = list(dict.fromkeys(run.method for run in self.runs))
        self.rows = list(dict.fromkeys(map(_row, self.runs)))
        self.cells: dict[tuple[Row, str], list[float]] = {}
        for run in self.runs:
            if run.key in self.finished:
                self.cells.setdefault((_row(run), run.method), []).append(self.finished[run.key])
        self.waiting = [(_row(job.first), job.first.method) for job in self.jobs]
        total = sum(self.expected(run) for job in self.jobs for run in job.runs)
        self.pace = Pace(total, self.speedup)

    def add(self, done: Done) -> str:
        """Take note of a job that ended; returns one line about it for a log."""
        cell = _row(done.job.first), done.job.first.method
        self.waiting.remove(cell)
        self.ended += 1
        self.written += done.written
        self.failed += bool(done.error)
        self.pace.advance(sum(map(self.expected, done.job.runs)))
        self.cells.setdefault(cell, []).extend(done.accuracy)
        if done.error:
            said = done.error
        elif not done.accuracy:
            said = "left to another process"
        else:
            said = _mean_and_spread(done.accuracy)
        return f"{self.ended}/{len(self.jobs)} {done.job.name}: {said}; {self.left()} left"

    def left(self) -> str:
        """Time left in words."""
        return in_words(self.pace.left(time.perf_counter() - self.started))

    def elapsed(self) -> str:
        """Time since the start in words."""
        return in_words(time.perf_counter() - self.started)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("accuracy (%)", no_wrap=True)
        for method in self.methods:  # names may break where the window is narrow, numbers not
            table.add_column(method, justify="right", min_width=4, overflow="fold")
        running = set(self.waiting[: self.processes])
        for row in self._window(max(3, console.size.height - 6), running):
            cells = (self._cell(row, m, (row, m) in running) for m in self.methods)
            table.add_row(Text(self._name(row)), *cells)
        yield table
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=max(1, len(self.jobs)), completed=self.ended, width=30),
            Text(f"{self.ended} of {len(self.jobs)} jobs, {self.left()} left"),
        )
        yield bar

    def _name(self, row: Row) -> str:
        """A row in few letters; the protocol is told only where there are several."""
        dataset, case, shift, protocol, variant = row
        several = len({other[3] for other in self.rows}) > 1
        short = shift.replace("label_noise_", "noise ").replace("class_prior_", "prior ")
        parts = [dataset.replace("_mnist", ""), case, short, protocol if several else "", variant]
        return " ".join(part for part in parts if part)

    def _window(self, height: int, running: set[tuple[Row, str]]) -> list[Row]:
        """As many rows as the screen holds, those at work among them."""
        if len(self.rows) <= height:
            return self.rows
        at_work = [k for k, row in enumerate(self.rows) if any(row == r for r, _ in running)]
        last = min(len(self.rows), max((at_work or [0])[-1] + 2, height))
        return self.rows[last - height : last]

    def _cell(self, row: Row, method: str, running: bool) -> Text:
        done = self.cells.get((row, method), [])
        if done:
            return Text(f"{100 * np.mean(done):.1f}", style="bold" if method == "giw" else "")
        waiting = (row, method) in self.waiting
        return Text("…" if running else "·" if waiting else "", style="dim")


def follow(view: GridView, stream: Iterable[Done], console: Console, *, quiet: bool) -> None:
    """Show jobs as they end: a live table on a terminal, a line each in a log."""
    if quiet or not console.is_terminal:
        for done in stream:
            line = view.add(done)
            if done.error or not quiet:
                console.print(Text(line), soft_wrap=True)
        return
    with Live(view, console=console, refresh_per_second=2) as live:
        for done in stream:
            line = view.add(done)
            if done.error:
                live.console.print(Text(f"failed: {line}", style="red"))
            live.refresh()


def _row(run: Run) -> Row:
    return run.dataset, run.case, run.shift, run.protocol, run.variant


def _mean_and_spread(accuracy: Sequence[float]) -> str:
    spread = f" ± {100 * np.std(accuracy, ddof=1):.1f}" if len(accuracy) > 1 else ""
    return f"{100 * np.mean(accuracy):.1f}{spread} %"
