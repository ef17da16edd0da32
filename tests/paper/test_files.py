"""What is where."""

from pathlib import Path

import pytest
from tests.paper.written_files import write_mnist

from giw.paper.files import KNOWN_FILES, KnownFile, catalogue, checked, data_folder


def test_the_argument_comes_before_the_environment_and_that_before_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("GIW_DATA", str(tmp_path / "environment"))
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == tmp_path / "environment"
    monkeypatch.delenv("GIW_DATA")
    assert data_folder() == Path.home() / ".cache" / "giw"


def test_the_catalogue_tells_missing_from_present_and_altered(tmp_path):
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


def test_a_whole_file_is_verified(tmp_path, monkeypatch):
    known = KnownFile("mnist", "raw", "abc", "900150983cd24fb0d6963f7d28e17f72")  # RFC 1321
    monkeypatch.setattr("giw.paper.files.KNOWN_FILES", (known,))
    (tmp_path / "abc").write_bytes(b"abc")

    (status,) = catalogue(tmp_path, verify=True)

    assert status.state == "verified"
    assert checked(status.path, known.md5) == tmp_path / "abc"


def test_a_file_larger_than_any_of_these_is_refused_unread(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as stream:
        stream.truncate(600 * 2**20)  # sparse: takes no room on disk
    with pytest.raises(ValueError, match="more than any file"):
        checked(path, None)
