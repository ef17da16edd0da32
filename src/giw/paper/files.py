"""Which files the data sets are made of, where they lie, whether they are whole; fetching them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ENVIRONMENT_VARIABLE = "GIW_DATA"
# No file of these data sets is larger; whatever claims to be is refused before memory is asked for.
MAX_BYTES = 512 * 2**20

State = Literal["missing", "present", "verified", "altered"]
Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class KnownFile:
    """One file of a data set, with its checksum."""

    dataset: str
    edition: str
    name: str
    md5: str
    url: str = ""  # where to fetch it; one that ends in a slash lacks the name


@dataclass(frozen=True)
class FileStatus:
    """What was found of a :class:`KnownFile` in a data folder."""

    file: KnownFile
    state: State
    path: Path | None = None
    size: int | None = None  # bytes
    md5: str | None = None  # as found; computed only where asked for


# Folders that are searched for each data set, relative to the data folder, in this order.
FOLDERS = {"mnist": ("mnist", "MNIST/raw", "."), "cifar100": ("cifar100", ".")}
_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
KNOWN_FILES = tuple(
    KnownFile(*known.split())
    for known in f"""
mnist gz train-images-idx3-ubyte.gz f68b3c2dcbeaaa9fbdd348bbdeb94873 {_MIRROR}
mnist gz train-labels-idx1-ubyte.gz d53e105ee54ea40749a09fcbcd1e9432 {_MIRROR}
mnist gz t10k-images-idx3-ubyte.gz 9fb629c4189551a2d022fa330f9573f3 {_MIRROR}
mnist gz t10k-labels-idx1-ubyte.gz ec29112dd5afa0611ce80d1b7f02629c {_MIRROR}
mnist raw train-images-idx3-ubyte 6bbc9ace898e44ae57da46a324031adb
mnist raw train-labels-idx1-ubyte a25bea736e30d166cdddb491f175f624
mnist raw t10k-images-idx3-ubyte 2646ac647ad5339dbf082846283269ea
mnist raw t10k-labels-idx1-ubyte 27ae3e4e09519cfbb04c329615203637
cifar100 python cifar-100-python/train 16019d7e3df5f24257cddd939b257f8d
cifar100 python cifar-100-python/test f0ef6b0ae62326f3e7ffdfab6717acfc
cifar100 archive cifar-100-python.tar.gz eb9058c3a382ffc7106e4002c42a8d85 {_CIFAR}
cifar100 npz train_a.npz 8161ae21473e5dc7f34ef03c8ea8ddfc
cifar100 npz train_b.npz 94a5d0601c02630b30537b586c92edff
cifar100 npz test.npz 09cf77126a751e79ce705434274e0aab
""".strip().splitlines()
)


def data_folder(data_dir: Folder = None) -> Path:
    """The folder that holds the data sets: the argument, else ``$GIW_DATA``, else a cache."""
    named = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(named).expanduser() if named else Path.home() / ".cache" / "giw"


def find_file(file: KnownFile, data_dir: Folder = None) -> Path | None:
    """Where a file lies, or None."""
    root = data_folder(data_dir)
    candidates = (root / folder / file.name for folder in FOLDERS[file.dataset])
    return next((path for path in candidates if path.is_file()), None)


def catalogue(data_dir: Folder = None, *, verify: bool = False) -> tuple[FileStatus, ...]:
    """Every file of every data set: is it there, where, and where asked for, is it whole?"""

    def status(file: KnownFile) -> FileStatus:
        path = find_file(file, data_dir)
        if path is None:
            return FileStatus(file, "missing")
        size = path.stat().st_size
        if not verify:
            return FileStatus(file, "present", path, size)
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "md5").hexdigest()
        return FileStatus(file, "verified" if found == file.md5 else "altered", path, size, found)

    return tuple(map(status, KNOWN_FILES))


def whole_bytes(file: KnownFile, path: Path) -> bytes:
    """What is in a file, once its checksum is the known one.

    Nothing else is ever parsed, so that readers need not guard against what they read: no pickle
    but the published one is opened. Publishers chose md5; to make another file with the md5 sum of
    a given one is not feasible to this day.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(f"{path} has {size} bytes, more than any file of these data sets")
    content = path.read_bytes()
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != file.md5:
        raise ValueError(not_whole(path, file, found))
    return content


def not_whole(path: Path | None, file: KnownFile, md5: str | None) -> str:
    """What is wrong with a file of another checksum, and the way out."""
    return (
        f"{path} is truncated or altered: its md5 sum is {md5}, expected {file.md5}; remove it and "
        "fetch it again"
    )


def missing(dataset: str, data_dir: Folder, what: str) -> FileNotFoundError:
    """The error for a data set that is not there, with every way out."""
    root = data_folder(data_dir)
    places = ", ".join(str(root / folder) for folder in FOLDERS[dataset])
    return FileNotFoundError(
        f"no {what} found; looked in {places}. Put the files there, name their folder by data_dir "
        f"or the environment variable {ENVIRONMENT_VARIABLE}, fetch them with "
        f"`giw paper data --fetch {dataset}`, or run `giw demo`, which needs no files"
    )


# Fetching ----------------------------------------------------------------------------------------


def fetch(dataset: str, data_dir: Folder = None) -> list[Path]:
    """Download the files of a data set that are not there yet, and check their md5 sums.

    A download appears under its name only when it is whole and its checksum is right. Files go into
    the folder ``mnist`` or ``cifar100`` of the data folder. Needs the package pooch (``pip install
    'giw[data]'``).
    """
    files = [known for known in KNOWN_FILES if known.dataset == dataset and known.url]
    return [_fetch_one(known, data_dir) for known in files]


def _fetch_one(known: KnownFile, data_dir: Folder) -> Path:
    present = find_file(known, data_dir)
    if present is not None:
        whole_bytes(known, present)
        return present
    try:
        import pooch
    except ImportError:
        raise ImportError(
            "fetching data needs pooch: pip install 'giw[data]'; or copy the files into the data "
            "folder by hand, or run `giw demo`, which needs no files"
        ) from None
    url = known.url + known.name * known.url.endswith("/")
    folder = data_folder(data_dir) / known.dataset
    try:
        return Path(pooch.retrieve(url, f"md5:{known.md5}", known.name, folder))
    except OSError as error:  # requests' errors are of this kind, a full disk too
        raise ConnectionError(
            f"could not fetch {url} into {folder}: {error}. Without a network, copy the file there "
            "by hand, or run `giw demo`, which needs no files"
        ) from error
    except ValueError as error:  # pooch names the file and both checksums
        raise ValueError(f"what came from {url} is not {known.name}: {error}") from error


def in_words(found: tuple[FileStatus, ...], folder: Path) -> str:
    """All files as a table, and for each data set whether it can be read."""
    there = folder if folder.is_dir() else f"{folder} (not there)"
    lines = [f"Data folder: {there}"]
    editions: dict[str, dict[str, set[str]]] = {}  # states of the files of each edition
    for one in found:
        file, size = one.file, "" if one.size is None else f"{one.size / 2**20:.1f} MB"
        lines += [f"{file.dataset:8}  {file.edition:7}  {file.name:26}  {size:>8}  {one.state}"]
        editions.setdefault(file.dataset, {}).setdefault(file.edition, set()).add(one.state)
    for dataset, states in editions.items():
        whole = [name for name, all_ in states.items() if all_ <= {"present", "verified"}]
        way_out = f"not there; copy its files into the folder, or giw paper data --fetch {dataset}"
        lines.append(f"{dataset}: {f'ready ({whole[0]})' if whole else way_out}")
    return "\n".join(lines)
