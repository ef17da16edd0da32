"""MNIST's idx files, whole and altered; what is where; colours."""

from pathlib import Path

import numpy as np
import pytest
from tests.paper.written_files import accept, write_mnist

from giw.paper.files import KNOWN_FILES, KnownFile, catalogue, data_folder, whole_bytes
from giw.paper.mnist import mnist
from giw.paper.shifts import Sample, colored


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw", "."])
def test_images_and_labels_are_read_from_any_of_the_usual_folders(
    tmp_path, monkeypatch, packed, folder
):
    images, labels = write_mnist(tmp_path / folder, packed=packed)
    accept(monkeypatch, tmp_path)

    sample = mnist("train", data_dir=tmp_path)

    np.testing.assert_array_equal(sample.x, images[:, None])
    assert sample.x.dtype == np.uint8
    np.testing.assert_array_equal(sample.group, labels)
    np.testing.assert_array_equal(sample.y, labels % 2)
    assert len(mnist("test", data_dir=tmp_path)) == 15
    digits = mnist("train", task="digit", data_dir=tmp_path)
    np.testing.assert_array_equal(digits.y, labels)
    assert digits.n_classes == 10


def test_the_argument_comes_before_the_environment_and_that_before_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("GIW_DATA", str(tmp_path / "environment"))
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == tmp_path / "environment"
    monkeypatch.delenv("GIW_DATA")
    assert data_folder() == Path.home() / ".cache" / "giw"


def test_an_altered_file_is_refused_with_its_name_and_both_checksums(tmp_path):
    write_mnist(tmp_path / "mnist")
    with pytest.raises(ValueError, match=r"train-images.*md5 sum is [0-9a-f]{32}, expected f68b3c"):
        mnist("train", data_dir=tmp_path)


def test_missing_files_name_the_folders_and_the_demo(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"GIW_DATA.*data --fetch mnist.*giw demo"):
        mnist("train", data_dir=tmp_path)


def test_the_catalogue_tells_missing_from_present_altered_and_verified(tmp_path, monkeypatch):
    write_mnist(tmp_path / "mnist")

    plain = {status.file.name: status for status in catalogue(tmp_path)}
    verified = {status.file.name: status for status in catalogue(tmp_path, verify=True)}

    name = "train-labels-idx1-ubyte.gz"
    assert set(plain) == {known.name for known in KNOWN_FILES}
    assert plain["cifar-100-python.tar.gz"].state == "missing"
    assert plain[name].state == "present"
    assert plain[name].size == plain[name].path.stat().st_size
    assert plain[name].md5 is None
    assert verified[name].state == "altered"
    assert verified[name].md5 != verified[name].file.md5
    accept(monkeypatch, tmp_path)
    assert {s.state for s in catalogue(tmp_path, verify=True)} == {"verified", "missing"}


def test_a_file_larger_than_any_of_these_is_refused_unread(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as stream:
        stream.truncate(600 * 2**20)  # sparse: takes no room on disk
    with pytest.raises(ValueError, match="more than any file"):
        whole_bytes(KnownFile("mnist", "raw", "huge", "0"), path)


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
