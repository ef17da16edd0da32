"""A bar that moves with the epochs of trainings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from giw.nets.training import OnEpoch, TrainingConfig
from giw.pages.progress import make_progress


@contextmanager
def training_bar() -> Iterator[Callable[[TrainingConfig, str], OnEpoch]]:
    """A bar for each training, pretraining included, from its settings and its name."""
    with make_progress(shown=True) as progress:

        def watch(config: TrainingConfig, name: str) -> OnEpoch:
            task = progress.add_task(name, total=None, note="")

            def on_epoch(phase: str, epoch: int, values: dict[str, float]) -> None:
                total = config.pretrain_epochs if phase == "pretrain" else config.epochs
                what = f"{name}, {phase}ing"
                note = f"loss {values['loss']:.3f}"
                if "test_accuracy" in values:
                    note += f", test {100 * values['test_accuracy']:.1f} %"
                progress.update(task, description=what, total=total, completed=epoch + 1, note=note)

            return on_epoch

        yield watch
