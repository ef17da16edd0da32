"""A grid small enough to run in seconds, for tests that start it in processes of their own."""

import os
import time
from pathlib import Path

import numpy as np

from giw.paper.bench import engines
from giw.paper.bench.engines import Done, Place, run_jobs
from giw.paper.bench.plan import Job, group, plan
from giw.paper.readers import Sample

METHODS = ("val_only", "pooled", "pretrain_val", "train_only", "giw")


def small_pool(seed: int, per_digit: int = 30) -> Sample:
    """Images of ten "digits", each a bright bar of its own, as 32 × 32 bytes."""
    rng = np.random.default_rng(seed)
    digit = np.repeat(np.arange(10), per_digit)
    x = rng.integers(0, 40, size=(len(digit), 1, 32, 32), dtype=np.uint8)
    for row, d in enumerate(digit):
        x[row, 0, 3 * d : 3 * d + 3, :] += 180
    return Sample(x, digit % 2, digit, classes=("even", "odd"))


SAMPLES = (small_pool(0), small_pool(1, per_digit=10))
FEWER = (small_pool(0, per_digit=12), small_pool(1, per_digit=4))


def use_small_samples() -> None:
    """Make the engines of this process find the small images."""
    engines.paper_samples = lambda dataset, data_dir: FEWER


def tiny_jobs() -> list[Job]:
    return group(
        plan(
            datasets=["mnist"],
            cases=["iii"],
            shifts=["label_noise_0.2"],
            methods=METHODS,
            trials=2,
            epochs=2,
        )
    )


def run_tiny_grid(folder: Path, **choice) -> list[Done]:
    """Run what is not done yet; one thread, so that every process rounds alike."""
    use_small_samples()
    return list(run_jobs(tiny_jobs(), Place(Path(folder), None, threads=1), **choice))


def tell_tiny_grid(folder: Path, written) -> None:
    """Run it in a process of its own and tell how many runs were written."""
    written.put(sum(done.written for done in run_tiny_grid(folder)))


def wait_long(job: Job, place: Place) -> Done:
    """In place of a job: tell who runs it, and take time."""
    (place.store / f"pid-{os.getpid()}").touch()
    time.sleep(600)
    return Done(job, 0)


def wait_in_workers(folder: Path) -> None:
    """Two processes side by side that do nothing for long."""
    engines.run_job = wait_long
    list(run_jobs(tiny_jobs(), Place(Path(folder), None), processes=2))


def die(job: Job, place: Place) -> Done:
    """In place of a job: the process ends without a word, as when memory runs out."""
    os._exit(1)
