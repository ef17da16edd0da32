"""CIFAR-100 in its five editions."""

import tracemalloc
import zipfile

import numpy as np
import pytest
from tests.paper.written_files import (
    archive,
    cifar_arrays,
    python2_pickle,
    python3_pickle,
    records,
    write_npz,
)

from giw.paper.cifar import (
    COARSE_NAMES,
    FINE_NAMES,
    FINE_TO_COARSE,
    PAPER_TRAINING_CLASSES,
    cifar20,
    cifar_edition,
)

EDITIONS = ["python", "python archive", "binary", "binary archive", "npz"]


def write(edition, root):
    """Write one edition; training is arrays with seed 0 (twice for npz), test with seed 1."""
    train, test = cifar_arrays(seed=0), cifar_arrays(n=100, seed=1)
    kind = edition.split()[0]
    if kind == "npz":
        for name, content in (("train_a", train), ("train_b", train), ("test", test)):
            write_npz(root / f"{name}.npz", *content)
        return train
    encode = {"python": python2_pickle, "binary": records}[kind]
    suffix = ".bin" if kind == "binary" else ""
    members = {
        f"cifar-100-{kind}/train{suffix}": encode(*train),
        f"cifar-100-{kind}/test{suffix}": encode(*test),
    }
    if "archive" in edition:
        (root / f"cifar-100-{kind}.tar.gz").write_bytes(archive(members))
    else:
        (root / f"cifar-100-{kind}").mkdir()
        for name, content in members.items():
            (root / name).write_bytes(content)
    return train


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_edition_gives_the_same_images_and_labels(tmp_path, edition):
    planes, fine, coarse = write(edition, tmp_path)
    repeat = 2 if edition == "npz" else 1

    sample = cifar20("train", data_dir=tmp_path, verify=False)

    assert cifar_edition(tmp_path) == edition
    np.testing.assert_array_equal(
        sample.x, np.tile(planes.reshape(-1, 3, 32, 32), (repeat, 1, 1, 1))
    )
    assert sample.x.dtype == np.uint8
    np.testing.assert_array_equal(sample.y, np.tile(coarse, repeat))
    np.testing.assert_array_equal(sample.group, np.tile(fine, repeat))
    assert sample.classes == COARSE_NAMES
    assert len(cifar20("test", data_dir=tmp_path, verify=False)) == 100


def test_the_official_editions_are_preferred(tmp_path):
    write("npz", tmp_path)
    write("binary", tmp_path)
    assert cifar_edition(tmp_path) == "binary"
    write("python", tmp_path)
    assert cifar_edition(tmp_path) == "python"
    assert len(cifar20("train", edition="npz", data_dir=tmp_path, verify=False)) == 400


@pytest.mark.parametrize("edition", EDITIONS)
def test_an_altered_edition_is_refused_by_name(tmp_path, edition):
    write(edition, tmp_path)

    found = r"it has \d+ bytes, expected 153700000" if edition == "binary" else "md5 sum is .*, exp"
    with pytest.raises(ValueError, match=rf"(train|cifar-100).*{found}"):
        cifar20("train", data_dir=tmp_path)


def test_python_3_writes_a_file_that_is_read_too(tmp_path):
    arrays = cifar_arrays()
    (tmp_path / "cifar-100-python").mkdir()
    for part in ("train", "test"):
        (tmp_path / "cifar-100-python" / part).write_bytes(python3_pickle(*arrays))

    sample = cifar20("train", data_dir=tmp_path, verify=False)

    np.testing.assert_array_equal(sample.x.reshape(200, -1), arrays[0])


def test_labels_that_contradict_their_superclass_are_refused(tmp_path):
    planes, fine, coarse = cifar_arrays()
    (tmp_path / "cifar-100-binary").mkdir()
    for part in ("train", "test"):
        wrong = records(planes, fine, np.roll(coarse, 1))
        (tmp_path / "cifar-100-binary" / f"{part}.bin").write_bytes(wrong)

    with pytest.raises(ValueError, match="each class lie in its superclass"):
        cifar20("train", data_dir=tmp_path, verify=False)


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_truncated_edition_is_refused_even_unverified(tmp_path, edition):
    write(edition, tmp_path)
    for path in [p for p in tmp_path.rglob("*") if p.is_file()]:
        path.write_bytes(path.read_bytes()[:-1000])

    with pytest.raises(ValueError, match=r"train|cifar-100"):
        cifar20("train", data_dir=tmp_path, verify=False)


@pytest.mark.parametrize("claimed", [(10**7, 32, 32, 3), (1, 32, 32, 3)])
def test_an_npz_header_that_lies_costs_no_memory(tmp_path, claimed):
    write("npz", tmp_path)
    header = np.lib.format.header_data_from_array_1_0(np.zeros(1, np.uint8)) | {"shape": claimed}
    with (
        zipfile.ZipFile(tmp_path / "train_a.npz", "w") as archive_,
        archive_.open("images.npy", "w") as stream,
    ):
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(bytes(5000))

    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"images\.npy claims uint8 of shape"):
            cifar20("train", data_dir=tmp_path, verify=False)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_what_is_not_there_is_named_with_the_way_out(tmp_path):
    with pytest.raises(FileNotFoundError, match="giw demo"):
        cifar20("train", data_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match="cifar-100-python/train"):
        cifar20("train", data_dir=tmp_path, edition="python")
    with pytest.raises(ValueError, match="edition is one of"):
        cifar20("train", data_dir=tmp_path, edition="matlab")
    with pytest.raises(ValueError, match="part is train or test"):
        cifar20("val", data_dir=tmp_path)


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
