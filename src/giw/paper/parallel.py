"""Where jobs run: in this process, in processes side by side, or on a Ray cluster; by joblib."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from joblib import Parallel, delayed

from giw.nets.training import Interrupted, ask_to_stop
from giw.paper.plan import Job
from giw.paper.rows import Store
from giw.paper.run import Runner, forget
from giw.paper.settings import Samples, paper_samples

ENGINES = ("local", "ray")
STOPPED = "stopped"


@dataclass(frozen=True)
class Place:
    """Where data are, where results go, and what to compute on."""

    store: Path
    data_dir: Path | None
    device: str = "cpu"
    threads: int | None = None  # CPU threads of one process
    checkpoint_seconds: float = 60.0
    read: Callable[[str, Path | None], Samples] = paper_samples


@dataclass(frozen=True)
class Done:
    """What became of a job: how many runs were written, or why none were."""

    job: Job
    written: int
    error: str = ""
    accuracy: tuple[float, ...] = ()  # of the runs that were written


def run_jobs(
    jobs: Sequence[Job], place: Place, *, engine: str = "local", processes: int = 1
) -> Iterator[Done]:
    """Run jobs and tell of each one as it ends.

    Every finished run is in the store before it is told of. Jobs of one data set stay together,
    so that a process reads its files once. Ctrl-C stops all local processes after their epoch;
    what they have of their jobs is saved, and the next run goes on from there. Where one of several
    local processes is killed, the others end too, and a RuntimeError says so. The engine ``"ray"``
    uses the cluster that ``ray.init`` finds, or starts one here; store and data must be folders
    that all its machines see, and ``processes`` is how many jobs share a GPU.
    """
    check_engine(engine)
    if engine == "ray":
        yield from _on_ray(jobs, place, processes)
    elif processes == 1:
        for job in jobs:
            yield run_job(job, place)
    else:
        yield from _side_by_side(jobs, place, processes)


def run_job(job: Job, place: Place) -> Done:
    """Run what no other process is running or has run, and write each result."""
    store = Store(place.store)
    with ExitStack() as locks:
        if place.threads is not None:
            locks.callback(torch.set_num_threads, torch.get_num_threads())  # the caller's again
            torch.set_num_threads(place.threads)
        # locked first and looked up second: a run that another process has just written counts
        mine = [run for run in job.runs if locks.enter_context(store.lock(run))]
        runs = tuple(run for run in mine if not store.has(run))
        if not runs:
            return Done(job, 0)
        try:
            unfinished = store.unfinished(runs)
            results = runner_of(job.first.dataset, place).run(Job(runs), checkpoint=unfinished)
            store.write(results)
            forget(unfinished)
        except (ValueError, OSError, RuntimeError) as error:
            return Done(job, 0, f"{type(error).__name__}: {error}")
    return Done(job, len(runs), accuracy=tuple(result.accuracy for result in results))


@lru_cache(maxsize=1)
def runner_of(dataset: str, place: Place) -> Runner:
    """The runner of this process for a data set; samples, nets and draws of only one are kept."""
    return Runner(place.read(dataset, place.data_dir), place.device, place.checkpoint_seconds)


def check_engine(engine: str) -> None:
    """Refuse an engine that is unknown or not installed, before anything is planned."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if engine == "ray" and find_spec("ray") is None:
        raise ValueError("engine 'ray' needs Ray: pip install 'giw[ray]'")


def default_threads(processes: int) -> int:
    """CPU threads of each of so many processes."""
    return max(1, (os.cpu_count() or 1) // processes)


# Several processes --------------------------------------------------------------------------------


def _side_by_side(jobs: Sequence[Job], place: Place, processes: int) -> Iterator[Done]:
    place.store.mkdir(parents=True, exist_ok=True)
    stop = place.store / f".stop-{os.getpid()}"  # a file: whoever is killed cannot hold it locked
    stop.unlink(missing_ok=True)
    work = Parallel(processes, batch_size=1, return_as="generator_unordered")

    def first_interrupt(*_: Any) -> None:
        """Ask the processes to save and end; joblib would kill them, as a second Ctrl-C does."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop.touch()

    try:
        # Ctrl-C reaches every process of a terminal, and one that still imports would die of it:
        # processes started while it is ignored never hear it
        with _interrupts_go_to(signal.SIG_IGN):
            every = work(delayed(_work)(job, place, stop, os.getpid()) for job in jobs)
        with _interrupts_go_to(first_interrupt):
            for done in every:
                if done.error != STOPPED:
                    yield done
        if stop.exists():
            raise Interrupted("all processes were stopped, and their jobs are saved")
    except BrokenProcessPool:
        raise RuntimeError(
            "one of the processes was killed, as happens when memory runs out, and the others "
            "ended with it; finished runs are kept: run the same command again to go on"
        ) from None
    finally:
        stop.unlink(missing_ok=True)


@contextmanager
def _interrupts_go_to(handler: Any) -> Iterator[None]:
    """While this lasts, Ctrl-C is handled so."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_STOP: list[Path] = []  # the file that tells this process to stop, once its thread listens


def _work(job: Job, place: Place, stop: Path, parent: int) -> Done:
    """A job in a process of its own, which stops when told to and ends with its parent."""
    if not _STOP:
        threading.Thread(target=_listen, args=(parent,), daemon=True).start()
    _STOP[:] = [stop]
    if stop.exists():
        return Done(job, 0, STOPPED)
    try:
        return run_job(job, place)
    except KeyboardInterrupt:
        return Done(job, 0, STOPPED)


def _listen(parent: int) -> None:
    """Do what the parent tells this process, and end with it: it would keep its share of the GPU.

    Ctrl-C reaches every process of a terminal; here the parent alone hears it.
    """
    while os.getppid() == parent:
        if any(stop.exists() for stop in _STOP):
            ask_to_stop()
        time.sleep(0.2)
    os._exit(1)


def _on_ray(jobs: Sequence[Job], place: Place, per_gpu: int) -> Iterator[Done]:
    """Ray starts the jobs of a machine that dies again on another one, three times at most."""
    import ray

    ray.init(ignore_reinit_error=True)
    gpus = 1 / per_gpu if place.device.startswith("cuda") else 0.0
    work = ray.remote(num_cpus=1, num_gpus=gpus)(run_job)
    waiting = {work.remote(job, place): job for job in jobs}
    try:
        while waiting:
            (ready,), _ = ray.wait(list(waiting))
            job = waiting.pop(ready)
            try:
                done = ray.get(ready)
            except ray.exceptions.RayError as error:
                done = Done(job, 0, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
            yield done
    finally:
        for unfinished in waiting:
            ray.cancel(unfinished, force=True)
