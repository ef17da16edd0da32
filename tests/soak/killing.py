"""Kill work at random moments, start it again until it is done, compare with work left alone."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# children of a server that has imported everything once start in no time
CONTEXT = multiprocessing.get_context("forkserver")


@dataclass
class Killed:
    """What became of one kind of work."""

    name: str
    kills: int = 0
    rounds: int = 0  # times that it was finished in spite of them
    losses: int = 0
    said: str = ""

    def line(self) -> str:
        return f"{self.name:<26}{self.kills:>7}{self.rounds:>10}{self.losses:>8}"


HEADER = f"{'work':<26}{'kills':>7}{'finished':>10}{'losses':>8}"


def prepare() -> None:
    """The server must import this tree, whatever else is installed."""
    os.environ["PYTHONPATH"] = os.pathsep.join([f"{ROOT}/src", str(ROOT)])
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    CONTEXT.set_forkserver_preload(["tests.soak.works", "tests.soak.fuzzing"])


def start(target: Callable, *arguments) -> multiprocessing.process.BaseProcess:
    process = CONTEXT.Process(target=target, args=arguments)
    process.start()
    return process


def left_alone(work, folder: Path) -> tuple[object, float]:
    """Its result, and how long it took."""
    folder.mkdir()
    process, started = start(work.run, folder), time.monotonic()
    process.join()
    took = time.monotonic() - started
    if process.exitcode:
        said = folder.with_name(f"{folder.name}.said").read_text()
        raise RuntimeError(f"{work.name} ended with {process.exitcode}: {said}")
    return work.result(folder), took


def kill_often(work, place: Path, kills: int, seed: int = 0) -> Killed:
    """Kill it so many times in all, in as many rounds as that takes; every round is finished."""
    moments, found = random.Random(seed), Killed(work.name)
    right, took = left_alone(work, place / f"{work.__name__}-alone")
    while found.kills < kills:
        folder = place / f"{work.__name__}-{found.rounds}"
        folder.mkdir()
        while True:
            process, began = start(work.run, folder), time.monotonic()
            if found.kills < kills:
                process.join(moments.uniform(0.0, 0.8 * took))
            else:
                process.join()
            if process.exitcode is not None:
                took = min(took, time.monotonic() - began)  # kill earlier: the machine is less busy
                break
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            found.kills += 1
            try:
                work.check(folder)
            except Exception as error:  # whatever it is, something half-written was read
                found.losses += 1
                found.said = f"after kill {found.kills}: {type(error).__name__}: {error}"
        found.rounds += 1
        if process.exitcode or work.result(folder) != right:
            found.losses += 1
            said = folder.with_name(f"{folder.name}.said").read_text()[-500:]
            found.said = f"round {found.rounds} ended with {process.exitcode}: {said}"
    return found
