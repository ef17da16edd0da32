"""Let the disk be full after every single byte of what is written."""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from tests.soak.targets import some_results
from torch import nn

import giw
from giw.nets.training.checkpoint import Checkpoint, Saved
from giw.pages.page import Page, write_page
from giw.paper.rows import Store


class FullFile(io.FileIO):
    """Takes bytes while there is room on the disk, which all files share."""

    def __init__(self, path, room: list[int]) -> None:
        super().__init__(path, "x")
        self.room = room

    def write(self, data) -> int:
        taken = super().write(memoryview(data)[: self.room[0]]) if self.room[0] else 0
        self.room[0] -= taken
        if not taken and len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return taken


@contextmanager
def disk_with(room: int) -> Iterator[None]:
    """A disk on which so many bytes are left."""
    left = [room]

    def opened(path, mode):
        return io.BufferedWriter(FullFile(path, left))

    with patch("giw.writing.open", opened, create=True):
        yield


@dataclass
class Filled:
    """What became of one kind of file."""

    name: str
    tries: int = 0
    failed: int = 0
    losses: int = 0

    def line(self) -> str:
        return f"{self.name:<26}{self.tries:>7}{self.failed:>8}{self.losses:>8}"


HEADER = f"{'file':<26}{'tries':>7}{'no room':>8}{'losses':>8}"


def fill(name: str, write: Callable[[int], None], read: Callable[[], int], step: int) -> Filled:
    """Write the first version, then the second on a disk with room for 0, step, 2 step, … bytes.

    Until it succeeds, the first version must be read back, and the error must be one line that
    says so.
    """
    found, room = Filled(name), 0
    write(1)
    while True:
        found.tries += 1
        try:
            with disk_with(room):
                write(2)
        except OSError as error:
            found.failed += 1
            said = str(error)
            told = "No space left" in said and "cannot write" in said and "unchanged" in said
            found.losses += not told or len(said.splitlines()) != 1 or read() != 1
        else:
            found.losses += read() != 2
            return found
        room += step


def fill_all(place: Path, step: int) -> Iterator[Filled]:
    """Checkpoints, results, saved models and pages."""
    for name, _, write, read, coarse in kinds(place):
        yield fill(name, write, read, coarse * step)


def kinds(place: Path) -> Iterator[tuple[str, Path, Callable[[int], None], Callable[[], int], int]]:
    """Each kind of file: its folder, how a version is written and read, and how large it is."""
    folder = place / "training"
    store = Checkpoint(folder / "run", {})

    def save(version: int) -> None:
        store.save(Saved("train", version, {"params": {"a": torch.ones(2)}}, {}))

    yield "checkpoint", folder, save, lambda: store.load().epoch, 1

    def version_of(version: int):
        return [replace(result, seconds=float(version)) for result in some_results()]

    def seen() -> int:
        good, bad = Store(place / "results").read_all()
        (version,) = {result.seconds for result in good}
        return -1 if bad else int(version)

    def write_results(version: int) -> None:
        Store(place / "results").write(version_of(version))

    yield "results of a job", place / "results", write_results, seen, 1
    rows, labels = np.arange(12.0)[:, None], np.arange(12) % 2
    model = giw.GIWClassifier(nn.Linear(1, 2), method="train_only", max_epochs=1, random_state=0)
    model.fit(rows, labels, X_val=rows, y_val=labels)

    def save_model(version: int) -> None:
        for net in model.nets_.values():
            nn.init.constant_(net.weight, version)  # files of other names
        model.set_params(batch_size=version).save(place / "models" / "model")

    def saved_version() -> int:
        return giw.load(place / "models" / "model", module=nn.Linear(1, 2)).batch_size

    yield "saved model", place / "models", save_model, saved_version, 4
    page = place / "pages" / "report.html"

    def write_report(version: int) -> None:
        write_page(Page(f"version {version}", "an answer"), page)

    yield "report", page.parent, write_report, lambda: 1 + ("version 2" in page.read_text()), 16
