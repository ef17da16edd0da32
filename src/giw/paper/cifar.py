"""CIFAR-100 with its 20 superclasses as the task, as in the paper's appendix: CIFAR-20."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from giw.paper.files import KNOWN_FILES, MAX_BYTES, KnownFile, checked, find_file, missing
from giw.paper.safe_pickle import load_arrays
from giw.paper.sample import Sample

Part = Literal["train", "test"]
Bytes = NDArray[np.uint8]
Parts = tuple[Bytes, Bytes, Bytes]  # images (n, 3, 32, 32), fine (n,), coarse (n,)

PIXELS = 3 * 32 * 32
RECORD = 2 + PIXELS  # coarse label, fine label, red, green and blue plane
OFFICIAL_SIZE = {"train": 50_000, "test": 10_000}

# The first two classes of each line are those that training sees in the paper.
SUPERCLASSES: dict[str, tuple[str, ...]] = {
    name: tuple(classes.split())
    for name, classes in {
        "aquatic_mammals": "beaver dolphin otter seal whale",
        "fish": "aquarium_fish flatfish ray shark trout",
        "flowers": "orchid poppy rose sunflower tulip",
        "food_containers": "bottle bowl can cup plate",
        "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
        "household_electrical_devices": "clock keyboard lamp telephone television",
        "household_furniture": "bed chair couch table wardrobe",
        "insects": "bee beetle butterfly caterpillar cockroach",
        "large_carnivores": "bear leopard lion tiger wolf",
        "large_man-made_outdoor_things": "bridge castle house road skyscraper",
        "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
        "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
        "medium_mammals": "fox porcupine possum raccoon skunk",
        "non-insect_invertebrates": "crab lobster snail spider worm",
        "people": "baby boy girl man woman",
        "reptiles": "crocodile dinosaur lizard snake turtle",
        "small_mammals": "hamster mouse rabbit shrew squirrel",
        "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
        "vehicles_1": "bicycle bus motorcycle pickup_truck train",
        "vehicles_2": "lawn_mower rocket streetcar tank tractor",
    }.items()
}
COARSE_NAMES = tuple(SUPERCLASSES)  # in alphabetical order, which is the order of their numbers
FINE_NAMES = tuple(sorted(name for five in SUPERCLASSES.values() for name in five))
FINE_TO_COARSE = np.array(
    [next(i for i, five in enumerate(SUPERCLASSES.values()) if fine in five) for fine in FINE_NAMES]
)  # (100,)
PAPER_TRAINING_CLASSES = tuple(
    sorted(FINE_NAMES.index(fine) for five in SUPERCLASSES.values() for fine in five[:2])
)  # 40 fine classes


def cifar20(
    part: Part = "train",
    *,
    edition: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    verify: bool = True,
) -> Sample:
    """CIFAR-100 as ``uint8`` images of shape (n, 3, 32, 32), 20 superclasses as the task.

    ``group`` is the fine class, 0 to 99 in alphabetical order.

    Parameters
    ----------
    part : {"train", "test"}
        50,000 or 10,000 images in the official editions.
    edition : {"python", "python archive", "binary", "binary archive", "npz"}, optional
        Which files to read; left out, the first of these that is there. The ``npz`` edition is
        smaller and its training labels were recovered from noisy ones, see ``docs/data.md``: state
        that beside every number that comes from it.
    data_dir : path, optional
        Data folder, see :func:`giw.paper.files.catalogue`.
    verify : bool, default=True
        Refuse files whose md5 sum is not the known one.

    References
    ----------
    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """
    if part not in OFFICIAL_SIZE:
        raise ValueError(f"part is train or test, got {part!r}")
    edition = edition or cifar_edition(data_dir)
    if edition not in _READERS:
        raise ValueError(f"edition is one of {', '.join(_READERS)}; got {edition!r}")
    pieces = []
    for known in _files_of(edition, part):
        path = find_file(known, data_dir)
        if path is None:
            raise missing("cifar100", data_dir, f"CIFAR-100 file {known.name}")
        checked(path, known.md5, verify=verify)
        pieces.append(_READERS[edition](path, part, verify))
        _check_labels(path, *pieces[-1])
    images, fine, coarse = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    return Sample(images, coarse, fine, COARSE_NAMES)


def cifar_edition(data_dir: str | os.PathLike[str] | None = None) -> str:
    """The edition of CIFAR-100 that :func:`cifar20` reads from this folder."""
    for edition in _READERS:
        files = [*_files_of(edition, "train"), *_files_of(edition, "test")]
        if all(find_file(known, data_dir) for known in files):
            return edition
    raise missing("cifar100", data_dir, "complete edition of CIFAR-100")


def _files_of(edition: str, part: str) -> list[KnownFile]:
    """Files that hold a part; an archive holds both."""
    mine = [known for known in KNOWN_FILES if (known.dataset, known.edition) == _key(edition)]
    return [known for known in mine if "archive" in edition or part in Path(known.name).stem]


def _key(edition: str) -> tuple[str, str]:
    return "cifar100", edition


def _check_labels(path: Path, images: Bytes, fine: Bytes, coarse: Bytes) -> None:
    """Shapes fit, and every fine class lies in its superclass."""
    shapes_fit = images.shape[1:] == (3, 32, 32) and fine.shape == coarse.shape == (len(images),)
    if not shapes_fit or fine.max(initial=0) > 99 or (coarse != FINE_TO_COARSE[fine]).any():
        raise ValueError(
            f"{path} does not hold CIFAR-100: images {images.shape}, fine labels {fine.shape} and "
            f"coarse labels {coarse.shape} must fit, and each class lie in its superclass"
        )


def _read_python(path: Path, part: str, verify: bool) -> Parts:
    return _parse_pickle(path.read_bytes(), str(path))


def _parse_pickle(raw: bytes, name: str) -> Parts:
    found = load_arrays(raw, name)
    try:
        data, fine, coarse = found["data"], found["fine_labels"], found["coarse_labels"]
    except KeyError as error:
        raise ValueError(f"{name} has no entry {error}; it is not CIFAR-100") from None
    if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != PIXELS:
        raise ValueError(f"{name}: data must be an array of {PIXELS} bytes per image")
    return data.reshape(-1, 3, 32, 32), _labels(fine, name), _labels(coarse, name)


def _labels(values: object, name: str) -> Bytes:
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 100 for v in values):
        raise ValueError(f"{name}: labels must be a list of integers from 0 to 99")
    return np.array(values, dtype=np.uint8)


def _read_binary(path: Path, part: str, verify: bool) -> Parts:
    expected = OFFICIAL_SIZE[part] * RECORD
    size = path.stat().st_size
    if verify and size != expected:  # the publisher gives no checksum for this file
        raise ValueError(
            f"{path} is truncated or altered: it has {size} bytes, expected {expected}; unpack it "
            "again, or pass verify=False to read it all the same"
        )
    return _parse_records(path.read_bytes(), str(path))


def _parse_records(raw: bytes, name: str) -> Parts:
    if not raw or len(raw) % RECORD:
        raise ValueError(f"{name} has {len(raw)} bytes, not whole records of {RECORD}")
    records = np.frombuffer(bytearray(raw), dtype=np.uint8).reshape(-1, RECORD)
    return records[:, 2:].reshape(-1, 3, 32, 32), records[:, 1], records[:, 0]


def _read_archive(path: Path, part: str, verify: bool) -> Parts:
    """One member of an official archive, without unpacking the rest to disk."""
    binary = "binary" in path.name
    member = f"cifar-100-{'binary' if binary else 'python'}/{part}{'.bin' if binary else ''}"
    name = f"{path}:{member}"
    try:
        with tarfile.open(path, "r:gz") as archive:
            info = archive.getmember(member)
            # links could lead in circles, and sparse files are as large as they like
            if not info.isreg() or info.issparse() or info.size > MAX_BYTES:
                raise ValueError(f"it is no plain file of at most {MAX_BYTES} bytes")
            stream = archive.extractfile(info)
            raw = b"" if stream is None else stream.read()
    except Exception as error:  # a damaged archive can raise nearly anything
        said = " ".join(str(error).split())
        raise ValueError(f"{name} cannot be read: {said}; fetch the archive again") from error
    return _parse_records(raw, name) if binary else _parse_pickle(raw, name)


def _read_npz(path: Path, part: str, verify: bool) -> Parts:
    try:
        with zipfile.ZipFile(path) as archive:
            images, fine, coarse = (
                _read_npy(archive, f"{key}.npy", path) for key in ("images", "fine", "coarse")
            )
    except Exception as error:  # a damaged zip file or header can raise nearly anything
        said = " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read: {said}; get the file again") from error
    if images.shape[1:] != (32, 32, 3):
        raise ValueError(f"{path}: images must have shape (n, 32, 32, 3), got {images.shape}")
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)), fine, coarse


def _read_npy(archive: zipfile.ZipFile, member: str, path: Path) -> Bytes:
    """An array of bytes whose header must agree with the size of its member, before it is read."""
    info = archive.getinfo(member)
    with archive.open(info) as stream:
        head = BytesIO(stream.read(4096))
        try:
            major, _ = npy_format.read_magic(head)
            read_header = (
                npy_format.read_array_header_1_0 if major == 1 else npy_format.read_array_header_2_0
            )
            shape, fortran, dtype = read_header(head)
        except ValueError as error:
            raise ValueError(f"{path}:{member} is not a numpy array: {error}") from None
        size, start = prod(shape), head.tell()
        if fortran or dtype != np.uint8 or size > MAX_BYTES or size + start != info.file_size:
            raise ValueError(
                f"{path}:{member} claims {dtype} of shape {shape}, which {info.file_size} bytes "
                "do not hold; it must be uint8 in C order"
            )
        values = head.read() + stream.read(size)
    if len(values) != size:
        raise ValueError(f"{path}:{member} holds {len(values)} bytes of {size}; get the file again")
    return np.frombuffer(bytearray(values), dtype=np.uint8).reshape(shape)


# In the order of preference: the paper's exact data first.
_READERS: dict[str, Callable[[Path, str, bool], Parts]] = {
    "python": _read_python,
    "python archive": _read_archive,
    "binary": _read_binary,
    "binary archive": _read_archive,
    "npz": _read_npz,
}
