"""Results on disk: one row of JSON for each run, written whole or not at all.

A run is one file while a grid is at work. For keeping, runs are packed: the same JSON, one line for
each run, in one file for each setting. A folder may hold both.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from giw.paper.plan import Run
from giw.writing import whole_file, write_whole

FORMAT = 1
LAST = 10  # epochs that the paper averages over


@dataclass(frozen=True)
class Result:
    """What one run left behind.

    Attributes
    ----------
    run : Run
    curve : array of shape (epochs,)
        Test accuracy after each epoch, or after the last ten, between 0 and 1.
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
    n_test : int or None
        Number of test points, which makes a curve a row of small whole numbers on the disk.
    """

    run: Run
    curve: NDArray[np.float64]
    seconds: float
    split: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    extra: dict[str, list[float]] = field(default_factory=dict)
    n_test: int | None = None

    @property
    def accuracy(self) -> float:
        """Mean over the last ten epochs, the paper's figure of merit."""
        return float(np.mean(self.curve[-LAST:]))


# Which small arrays are kept: those that a figure of the report is drawn from ---------------------

KERNEL_SHIFTS = ("support", "label_noise_0.2")  # the paper shows kernels under these, in colour


def shows_kernels(run: Run) -> bool:
    """Whether the first layer of this run is drawn."""
    return run.dataset == "color_mnist" and run.shift in KERNEL_SHIFTS and not run.variant


def shows_images(run: Run) -> bool:
    """Whether sample images are drawn from this run; one in the grid is enough."""
    usual = run.method == "giw" and run.protocol == "honest" and not run.variant
    return run.dataset == "color_mnist" and run.shift == "support" and usual


def for_figures(run: Run, extra: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """The arrays among some that a figure needs; a few hundred results are to stay small."""
    needed: set[str] = set()
    if run.trial == 0 and shows_kernels(run):
        needed |= {"kernels", "kernels_shape"}
    if run.trial == 0 and shows_images(run):
        needed |= {"train_images", "train_images_shape", "val_images", "val_images_shape"}
    if run.shift == "support" and run.variant in ("", "osvm_text", "osvm_code"):
        needed |= {"p_value", "score", "inside"}
    return {name: values for name, values in extra.items() if name in needed}


# The folder ---------------------------------------------------------------------------------------


class Store:
    """A folder of results.

    Every result is written to a temporary file, flushed to the disk and renamed, so that a reader
    sees all of it or nothing; it carries a checksum of itself. Processes may share a folder: each
    locks a run before it starts, and a lock ends with its process.

    Parameters
    ----------
    folder : path
        Made where needed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._packed: dict[Path, tuple[tuple[int, int], set[str]]] = {}

    def path(self, run: Run) -> Path:
        """Where the result of a run is while it is not packed."""
        return self.folder / f"{run.key}.json"

    def has(self, run: Run) -> bool:
        """Whether a run is done, in a file of its own or packed."""
        return self.path(run).exists() or any(run.key in keys for keys in self._packed_keys())

    def write(self, result: Result) -> Path:
        """Write one result, whole or not at all."""
        return self.write_all([result])[0]

    def write_all(self, results: Sequence[Result]) -> list[Path]:
        """Write results that were made together, all but at once.

        All are on the disk before the first gets its name, so that a process killed at any moment
        leaves practically always all or none: trials trained side by side with others round
        otherwise than alone, and a half-written job would be finished with other neighbours.
        """
        paths = [self.path(result.run) for result in results]
        with ExitStack() as named_at_the_end:
            for path, result in zip(paths, results, strict=True):
                file = named_at_the_end.enter_context(whole_file(path))
                file.write(encode(result).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        return paths

    def read(self, path: Path) -> Result:
        """Read one result; a file that is damaged or not ours is a ValueError that says why."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name} cannot be read: {error}") from None
        return decode(text, path.name)

    def read_all(self) -> tuple[list[Result], list[str]]:
        """All good results in a fixed order, and one line for each file or row that is not one."""
        if not self.folder.is_dir():
            raise ValueError(f"{self.folder} is no folder of results; run giw paper run first")
        good, bad = [], []
        for path in sorted(self.folder.glob("*.json")):
            try:
                good.append(self.read(path))
            except ValueError as error:
                bad.append(str(error))
        alone = {result.run.key for result in good}
        for path in self.packs():
            for row in read_pack(path):
                if row.result is None:
                    bad.append(row.error)
                elif row.result.run.key not in alone:
                    good.append(row.result)
        return good, bad

    def packs(self) -> list[Path]:
        """The files of packed results."""
        return sorted(self.folder.glob("*.jsonl"))

    def pack(self, results: Iterable[Result]) -> list[Path]:
        """Add results to one file for each setting, with the arrays that figures need and no more.

        A run that is packed already is replaced. Rows are sorted, so the same results give the
        same bytes.
        """
        by_pack: dict[Path, dict[str, Result]] = {}
        for result in results:
            run = result.run
            path = self.folder / f"{run.dataset}-{run.case}-{run.shift}.jsonl"
            by_pack.setdefault(path, {})[run.key] = result
        for path, new in by_pack.items():
            old = [row.result for row in read_pack(path) if row.result] if path.exists() else []
            rows = {result.run.key: result for result in old} | new
            kept = [
                replace(rows[key], extra=for_figures(rows[key].run, rows[key].extra))
                for key in sorted(rows)
            ]
            write_whole(path, "".join(encode(result) + "\n" for result in kept))
        return sorted(by_pack)

    def unfinished(self, runs: Sequence[Run]) -> Path:
        """Where training of runs that are done side by side is saved until they are written."""
        return self.folder / "unfinished" / f"{runs[0].key}-{len(runs)}.safetensors"

    def forget_finished(self, runs: Iterable[Run]) -> None:
        """Remove the saved training of runs that are done: its process was killed just before."""
        for path in sorted((self.folder / "unfinished").glob("*.safetensors*")):
            if any(path.name.startswith(f"{run.key}-") and self.has(run) for run in runs):
                path.unlink(missing_ok=True)

    def set_damaged_aside(self, runs: Iterable[Run]) -> list[str]:
        """Move damaged files and rows of these runs out of the way, so that they are done again.

        Returns one line for each, with its reason.
        """
        moved, aside = [], self.folder / "set_aside"
        for run in runs:
            path = self.path(run)
            try:
                if path.exists():
                    self.read(path)
            except ValueError as error:
                aside.mkdir(parents=True, exist_ok=True)
                os.replace(path, aside / path.name)
                moved.append(str(error))
        for path in self.packs():
            rows = read_pack(path)
            damaged = [row for row in rows if row.result is None]
            if damaged:
                there = aside / path.name
                before = there.read_text(encoding="utf-8") if there.exists() else ""
                write_whole(there, before + "".join(row.text + "\n" for row in damaged))
                whole = [row.text + "\n" for row in rows if row.result is not None]
                write_whole(path, "".join(whole))
                moved += [row.error for row in damaged]
        return moved

    @contextmanager
    def lock(self, run: Run) -> Iterator[bool]:
        """Try to be the only process that works on a run; yields whether that worked."""
        path = self.folder / "locks" / f"{run.key}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, blocking=False)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def _packed_keys(self) -> Iterator[set[str]]:
        """Keys of the good rows of each pack, read again only where the file has changed."""
        for path in self.packs():
            stat = path.stat()
            stamp = stat.st_mtime_ns, stat.st_size
            if self._packed.get(path, (None,))[0] != stamp:
                keys = {row.result.run.key for row in read_pack(path) if row.result}
                self._packed[path] = stamp, keys
            yield self._packed[path][1]


def read_folder(folder: str | os.PathLike[str]) -> tuple[list[Result], list[str]]:
    """Results of a folder, and a line for each damaged file; ValueError where there is none."""
    results, damaged = Store(folder).read_all()
    if not results:
        found = f"none of its {len(damaged)} files is whole: {damaged[0]}" if damaged else "empty"
        raise ValueError(f"no results in {folder}: {found}; run giw paper run first")
    return results, damaged


class PackedRow(NamedTuple):
    """A line of a packed file: its text, and the result or what is wrong with it."""

    text: str
    result: Result | None
    error: str = ""


def read_pack(path: Path) -> list[PackedRow]:
    """All rows of a packed file, good and damaged."""
    try:
        lines = path.read_bytes().decode("utf-8", errors="replace").rstrip("\n").split("\n")
    except OSError as error:
        return [PackedRow("", None, f"{path.name} cannot be read: {error}")]
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(PackedRow(line, decode(line, f"{path.name}, line {number},")))
        except ValueError as error:
            rows.append(PackedRow(line, None, str(error)))
    return rows


# One row ------------------------------------------------------------------------------------------


def encode(result: Result) -> str:
    """A result as one line of JSON with a checksum of itself."""
    body = {
        "run": result.run.as_dict(),
        "curve": _curve_numbers(result),
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


def _curve_numbers(result: Result) -> list[float]:
    """Accuracies; where the number of test points is known, changes in the number of right ones."""
    if result.n_test is None:
        return [_short(round(float(value), 6)) for value in result.curve]
    right = np.rint(result.curve * result.n_test).astype(int)
    return [int(step) for step in np.diff(right, prepend=0)]


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
        right = _crc(values)
        if right != crc:
            raise ValueError(f"its checksum is {right}, not {str(crc)[:20]!r}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} was altered: {error}") from None
    try:
        return _result(values)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(f"{name} lacks what a result has: {said}") from None


def _result(values: dict[str, Any]) -> Result:
    """From values whose checksum fits, which is no proof of anything else."""
    split, weights = (_numbers(values[part], part) for part in ("split", "weights"))
    about = dict(values["about"])
    if not all(isinstance(value, str) for value in about.values()):
        raise ValueError("about must hold text")
    curve, n_test = _array(values["curve"], "curve"), values.get("n_test")
    if len(curve) == 0:
        raise ValueError("no learning curve")
    if n_test is not None:
        if type(n_test) is not int or n_test < 1:
            raise ValueError("n_test must be a positive whole number")
        curve = np.round(np.cumsum(curve) / n_test, 6)
    extra = {name: _array(part, name).tolist() for name, part in values["extra"].items()}
    (seconds,) = _array([values["seconds"]], "seconds")
    run = Run.from_dict(values["run"])
    return Result(run, curve, float(seconds), split, weights, about, extra, n_test)


def _numbers(values: dict[str, Any], name: str) -> dict[str, float]:
    return dict(zip(values, _array(list(values.values()), name).tolist(), strict=True))


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
