"""MNIST's idx files, whole, broken and lying."""

import gzip
import tracemalloc

import numpy as np
import pytest
from tests.paper.written_files import idx_bytes, write_mnist

from giw.paper.mnist import colored, mnist, read_idx
from giw.paper.sample import Sample


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw", "."])
def test_images_and_labels_are_read_from_any_of_the_usual_folders(tmp_path, packed, folder):
    images, labels = write_mnist(tmp_path / folder, packed=packed)

    sample = mnist("train", data_dir=tmp_path, verify=False)

    np.testing.assert_array_equal(sample.x, images[:, None])
    assert sample.x.dtype == np.uint8
    np.testing.assert_array_equal(sample.group, labels)
    np.testing.assert_array_equal(sample.y, labels % 2)
    assert len(mnist("test", data_dir=tmp_path, verify=False)) == 15


def test_the_digit_itself_can_be_the_task(tmp_path):
    _, labels = write_mnist(tmp_path / "mnist")

    sample = mnist("train", task="digit", data_dir=tmp_path, verify=False)

    np.testing.assert_array_equal(sample.y, labels)
    assert sample.n_classes == 10


def test_the_folder_can_come_from_the_environment(tmp_path, monkeypatch):
    write_mnist(tmp_path / "mnist")
    monkeypatch.setenv("GIW_DATA", str(tmp_path))

    assert len(mnist(verify=False)) == 30


def test_an_altered_file_is_refused_with_its_name_and_both_checksums(tmp_path):
    write_mnist(tmp_path / "mnist")

    with pytest.raises(ValueError, match=r"train-images.*md5 sum is [0-9a-f]{32}, expected f68b3c"):
        mnist("train", data_dir=tmp_path)


def test_missing_files_name_the_folders_and_the_demo(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"GIW_DATA.*data --fetch mnist.*giw demo"):
        mnist("train", data_dir=tmp_path)


@pytest.mark.parametrize("packed", [True, False])
def test_a_truncated_file_is_refused_even_unverified(tmp_path, packed):
    raw = idx_bytes(np.zeros((5, 28, 28)))
    whole = gzip.compress(raw) if packed else raw
    path = tmp_path / ("images.gz" if packed else "images")
    for kept in (0, 3, 10, len(whole) - 1):
        path.write_bytes(whole[:kept])
        with pytest.raises(ValueError, match="images"):
            read_idx(path)


@pytest.mark.parametrize(
    ("claimed", "message"),
    [
        ((2**32 - 1,) * 4, "more than any file"),
        ((400_000_000,), "holds only 12"),
        ((11,), "holds more"),
    ],
)
def test_a_header_that_lies_costs_no_memory(tmp_path, claimed, message):
    for suffix, write in (("", bytes), (".gz", gzip.compress)):
        path = tmp_path / f"file{suffix}"
        path.write_bytes(write(idx_bytes(np.zeros(12), claimed=claimed)))
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=message):
                read_idx(path)
            assert tracemalloc.get_traced_memory()[1] < 2**20
        finally:
            tracemalloc.stop()


def test_other_types_and_files_that_do_not_fit_together_are_refused(tmp_path):
    path = tmp_path / "floats"
    path.write_bytes(b"\x00\x00\x0d\x01\x00\x00\x00\x00")
    with pytest.raises(ValueError, match="begins with 00 00 0d 01"):
        read_idx(path)

    write_mnist(tmp_path / "mnist", n=30, packed=False)
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(7)))
    with pytest.raises(ValueError, match="do not fit together"):
        mnist("train", data_dir=tmp_path, verify=False)
    with pytest.raises(ValueError, match="part is train or test"):
        mnist("validation", data_dir=tmp_path)


def test_paint_goes_into_one_channel_and_names_the_group():
    grey = Sample(np.arange(12, dtype=np.uint8).reshape(3, 1, 2, 2), [5, 6, 7], [5, 6, 7])

    painted = colored(grey, [0, 2, 1])

    assert painted.x.shape == (3, 3, 2, 2)
    assert painted.x.dtype == np.uint8
    for row, channel in enumerate([0, 2, 1]):
        np.testing.assert_array_equal(painted.x[row, channel], grey.x[row, 0])
    np.testing.assert_array_equal(painted.x.sum(axis=1), grey.x[:, 0])
    np.testing.assert_array_equal(painted.group, [0, 2, 1])
    np.testing.assert_array_equal(painted.y, grey.y)
    np.testing.assert_array_equal(colored(grey, 1).group, 1)


@pytest.mark.parametrize("color", [3, -1, [0, 1, 0.5]])
def test_colors_that_do_not_exist_are_refused(color):
    grey = Sample(np.zeros((3, 1, 2, 2)), [0, 0, 0], [0, 0, 0])
    with pytest.raises(ValueError, match="color must be 0"):
        colored(grey, color)
    with pytest.raises(ValueError, match="need grey images"):
        colored(colored(grey, 0), 0)
