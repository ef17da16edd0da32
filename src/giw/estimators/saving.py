"""Fitted estimators on disk, without pickle: JSON, arrays, and skops for scikit-learn's own.

A folder holds ``giw.json``, which describes the estimator and has a checksum of every other file
and of itself, ``*.npz`` with all arrays (``*.safetensors`` where there is a net, and of version
0.1.0), and ``*.skops`` with scikit-learn estimators.
Loading builds only classes that this package names, and scikit-learn's; it imports nothing that
a file asks for. Checksums tell accidents and careless edits; they are no signature.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from giw import __version__
from giw.estimators.sklearn_on_disk import from_skops, to_skops
from giw.tables.reading import npz_arrays
from giw.writing import hidden_beside, remove_abandoned, room_for, sync_folder, write_whole

FORMAT, VERSION = "giw model", 1
INDEX = "giw.json"
KIND = "@"  # the key that marks everything which JSON has no word for
GONE = ("Assumptions",)  # records of version 0.1.0 that nothing reads any more
Json = Any


class SavesToFolder:
    """Gives an estimator the method ``save``."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted estimator into a folder; :func:`giw.load` reads it.

        The folder appears whole or not at all; a model that is there already is replaced.
        """
        return save(self, path)


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
    if type(estimator).__name__ not in _known_classes():
        raise ValueError(
            f"giw saves its own estimators, got {type(estimator).__name__}; for scikit-learn's use "
            "skops.io.dump, for a net torch.save(net.state_dict(), …)"
        )
    check_is_fitted(estimator)
    writer = _Writer()
    described = writer.describe(estimator, "model")
    files = {name: content for name, content in writer.files().items() if content}
    index = {
        "format": FORMAT,
        "version": VERSION,
        "giw": __version__,
        "model": described,
        "notes": dict(notes or {}),
        "files": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in files.items()
        },
    }
    index["sha256"] = _index_checksum(index)
    text = json.dumps(index, indent=1, ensure_ascii=False, allow_nan=False)
    return _write_folder(Path(path), {**files, INDEX: text.encode()})


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
        arrays: dict[str, NDArray[Any]] = {}
        for name, content in files.items():
            arrays |= _arrays_in(name, content)
        estimator = _Reader(folder, arrays, files, module).build(index["model"])
        check_is_fitted(estimator)
        return estimator, dict(index["notes"])
    except ImportError:
        raise
    except Exception as error:  # whatever a damaged or hostile folder makes of it
        if isinstance(error, ValueError | OSError) and str(folder) in str(error):
            raise
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise ValueError(
            f"{folder} is not a model that this version of giw can read: {said}; save it again"
        ) from error


class _Writer:
    """Describes values in JSON and puts aside what does not belong there."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.holds_net = False
        self.skops: dict[str, bytes] = {}

    def files(self) -> dict[str, bytes]:
        """File contents by name; the name holds the content's hash, so none is overwritten."""
        if self.holds_net:
            contents = {"arrays.safetensors": _safetensors().save(self.arrays)}
        else:
            contents = {"arrays.npz": _npz(self.arrays)} if self.arrays else {}
        contents |= self.skops
        return {_hashed(name, content): content for name, content in contents.items()}

    def describe(self, value: Any, key: str) -> Json:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float) and not isinstance(value, np.floating):
            return value if math.isfinite(value) else {KIND: "float", "value": repr(value)}
        if isinstance(value, np.generic):
            array = np.asarray(value).reshape(1)
            return {KIND: "scalar", "of": self.describe(array, key)}
        if isinstance(value, np.ndarray):
            return self._array(value, key)
        if isinstance(value, list | tuple):
            items = [self.describe(item, f"{key}.{j}") for j, item in enumerate(value)]
            return items if isinstance(value, list) else {KIND: "tuple", "items": items}
        if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
            return {KIND: "mapping", "items": self._all(value, key)}
        if isinstance(value, np.random.Generator | np.random.RandomState):
            return None  # its state belongs to the program that made it
        if "torch" in sys.modules:
            known, described = _nets().describe(value, key, self.arrays)
            self.holds_net |= known
            if known:
                return described
        return self._object(value, key)

    def _array(self, array: NDArray[Any], key: str) -> Json:
        if array.dtype.kind == "U" or (
            array.dtype == object and all(isinstance(item, str) for item in array.flat)
        ):
            dtype = "object" if array.dtype == object else "text"
            return {KIND: "words", "dtype": dtype, "shape": array.shape, "items": [*array.flat]}
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"{key} is an array of {array.dtype}, which cannot be saved; use numbers or text"
            )
        plain = array.astype(array.dtype.newbyteorder("="))
        self.arrays[key] = np.ascontiguousarray(plain).reshape(array.shape)
        return {KIND: "array", "key": key}

    def _object(self, value: Any, key: str) -> Json:
        name: str = type(value).__name__
        if _known_classes().get(name) is type(value):
            if not isinstance(value, BaseEstimator):
                values = {field.name: getattr(value, field.name) for field in fields(value)}
                return {KIND: "record", "class": name, "fields": self._all(values, key)}
            params = value.get_params(deep=False)
            state = {name: item for name, item in vars(value).items() if name not in params}
            return {
                KIND: "estimator",
                "class": name,
                "params": self._all(params, key),
                "state": self._all(state, key),
            }
        if isinstance(value, BaseEstimator) and type(value).__module__.startswith("sklearn."):
            file = f"estimator{len(self.skops)}.skops"
            content = to_skops(value, key)
            self.skops[file] = content
            return {KIND: "sklearn", "file": _hashed(file, content)}
        raise ValueError(
            f"{key} is a {type(value).__module__}.{name}, which cannot be saved without pickle; "
            "giw saves its own estimators, torch modules and scikit-learn's estimators"
        )

    def _all(self, values: Mapping[str, Any], key: str) -> dict[str, Json]:
        return {name: self.describe(value, f"{key}.{name}") for name, value in values.items()}


class _Reader:
    """Builds what a writer has described."""

    def __init__(
        self,
        folder: Path,
        arrays: Mapping[str, NDArray[Any]],
        files: Mapping[str, bytes],
        module: Any,
    ) -> None:
        self.folder, self.arrays, self.files, self.module = folder, arrays, files, module

    def build(self, value: Json) -> Any:
        if isinstance(value, list):
            return [self.build(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value[KIND]
        if kind == "float":
            return float(value["value"])
        if kind == "scalar":
            return self.build(value["of"])[0]
        if kind == "array":
            return self.arrays[value["key"]].copy()
        if kind == "words":
            dtype = object if value["dtype"] == "object" else str
            return np.array(value["items"], dtype=dtype).reshape(value["shape"])
        if kind == "tuple":
            return tuple(self.build(item) for item in value["items"])
        if kind == "mapping":
            return self._all(value["items"])
        if kind in ("net", "tensor"):
            return _nets().build(value, self.arrays, self.module, self.folder)
        if kind == "sklearn":
            return from_skops(self.files[value["file"]], str(self.folder / value["file"]))
        if kind in ("record", "estimator"):
            return self._object(value)
        raise KeyError(f"unknown kind {kind!r}")

    def _object(self, value: Json) -> Any:
        known = _known_classes()
        if value["class"] in GONE:
            return None
        if value["class"] not in known:
            raise ValueError(f"{self.folder} asks for the class {value['class']!r}: refused")
        kind = known[value["class"]]
        if value[KIND] == "record":
            now = {field.name for field in fields(kind)}
            kept = {name: item for name, item in value["fields"].items() if name in now}
            return kind(**self._all(kept))
        # a setting of an older version that is gone has done its work when the model was fitted
        known_settings = kind._get_param_names()
        params = {name: item for name, item in value["params"].items() if name in known_settings}
        estimator = kind(**self._all(params))
        vars(estimator).update(self._all(value["state"]))
        if hasattr(estimator, "_adopt"):
            estimator._adopt()
        return estimator

    def _all(self, values: Mapping[str, Json]) -> dict[str, Any]:
        return {name: self.build(item) for name, item in values.items()}


def _known_classes() -> dict[str, Any]:
    """Estimators and records that this package exports, by name: all that a file can ask for."""
    import giw.estimators
    import giw.support
    import giw.weights
    from giw.estimators.candidates import Mapped
    from giw.estimators.fitting import CountedFromZero
    from giw.estimators.limits import Reference
    from giw.estimators.stack import LeftOut, Mixture
    from giw.tables.encoder import CategoryColumn, Encoder, NumberColumn

    inner: list[Any] = [Mapped, CountedFromZero, LeftOut, Mixture, Reference]
    inner += [Encoder, NumberColumn, CategoryColumn]
    found: dict[str, Any] = {kind.__name__: kind for kind in inner}
    rooms = [giw.weights, giw.support, giw.estimators]
    if importlib.util.find_spec("torch") is not None:
        rooms.append(importlib.import_module("giw.nets"))
    for room in rooms:
        for name in room.__all__:
            value = getattr(room, name)
            if isinstance(value, type) and (
                issubclass(value, BaseEstimator) or is_dataclass(value)
            ):
                found[name] = value
    return found


def _nets() -> Any:
    """What the room below knows of tensors and nets; loaded where there are any."""
    return importlib.import_module("giw.nets.saving")


def _npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays by their places: names such as ``model.state`` need not be names of files."""
    content = BytesIO()
    numbered: dict[str, Any] = {f"array{j}": array for j, array in enumerate(arrays.values())}
    np.savez(content, names=np.array(list(arrays)), **numbered)
    return content.getvalue()


def _arrays_in(name: str, content: bytes) -> dict[str, NDArray[Any]]:
    if name.endswith(".safetensors"):
        found: dict[str, NDArray[Any]] = _safetensors().load(content)
        return found
    if not name.endswith(".npz"):
        return {}
    arrays = npz_arrays(BytesIO(content))
    return {str(key): arrays[f"array{j}"] for j, key in enumerate(arrays["names"])}


def _safetensors() -> Any:
    try:
        return importlib.import_module("safetensors.numpy")
    except ImportError:
        raise ImportError(
            "nets, and models that version 0.1.0 has saved, need safetensors: "
            "pip install 'giw[torch]'"
        ) from None


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
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(
            f"{folder} was written by giw {index.get('giw')} in format {version}; this giw "
            f"({__version__}) reads formats up to {VERSION}: upgrade giw"
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
        if old.suffix in (".safetensors", ".npz", ".skops") and old.name not in files:
            old.unlink()
