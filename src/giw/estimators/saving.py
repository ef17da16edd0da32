"""Fitted estimators on disk, without pickle.

A folder holds ``giw.json``, which has a checksum of every other file and of itself,
``model-….skops`` with the estimator, and where it holds nets or tensors ``net-….safetensors``.
Loading builds only classes that this package names, and scikit-learn's; it imports nothing that
a file asks for. Checksums tell accidents and careless edits; they are no signature.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from giw import __version__
from giw.estimators.sklearn_on_disk import from_skops, to_skops
from giw.writing import hidden_beside, remove_abandoned, room_for, sync_folder, write_whole

FORMAT, VERSION = "giw model", 2
INDEX = "giw.json"
Json = Any


class SavesToFolder:
    """Gives an estimator the method ``save``."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted estimator into a folder; :func:`giw.load` reads it.

        The folder appears whole or not at all; a model that is there already is replaced.
        """
        return save(self, path)

    def _set_apart(self) -> tuple[Any, dict[str, bytes]]:
        """The estimator without what skops does not take, and files of that."""
        return self, {}

    def _put_back(self, files: Mapping[str, bytes], module: Any, folder: str) -> Any:
        """The estimator with it."""
        return self


def save(
    estimator: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Json] | None = None
) -> Path:
    """Write a fitted estimator into a folder, without pickle.

    Parameters
    ----------
    estimator : GIWClassifier, ReweightedClassifier or ReweightedRegressor
    path : path
        The folder; made if need be. One that holds anything but a model is refused.
    notes : mapping, optional
        Plain values to keep with the model, such as how a table was encoded.

    Returns
    -------
    Path
        The folder.
    """
    if not isinstance(estimator, SavesToFolder):
        raise ValueError(
            f"giw saves its own estimators, got {type(estimator).__name__}; for scikit-learn's use "
            "skops.io.dump, for a net torch.save(net.state_dict(), …)"
        )
    check_is_fitted(estimator)
    plain, contents = estimator._set_apart()
    contents["model.skops"] = to_skops(plain, type(estimator).__name__)
    files = {_hashed(name, content): content for name, content in contents.items()}
    index = {
        "format": FORMAT,
        "version": VERSION,
        "giw": __version__,
        "notes": dict(notes or {}),
        "files": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in files.items()
        },
    }
    index["sha256"] = _index_checksum(index)
    text = json.dumps(index, indent=1, ensure_ascii=False, allow_nan=False)
    return _write_folder(Path(path), {**files, INDEX: text.encode()})


def exchanged(estimator: Any, by: Callable[[Any], Any]) -> Any:
    """A shallow copy in which attributes, and items of their containers, went through ``by``."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(item) for name, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(walk, value))
        return by(value)

    made = copy.copy(estimator)
    vars(made).update(walk(vars(estimator)))
    return made


def load(path: str | os.PathLike[str], *, module: Any = None) -> Any:
    """Read an estimator that ``save`` has written.

    Parameters
    ----------
    path : path
        The folder.
    module : torch.nn.Module, optional
        The net, where it was not one of giw's own: files hold parameters and never code, so a
        net of one's own must be built by one's own program. It is copied.
    """
    return load_with_notes(path, module=module)[0]


def load_with_notes(
    path: str | os.PathLike[str], *, module: Any = None
) -> tuple[Any, dict[str, Json]]:
    """The estimator and the notes that were saved with it."""
    folder = Path(path)
    try:
        index = _read_index(folder)
        files = {name: _read_file(folder, name, known) for name, known in index["files"].items()}
        parts = {name.partition("-")[0]: content for name, content in files.items()}
        estimator = from_skops(parts["model"], str(folder))
        if not isinstance(estimator, SavesToFolder):
            raise ValueError(
                f"{folder} holds a {type(estimator).__name__}, which giw does not save"
            )
        estimator = estimator._put_back(parts, module, str(folder))
        check_is_fitted(estimator)
        return estimator, dict(index["notes"])
    except ImportError:
        raise
    except Exception as error:  # whatever a damaged or hostile folder makes of it
        one_line = len(str(error).splitlines()) == 1
        if one_line and isinstance(error, ValueError | OSError) and str(folder) in str(error):
            raise
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise ValueError(
            f"{folder} is not a model that this version of giw can read: {said}; save it again"
        ) from error


def _index_checksum(index: Mapping[str, Json]) -> str:
    """Of everything but the checksum itself, however the text is laid out."""
    rest = {name: value for name, value in index.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _hashed(name: str, content: bytes) -> str:
    stem, _, ending = name.partition(".")
    return f"{stem}-{hashlib.sha256(content).hexdigest()[:12]}.{ending}"


def _read_index(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise FileNotFoundError(f"{folder} does not exist; name a folder that save() has written")
    try:
        text = (folder / INDEX).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{folder} is not a saved model: it holds no {INDEX}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{folder / INDEX} is damaged: it is not text; save it again") from None
    try:
        index = json.loads(text)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError
        raise ValueError(f"{folder / INDEX} is truncated or damaged; save it again") from None
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise ValueError(f"{folder / INDEX} does not describe a giw model")
    version = index.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise ValueError(
            f"{folder} was written by giw {index.get('giw')!r} in format {version!r}, and giw "
            f"{__version__} reads format {VERSION}: "
            + ("upgrade giw" if newer else "fit the model again and save it")
        )
    if index.get("sha256") != _index_checksum(index):
        raise ValueError(
            f"{folder / INDEX} was changed after it was saved: its checksum is wrong; save again"
        )
    return index


def _read_file(folder: Path, name: str, known: Mapping[str, Any]) -> bytes:
    if Path(name).name != name or name.startswith("."):
        raise ValueError(f"{folder} names a file outside itself, {name!r}: refused")
    try:
        content = (folder / name).read_bytes()
    except FileNotFoundError:
        raise ValueError(
            f"{folder} is incomplete: {name} is missing; copy or save it again"
        ) from None
    if len(content) != known["bytes"]:
        raise ValueError(
            f"{folder / name} is truncated or altered: it has {len(content)} bytes and should have "
            f"{known['bytes']!r}; copy or save it again"
        )
    found = hashlib.sha256(content).hexdigest()
    if found != known["sha256"]:
        raise ValueError(
            f"{folder / name} was altered: its sha256 sum is {found}, expected {known['sha256']!r}"
        )
    return content


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """A new folder is renamed into place; in an old one the index is replaced last, in one stroke.

    Whoever reads meanwhile, or after a crash, sees the old model or the new one.
    """
    if folder.is_dir() and not (folder / INDEX).exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} holds other files and no model; name a new folder")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    with room_for(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = hidden_beside(folder)
        temporary.mkdir()
        try:
            for name, content in files.items():
                write_whole(temporary / name, content)
            remove_abandoned(folder, by=temporary)
            _take_place(temporary, folder, files)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _take_place(temporary: Path, folder: Path, files: Mapping[str, bytes]) -> None:
    if not folder.exists():
        temporary.rename(folder)
        sync_folder(folder.parent)
        return
    for name in sorted(files, key=lambda name: name == INDEX):
        if name == INDEX:  # a power cut must not leave it alone with files that it does not name
            sync_folder(folder)
        (temporary / name).replace(folder / name)
    sync_folder(folder)
    for old in folder.iterdir():  # our own files that the new index does not name
        if old.suffix in (".safetensors", ".skops") and old.name not in files:
            old.unlink()
