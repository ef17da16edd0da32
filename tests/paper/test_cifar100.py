"""CIFAR-100 in its three editions; what is not the published file is never opened."""

import os
import pickle

import numpy as np
import pytest
from tests.paper.written_files import (
    FINE_TO_COARSE,
    accept,
    archive,
    cifar_arrays,
    python2_pickle,
    python3_pickle,
    write_npz,
)

from giw.paper.cifar import (
    COARSE_NAMES,
    FINE_NAMES,
    PAPER_TRAINING_CLASSES,
    cifar20,
    cifar_edition,
)

EDITIONS = ["python", "archive", "npz"]


def write(edition, root, encode=python2_pickle):
    """Write one edition; training is arrays with seed 0 (twice for npz), test with seed 1."""
    train, test = cifar_arrays(seed=0), cifar_arrays(n=100, seed=1)
    if edition == "npz":
        for name, content in (("train_a", train), ("train_b", train), ("test", test)):
            write_npz(root / f"{name}.npz", *content)
        return train
    members = {"cifar-100-python/train": encode(*train), "cifar-100-python/test": encode(*test)}
    if edition == "archive":
        (root / "cifar-100-python.tar.gz").write_bytes(archive(members))
    else:
        (root / "cifar-100-python").mkdir()
        for name, content in members.items():
            (root / name).write_bytes(content)
    return train


@pytest.mark.parametrize("encode", [python2_pickle, python3_pickle])
@pytest.mark.parametrize("edition", EDITIONS)
def test_every_edition_gives_the_same_images_and_labels(tmp_path, monkeypatch, edition, encode):
    planes, fine, coarse = write(edition, tmp_path, encode)
    accept(monkeypatch, tmp_path)
    repeat = 2 if edition == "npz" else 1

    sample = cifar20("train", data_dir=tmp_path)

    assert cifar_edition(tmp_path) == edition
    np.testing.assert_array_equal(
        sample.x, np.tile(planes.reshape(-1, 3, 32, 32), (repeat, 1, 1, 1))
    )
    assert sample.x.dtype == np.uint8
    np.testing.assert_array_equal(sample.y, np.tile(coarse, repeat))
    np.testing.assert_array_equal(sample.group, np.tile(fine, repeat))
    assert sample.classes == COARSE_NAMES
    assert len(cifar20("test", data_dir=tmp_path)) == 100


def test_the_official_editions_are_preferred(tmp_path):
    write("npz", tmp_path)
    write("archive", tmp_path)
    assert cifar_edition(tmp_path) == "archive"
    write("python", tmp_path)
    assert cifar_edition(tmp_path) == "python"


@pytest.mark.parametrize("edition", EDITIONS)
def test_an_altered_edition_is_refused_by_name(tmp_path, edition):
    write(edition, tmp_path)
    with pytest.raises(ValueError, match=r"(train|cifar-100).*md5 sum is .*, expected"):
        cifar20("train", data_dir=tmp_path)


class Runs:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("edition", ["python", "archive"])
def test_a_pickle_that_asks_for_a_function_is_refused_and_nothing_runs(tmp_path, edition):
    made = tmp_path / "made"
    write(edition, tmp_path, lambda *_: pickle.dumps(Runs(os.mkdir, str(made)), protocol=2))
    with pytest.raises(ValueError, match="altered"):
        cifar20("train", data_dir=tmp_path)
    assert not made.exists()


def test_what_is_not_there_is_named_with_the_way_out(tmp_path):
    with pytest.raises(FileNotFoundError, match="giw demo"):
        cifar20("train", data_dir=tmp_path)


def test_classes_are_numbered_in_alphabetical_order_five_to_a_superclass():
    assert len(set(FINE_NAMES)) == 100
    assert list(COARSE_NAMES) == sorted(COARSE_NAMES)
    np.testing.assert_array_equal(np.bincount(FINE_TO_COARSE), [5] * 20)
    np.testing.assert_array_equal(
        np.bincount(FINE_TO_COARSE[list(PAPER_TRAINING_CLASSES)]), [2] * 20
    )
    assert COARSE_NAMES[FINE_TO_COARSE[FINE_NAMES.index("maple_tree")]] == "trees"
    assert FINE_NAMES.index("apple") == 0
    assert FINE_NAMES.index("worm") == 99
