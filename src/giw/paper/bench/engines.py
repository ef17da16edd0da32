"""Where jobs run: here, in processes side by side, or on a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from giw.nets.training import Interrupted, ask_to_stop
from giw.paper.bench.plan import Job
from giw.paper.bench.runner import Runner, Samples, forget
from giw.paper.bench.store import Store
from giw.paper.shift import paper_samples

ENGINES = ("local", "ray")
WORK, STOP, END = range(3)  # what processes are told


@dataclass(frozen=True)
class Place:
    """Where data are, where results go, and what to compute on."""

    store: Path
    data_dir: Path | None
    device: str = "cpu"
    threads: int | None = None  # CPU threads of one process


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
    so that a process reads its files once. Ctrl-C stops all local processes at their next step;
    what they have of their jobs is saved, and the next run goes on from there. Where one of several
    local processes is killed, the others end too, and a RuntimeError says so.

    Parameters
    ----------
    jobs : sequence of Job
    place : Place
    engine : {"local", "ray"}
        ``"ray"`` needs ``pip install 'giw[ray]'`` and uses the cluster that ``ray.init`` finds,
        or starts a local one; store and data must be folders that all its machines see.
    processes : int, default=1
        Local processes; several may share one GPU. 1 runs in this process. On Ray: how many jobs
        share a GPU.
    """
    check_engine(engine)
    if engine == "ray":
        yield from _on_ray(jobs, place, processes)
    elif processes == 1:
        for job in jobs:
            yield run_job(job, place)
    else:
        yield from _side_by_side(jobs, place, processes)


def _side_by_side(jobs: Sequence[Job], place: Place, processes: int) -> Iterator[Done]:
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    # a plain byte: a process that is killed while it waits for an Event blocks whoever sets it
    told = context.RawValue("b", WORK)
    pool = ProcessPoolExecutor(
        processes, mp_context=context, initializer=_listen, initargs=(os.getpid(), told)
    )
    futures: list[Future[Done]] = []
    try:
        with _interrupts_held_back():
            futures += [pool.submit(run_job, job, place) for job in jobs]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        raise RuntimeError(
            "one of the processes was killed, as happens when memory runs out, and the others "
            "ended with it; finished runs are kept: run the same command again to go on"
        ) from None
    except KeyboardInterrupt:
        raise Interrupted("all processes were stopped, and their jobs are saved") from None
    finally:  # also where the reader wants no more
        told.value = STOP
        running = [future for future in futures if not future.cancel()]
        pool.shutdown(wait=False)
        try:
            wait(running)  # they save what they have
        finally:
            told.value = END  # an idle one may wait for a lock that a killed one holds


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Hear Ctrl-C only afterwards; processes that are started meanwhile never hear it.

    It reaches every process of a terminal, and one that is still importing would die of it.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _listen(parent: int, told: Any) -> None:
    """Do what the parent tells this process, and end with it: it would keep its share of the GPU.

    Ctrl-C reaches every process of a terminal; here the parent alone hears it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def listen() -> None:
        while os.getppid() == parent and told.value != END:
            if told.value == STOP:
                ask_to_stop()
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()


def run_job(job: Job, place: Place) -> Done:
    """Run what no other process is running or has run, and write each result."""
    if place.threads is not None:
        torch.set_num_threads(place.threads)
    store = Store(place.store)
    with ExitStack() as claims:
        # claimed first and looked up second: a run that another process has just written counts
        mine = [run for run in job.runs if claims.enter_context(store.claim(run))]
        runs = tuple(run for run in mine if not store.has(run))
        if not runs:
            return Done(job, 0)
        try:
            runner = _runner(job.first.dataset, place)
            unfinished = store.unfinished(runs)
            results = runner.run(Job(runs), checkpoint=unfinished)
            store.write_all(results)
            forget(unfinished)
        except (ValueError, OSError, RuntimeError) as error:
            return Done(job, 0, f"{type(error).__name__}: {error}")
    return Done(job, len(runs), accuracy=tuple(result.accuracy for result in results))


_SAMPLES: dict[tuple[str, Path | None], Samples] = {}
_RUNNERS: dict[tuple[str, Path | None, str], Runner] = {}


def samples_of(dataset: str, data_dir: Path | None) -> Samples:
    """Training pool and test sample of a data set, read once in a process."""
    key = dataset, data_dir
    if key not in _SAMPLES:
        _SAMPLES[key] = paper_samples(dataset, data_dir)
    return _SAMPLES[key]


def _runner(dataset: str, place: Place) -> Runner:
    """The runner of this process for a data set; nets and draws of only one are kept."""
    key = dataset, place.data_dir, place.device
    if key not in _RUNNERS:
        _RUNNERS.clear()
        _RUNNERS[key] = Runner(samples_of(dataset, place.data_dir), device=place.device)
    return _RUNNERS[key]


def check_engine(engine: str) -> None:
    """Refuse an engine that is unknown or not installed, before anything is planned."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if engine == "ray":
        try:
            import ray  # noqa: F401
        except ImportError:
            raise ValueError("engine 'ray' needs Ray: pip install 'giw[ray]'") from None


def _on_ray(jobs: Sequence[Job], place: Place, per_gpu: int) -> Iterator[Done]:
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False)  # the cluster of RAY_ADDRESS, or a local one
    gpus = 1 / per_gpu if place.device.startswith("cuda") else 0.0
    task: Any = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=2)(run_job)
    waiting = {task.remote(job, place): job for job in jobs}
    while waiting:
        (ready,), _ = ray.wait(list(waiting), num_returns=1)
        job = waiting.pop(ready)
        try:
            yield ray.get(ready)
        except ray.exceptions.RayError as error:  # a worker died; the others go on
            reason = str(error).strip().splitlines()[0]
            yield Done(job, 0, f"{type(error).__name__}: {reason}")


def default_threads(processes: int) -> int:
    """CPU threads of each of so many processes."""
    return max(1, (os.cpu_count() or 1) // processes)
