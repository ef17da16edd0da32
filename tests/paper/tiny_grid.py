"""A grid small enough to run in seconds, for tests that start it in processes of their own."""

from pathlib import Path

import numpy as np

from giw.paper.parallel import Done, Place, run_jobs
from giw.paper.plan import Job, group, plan
from giw.paper.shifts import Sample

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


def small_samples(dataset: str, data_dir: Path | None) -> tuple[Sample, Sample]:
    """In place of the files of a data set."""
    return FEWER


def small_place(folder: Path) -> Place:
    """One thread, so that every process rounds alike, and all that is done is saved at once."""
    return Place(Path(folder), None, threads=1, checkpoint_seconds=0.0, read=small_samples)


def tiny_jobs() -> list[Job]:
    few = {"datasets": ["mnist"], "cases": ["iii"], "shifts": ["label_noise_0.2"]}
    return group(plan(**few, methods=METHODS, trials=2, epochs=2, scale="laptop"))


def run_tiny_grid(folder: Path, **choice) -> list[Done]:
    """Run what is not done yet."""
    return list(run_jobs(tiny_jobs(), small_place(folder), **choice))


def tell_tiny_grid(folder: Path, written) -> None:
    """Run it in a process of its own and tell how many runs were written."""
    written.put(sum(done.written for done in run_tiny_grid(folder)))
