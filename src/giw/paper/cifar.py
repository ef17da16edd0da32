"""CIFAR-100 (Krizhevsky, 2009) with its 20 superclasses as the task, as in the paper: CIFAR-20."""

from __future__ import annotations

import pickle
import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from giw.paper import files
from giw.paper.files import Folder
from giw.paper.mnist import Part
from giw.paper.shifts import Sample

Bytes = NDArray[np.uint8]
Parts = tuple[Bytes, Bytes, Bytes]  # images (n, 3, 32, 32), fine (n,), coarse (n,)

# The first two classes of each line are those that training sees in the paper.
_TABLE = """
aquatic_mammals beaver dolphin otter seal whale
fish aquarium_fish flatfish ray shark trout
flowers orchid poppy rose sunflower tulip
food_containers bottle bowl can cup plate
fruit_and_vegetables apple mushroom orange pear sweet_pepper
household_electrical_devices clock keyboard lamp telephone television
household_furniture bed chair couch table wardrobe
insects bee beetle butterfly caterpillar cockroach
large_carnivores bear leopard lion tiger wolf
large_man-made_outdoor_things bridge castle house road skyscraper
large_natural_outdoor_scenes cloud forest mountain plain sea
large_omnivores_and_herbivores camel cattle chimpanzee elephant kangaroo
medium_mammals fox porcupine possum raccoon skunk
non-insect_invertebrates crab lobster snail spider worm
people baby boy girl man woman
reptiles crocodile dinosaur lizard snake turtle
small_mammals hamster mouse rabbit shrew squirrel
trees maple_tree oak_tree palm_tree pine_tree willow_tree
vehicles_1 bicycle bus motorcycle pickup_truck train
vehicles_2 lawn_mower rocket streetcar tank tractor
"""
SUPERCLASSES = {name: five for name, *five in map(str.split, _TABLE.strip().splitlines())}
COARSE_NAMES = tuple(SUPERCLASSES)  # in alphabetical order, which is the order of their numbers
FINE_NAMES = tuple(sorted(name for five in SUPERCLASSES.values() for name in five))
PAPER_TRAINING_CLASSES = tuple(
    sorted(FINE_NAMES.index(fine) for five in SUPERCLASSES.values() for fine in five[:2])
)  # 40 fine classes


def cifar20(part: Part = "train", *, data_dir: Folder = None) -> Sample:
    """CIFAR-100 as ``uint8`` images of shape (n, 3, 32, 32), 20 superclasses as the task.

    ``group`` is the fine class, 0 to 99 in alphabetical order. Of the editions that are there the
    official ones come first. The ``npz`` edition is smaller and its training labels were recovered
    from noisy ones, see ``docs/reproduce.md``: state that beside every number that comes from it.
    """
    edition = cifar_edition(data_dir)
    pieces = [
        _READERS[edition](files.whole_bytes(known, path), part)
        for known in _files_of(edition, part)
        if (path := files.find_file(known, data_dir))
    ]
    images, fine, coarse = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    return Sample(images, coarse, fine, COARSE_NAMES)


def cifar_edition(data_dir: Folder = None) -> str:
    """The edition of CIFAR-100 that :func:`cifar20` reads from this folder."""
    for edition in _READERS:
        wanted = [*_files_of(edition, "train"), *_files_of(edition, "test")]
        if all(files.find_file(known, data_dir) for known in wanted):
            return edition
    raise files.missing("cifar100", data_dir, "complete edition of CIFAR-100")


def _files_of(edition: str, part: str) -> list[files.KnownFile]:
    """Files that hold a part; an archive holds both."""
    mine = [known for known in files.KNOWN_FILES if known.edition == edition]
    return [known for known in mine if edition == "archive" or part in Path(known.name).stem]


def _read_python(raw: bytes, part: str) -> Parts:
    found = pickle.loads(raw, encoding="latin1")  # its checksum is the publisher's
    labels = (np.array(found[name], dtype=np.uint8) for name in ("fine_labels", "coarse_labels"))
    return found["data"].reshape(-1, 3, 32, 32), *labels


def _read_archive(raw: bytes, part: str) -> Parts:
    """One member of the official archive, without unpacking it to the disk."""
    with tarfile.open(fileobj=BytesIO(raw), mode="r:gz") as archive:
        stream = archive.extractfile(f"cifar-100-python/{part}")
        return _read_python(b"" if stream is None else stream.read(), part)


def _read_npz(raw: bytes, part: str) -> Parts:
    with np.load(BytesIO(raw), allow_pickle=False) as found:
        images = np.ascontiguousarray(found["images"].transpose(0, 3, 1, 2))
        return images, found["fine"], found["coarse"]


# In the order of preference: the paper's exact data first.
_READERS = {"python": _read_python, "archive": _read_archive, "npz": _read_npz}
