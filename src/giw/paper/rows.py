"""Results on disk: a line of JSON for each run, a file for each setting, written whole or not."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from giw.paper.plan import Run
from giw.writing import write_whole

FORMAT = 1
LAST = 10  # epochs that the paper averages over
# What a row may raise whose checksum fits, which is no proof of anything else.
STRANGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Result:
    """What one run left behind."""

    run: Run
    curve: NDArray[np.float64]  # test accuracy after each epoch, or after the last ten, 0 to 1
    seconds: float  # wall time; where trials are trained side by side, its share
    split: dict[str, float] = field(default_factory=dict)  # quality; empty without a split
    weights: dict[str, float] = field(default_factory=dict)  # effective share, where logged
    about: dict[str, str] = field(default_factory=dict)  # versions, commit, device
    extra: dict[str, list[float]] = field(default_factory=dict)  # for figures, as split scores
    n_test: int | None = None  # makes a curve a row of small whole numbers on the disk

    @property
    def accuracy(self) -> float:
        """Mean over the last ten epochs, the paper's figure of merit."""
        return float(np.mean(self.curve[-LAST:]))


# The folder ---------------------------------------------------------------------------------------


class Store:
    """A folder of results.

    A file is written beside the old one, flushed to the disk and renamed, so that a reader sees all
    of it or nothing; each line carries a checksum of itself. Processes may share a folder: each
    locks a run before it starts, and a lock ends with its process.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, run: Run) -> Path:
        """The file of a run's setting."""
        return self.folder / f"{run.dataset}-{run.case}-{run.shift}.jsonl"

    def files(self) -> list[Path]:
        """All files that may hold results."""
        return sorted(self.folder.glob("*.jsonl"))

    def has(self, run: Run) -> bool:
        """Whether a run is done; files are read again only where they have changed."""
        path = self.path(run)
        found = path.stat() if path.exists() else None
        return found is not None and run.key in _keys(path, found.st_mtime_ns, found.st_size)

    def write(self, results: Sequence[Result]) -> list[Path]:
        """Add results to the files of their settings; a run that is there already is replaced.

        Trials that were trained side by side are of one setting and so are written all or none:
        they round otherwise than alone, and a half-written job would be finished with other
        neighbours. Lines are sorted: the same results give the same bytes.
        """
        new: dict[Path, dict[str, str]] = {}
        for result in results:
            new.setdefault(self.path(result.run), {})[result.run.key] = encode(result) + "\n"
        for path, lines in new.items():
            with self._locked(path.stem):
                old = read_rows(path) if path.exists() else []
                kept = {row.result.run.key: row.text for row in old if row.result} | lines
                damaged = [row.text for row in old if not row.result]
                write_whole(path, "".join([*(kept[key] for key in sorted(kept)), *damaged]))
        return sorted(new)

    def read_all(self) -> tuple[list[Result], list[str]]:
        """All good results in a fixed order, and one line for each file or row that is not one."""
        if not self.folder.is_dir():
            raise ValueError(f"{self.folder} is no folder of results; run giw paper run first")
        rows = [row for path in self.files() for row in read_rows(path)]
        good = [row.result for row in rows if row.result]
        return good, [row.error for row in rows if row.result is None]

    def unfinished(self, runs: Sequence[Run]) -> Path:
        """Where training of runs that are done side by side is saved until they are written."""
        return self.folder / "unfinished" / f"{runs[0].key}-{len(runs)}.safetensors"

    def forget_finished(self, runs: Iterable[Run]) -> None:
        """Remove the saved training of runs that are done: its process was killed just before."""
        for path in sorted((self.folder / "unfinished").glob("*.safetensors*")):
            if any(path.name.startswith(f"{run.key}-") and self.has(run) for run in runs):
                path.unlink(missing_ok=True)

    def set_damaged_aside(self) -> list[str]:
        """Move damaged rows out of the way, to be done again; returns a line for each."""
        moved = []
        for path in self.files():
            with self._locked(path.stem):
                rows = read_rows(path)
                damaged = [row for row in rows if row.result is None]
                if damaged:
                    aside = self.folder / "set_aside" / path.name
                    before = aside.read_text(encoding="utf-8") if aside.exists() else ""
                    write_whole(aside, before + "".join(row.text for row in damaged))
                    write_whole(path, "".join(row.text for row in rows if row.result))
                    moved += [row.error for row in damaged]
                if len(damaged) == len(rows):
                    path.unlink()
        return moved

    @contextmanager
    def lock(self, run: Run) -> Iterator[bool]:
        """Try to be the only process that works on a run; yields whether that worked."""
        try:
            with self._locked(run.key, blocking=False):
                yield True
        except Timeout:
            yield False

    def _locked(self, name: str, *, blocking: bool = True) -> FileLock:
        path = self.folder / "locks" / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(path, blocking=blocking)


def read_folder(folder: str | os.PathLike[str]) -> tuple[list[Result], list[str]]:
    """Results of a folder, and a line for each damaged row; ValueError where there is none."""
    results, damaged = Store(folder).read_all()
    if not results:
        found = f"none of its {len(damaged)} files is whole: {damaged[0]}" if damaged else "empty"
        raise ValueError(f"no results in {folder}: {found}; run giw paper run first")
    return results, damaged


class StoredRow(NamedTuple):
    """A line of a file with its end, and the result or what is wrong with it."""

    text: str
    result: Result | None
    error: str = ""


def read_rows(path: Path) -> list[StoredRow]:
    """All rows of a file, good and damaged."""
    try:
        lines = path.read_bytes().decode("utf-8", errors="replace").rstrip("\n").split("\n")
    except OSError as error:
        return [StoredRow("", None, f"{path.name} cannot be read: {error}")]
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(StoredRow(line + "\n", decode(line, f"{path.name}, line {number},")))
        except ValueError as error:
            rows.append(StoredRow(line + "\n", None, str(error)))
    return rows


@lru_cache(maxsize=32)
def _keys(path: Path, changed: int, size: int) -> set[str]:
    """Keys of the runs in a file as it was then."""
    return {row.result.run.key for row in read_rows(path) if row.result}


# One row ------------------------------------------------------------------------------------------


def encode(result: Result) -> str:
    """A result as one line of JSON with a checksum of itself."""
    curve = [_short(round(float(value), 6)) for value in result.curve]
    if result.n_test is not None:  # changes in the number of right answers are short
        right = np.rint(result.curve * result.n_test).astype(int)
        curve = [int(step) for step in np.diff(right, prepend=0)]
    body = {
        "run": asdict(result.run),
        "curve": curve,
        "seconds": round(result.seconds, 3),
        "split": {name: round(value, 6) for name, value in result.split.items()},
        "weights": {name: round(value, 6) for name, value in result.weights.items()},
        "about": result.about,
        "extra": {name: [_short(v) for v in values] for name, values in result.extra.items()},
    }
    if result.n_test is not None:
        body["n_test"] = result.n_test
    whole = {"format": FORMAT, "crc32": _crc(body), **body}
    return json.dumps(whole, allow_nan=False, separators=(",", ":"))


def decode(text: str, name: str) -> Result:
    """The result that a line holds; one that is damaged or not ours is a ValueError."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} cannot be read: {error}") from None
    if not isinstance(values, dict) or "format" not in values or "crc32" not in values:
        raise ValueError(f"{name} is no result of giw paper run")
    found, crc = values.pop("format"), values.pop("crc32")
    if found != FORMAT:
        raise ValueError(f"{name} has format {str(found)[:20]!r}, this version reads {FORMAT}")
    try:
        if (right := _crc(values)) != crc:
            raise ValueError(f"its checksum is {right}, not {str(crc)[:20]!r}")
        return _result(values)
    except STRANGE as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(f"{name} was altered, or lacks what a result has: {said}") from None


def _result(values: dict[str, Any]) -> Result:
    numbers = {}
    for part in ("split", "weights"):
        array = _array(list(values[part].values()), part)
        numbers[part] = dict(zip(values[part], array.tolist(), strict=True))
    about, curve = dict(values["about"]), _array(values["curve"], "curve")
    if not all(isinstance(value, str) for value in about.values()) or len(curve) == 0:
        raise ValueError("about must hold text, and a curve something")
    n_test = values.get("n_test")
    if n_test is not None:
        if type(n_test) is not int or n_test < 1:
            raise ValueError("n_test must be a positive whole number")
        curve = np.round(np.cumsum(curve) / n_test, 6)
    extra = {name: _array(part, name).tolist() for name, part in values["extra"].items()}
    seconds = float(_array([values["seconds"]], "seconds")[0])
    run = Run.from_dict(values["run"])
    return Result(run, curve, seconds, **numbers, about=about, extra=extra, n_test=n_test)


def _array(values: Any, name: str) -> NDArray[np.float64]:
    """A list of finite numbers."""
    if not isinstance(values, list) or not all(type(v) in (int, float) for v in values):
        raise ValueError(f"{name} must be a list of numbers")
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def _short(value: float) -> float | int:
    """Whole numbers without their ``.0``: half the bytes of an image."""
    return int(value) if float(value).is_integer() else value


def _crc(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())
