"""A bar that moves with the epochs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from giw.nets.training.config import TrainingConfig
from giw.nets.training.loop import OnEpoch
from giw.pages.progress import make_progress


def note_of(values: dict[str, float]) -> str:
    """The two values worth a glance."""
    parts = [f"loss {values['loss']:.3f}"]
    if "test_accuracy" in values:
        parts.append(f"test {100 * values['test_accuracy']:.1f} %")
    return ", ".join(parts)


@contextmanager
def epoch_bar(name: str, config: TrainingConfig, *, shown: bool) -> Iterator[OnEpoch]:
    """A bar over all epochs of one run, pretraining included."""
    with make_progress(shown=shown) as progress:
        task = progress.add_task(name, total=config.pretrain_epochs + config.epochs, note="")

        def on_epoch(phase: str, epoch: int, values: dict[str, float]) -> None:
            done = epoch + 1 + (config.pretrain_epochs if phase == "train" else 0)
            progress.update(task, completed=done, note=note_of(values))

        yield on_epoch
