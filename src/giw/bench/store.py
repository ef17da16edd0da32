"""Results on disk: one small JSON file for each run, written whole or not at all."""

from __future__ import annotations

import json
import os
import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.bench.plan import Run
from giw.writing import write_whole

FORMAT = 1


@dataclass(frozen=True)
class Result:
    """What one run left behind.

    Attributes
    ----------
    run : Run
    curve : array of shape (epochs,)
        Test accuracy after each epoch, between 0 and 1.
    seconds : float
        Wall time of the run; where trials are trained side by side, its share.
    split : dict
        Quality of the split: ``alpha``, ``true_alpha``, ``support_share``, ``auroc``,
        ``false_outside``, ``false_inside``; empty where the method does not split.
    weights : dict
        Mean effective share of the training batch over the last epochs, where logged.
    about : dict
        Versions, commit, device.
    extra : dict
        Small arrays for figures, such as split scores.
    """

    run: Run
    curve: NDArray[np.float64]
    seconds: float
    split: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    extra: dict[str, list[float]] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """Mean over the last ten epochs, the paper's figure of merit."""
        return float(np.mean(self.curve[-10:]))


class Store:
    """A folder of results.

    Every result is written to a temporary file, flushed to the disk and renamed, so that a reader
    sees all of it or nothing; it carries a checksum of itself. Two processes may share a folder:
    each claims a run before it starts, and a claim whose process is gone is void.

    Parameters
    ----------
    folder : path
        Made where needed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, run: Run) -> Path:
        """Where the result of a run is."""
        return self.folder / f"{run.key}.json"

    def has(self, run: Run) -> bool:
        """Whether a run is done."""
        return self.path(run).exists()

    def write(self, result: Result) -> Path:
        """Write one result, whole or not at all."""
        body = {
            "run": result.run.as_dict(),
            "curve": [round(float(value), 6) for value in result.curve],
            "seconds": round(result.seconds, 3),
            "split": result.split,
            "weights": result.weights,
            "about": result.about,
            "extra": result.extra,
        }
        text = json.dumps({"format": FORMAT, "crc32": _crc(body), **body}, allow_nan=False)
        path = self.path(result.run)
        write_whole(path, text + "\n")
        return path

    def read(self, path: Path) -> Result:
        """Read one result; a file that is damaged or not ours is a ValueError that says why."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path.name} cannot be read: {error}") from None
        if not isinstance(values, dict) or "format" not in values or "crc32" not in values:
            raise ValueError(f"{path.name} is no result of giw bench")
        found, crc = values.pop("format"), values.pop("crc32")
        if found != FORMAT:
            raise ValueError(f"{path.name} has format {found}, this version reads {FORMAT}")
        if _crc(values) != crc:
            raise ValueError(f"{path.name} was altered: its checksum is {_crc(values)}, not {crc}")
        try:
            run = Run.from_dict(values["run"])
            curve = np.asarray(values["curve"], dtype=np.float64)
            rest = {name: dict(values[name]) for name in ("split", "weights", "about", "extra")}
            result = Result(run, curve, float(values["seconds"]), **rest)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path.name} lacks what a result has: {error}") from None
        if curve.ndim != 1 or len(curve) == 0 or not np.isfinite(curve).all():
            raise ValueError(f"{path.name} has no learning curve")
        return result

    def read_all(self) -> tuple[list[Result], list[str]]:
        """All good results in a fixed order, and one line for each file that is not one."""
        if not self.folder.is_dir():
            raise ValueError(f"{self.folder} is no folder of results; run giw bench first")
        good, bad = [], []
        for path in sorted(self.folder.glob("*.json")):
            try:
                good.append(self.read(path))
            except ValueError as error:
                bad.append(str(error))
        return good, bad

    def set_aside(self, path: Path) -> Path:
        """Move a damaged file out of the way, so that its run is done again."""
        target = self.folder / "set_aside" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)
        return target

    @contextmanager
    def claim(self, run: Run) -> Iterator[bool]:
        """Try to be the only process that works on a run; yields whether that worked."""
        path = self.folder / "claims" / run.key
        path.parent.mkdir(parents=True, exist_ok=True)
        mine = _take(path)
        try:
            yield mine
        finally:
            if mine:
                path.unlink(missing_ok=True)


def _crc(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def _take(path: Path) -> bool:
    """Create a claim, or take over one whose process is gone."""
    me = f"{socket.gethostname()} {os.getpid()}"
    for _ in range(2):
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(me)
            return True
        except FileExistsError:
            if _alive(path):
                return False
            path.unlink(missing_ok=True)
    return False


def _alive(path: Path) -> bool:
    """Whether the process that made a claim may still be at work; another host's always may."""
    try:
        host, _, pid = path.read_text(encoding="utf-8").rpartition(" ")
    except FileNotFoundError:
        return False
    if host != socket.gethostname() or not pid.isdigit():
        return bool(host)  # an empty claim is one whose writer died before its first byte
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
