"""Kill work at random moments, start it again until it is done, compare with work left alone."""

import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.telling import being_written, mark

ROOT = Path(__file__).parents[2]
# children of a server that has imported everything once start in no time
CONTEXT = multiprocessing.get_context("forkserver")
PHASES = ("start-up", "training", "saving", "done")
IN_START_UP, IN_SAVING = 0.1, 0.2  # shares of kills that are meant for them


@dataclass
class Killed:
    """What became of one kind of work."""

    name: str
    phases: Counter = field(default_factory=Counter)
    rounds: int = 0  # times that it was finished in spite of them
    losses: int = 0
    said: str = ""

    @property
    def kills(self) -> int:
        return self.phases.total()

    def line(self) -> str:
        counts = "".join(f"{self.phases[phase]:>10}" for phase in PHASES)
        return f"{self.name:<26}{self.kills:>6}{counts}{self.rounds:>10}{self.losses:>8}"


HEADER = f"{'work':<26}{'kills':>6}" + "".join(f"{phase:>10}" for phase in PHASES)
HEADER += f"{'finished':>10}{'losses':>8}"


def prepare() -> None:
    """The server must import this tree, whatever else is installed."""
    os.environ["PYTHONPATH"] = os.pathsep.join([f"{ROOT}/src", str(ROOT)])
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # the last one is imported by torch's first optimizer, and takes seconds
    CONTEXT.set_forkserver_preload(["tests.soak.works", "tests.soak.fuzzing", "torch._dynamo"])


def start(target: Callable, *arguments) -> multiprocessing.process.BaseProcess:
    process = CONTEXT.Process(target=target, args=arguments)
    process.start()
    return process


def start_work(work, folder: Path) -> multiprocessing.process.BaseProcess:
    for stage in ("ready", "done"):
        mark(folder, stage).unlink(missing_ok=True)
    return start(work.run, folder)


def wait_for_first_step(process, folder: Path) -> bool:
    """Whether it came to its first step before it ended."""
    while not mark(folder, "ready").exists():
        if process.exitcode is not None:
            return False
        time.sleep(0.001)
    return True


@dataclass
class Pace:
    """Seconds of work left alone until its first step, and from there to its end."""

    starting: float
    working: float


def left_alone(work, folder: Path) -> tuple[object, Pace]:
    """Its result, and how long it took."""
    folder.mkdir()
    process, began = start_work(work, folder), time.monotonic()
    wait_for_first_step(process, folder)
    first_step = time.monotonic()
    process.join()
    if process.exitcode:
        said = mark(folder, "said").read_text()
        raise RuntimeError(f"{work.name} ended with {process.exitcode}: {said}")
    return work.result(folder), Pace(first_step - began, time.monotonic() - first_step)


def kill_often(work, place: Path, kills: int, seed: int = 0) -> Killed:
    """Kill it so many times in all, in as many rounds as that takes; every round is finished.

    A moment is drawn evenly over the time that work left alone takes from its first step to its
    end; for one in ten over the time before that. One in five then waits for the next file that is
    being written.
    """
    moments, found = random.Random(seed), Killed(work.name)
    right, pace = left_alone(work, place / f"{work.__name__}-alone")
    while found.kills < kills:
        folder = place / f"{work.__name__}-{found.rounds}"
        folder.mkdir()
        kills_before = found.kills
        while True:
            before = being_written(folder)
            process, began = start_work(work, folder), time.monotonic()
            if found.kills < kills:
                wait_for_a_moment(process, folder, pace, moments, before)
            else:
                process.join()
            if process.exitcode is not None:
                if found.kills == kills_before:  # all of it was done: the machine is less busy now
                    pace.working = min(pace.working, time.monotonic() - began)
                break
            phase = kill(work, process, folder, moments, before)
            found.phases[phase] += 1
            try:
                work.check(folder)
            except Exception as error:  # whatever it is, something half-written was read
                found.losses += 1
                found.said = f"after kill {found.kills}: {type(error).__name__}: {error}"
        found.rounds += 1
        if process.exitcode or work.result(folder) != right:
            found.losses += 1
            said = mark(folder, "said").read_text()[-500:]
            found.said = f"round {found.rounds} ended with {process.exitcode}: {said}"
    return found


def wait_for_a_moment(
    process, folder: Path, pace: Pace, moments: random.Random, before: set[Path]
) -> None:
    aim = moments.random()
    if aim < IN_START_UP:
        process.join(moments.uniform(0.0, pace.starting))
        return
    if wait_for_first_step(process, folder):
        process.join(moments.uniform(0.0, pace.working))
    if aim > 1 - IN_SAVING:
        while process.exitcode is None and not being_written(folder) - before:
            pass  # it takes milliseconds: no time to sleep


def kill(work, process, folder: Path, moments: random.Random, before: set[Path]) -> str:
    """Kill it and name what it was doing."""
    work.kill(process, moments)
    process.join()
    if mark(folder, "done").exists():
        return "done"
    if being_written(folder) - before:  # a file that never got its name
        return "saving"
    return "training" if mark(folder, "ready").exists() else "start-up"


def kill_one(process, moments: random.Random) -> None:
    """SIGKILL, for work of a single process."""
    process.kill()  # nothing happens where it has ended meanwhile
