"""Fetching from a server on this very machine."""

import functools
import hashlib
import sys
import threading
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.paper.written_files import write_mnist

from giw.paper.files import KnownFile, fetch
from giw.paper.mnist import mnist

pytest.importorskip("pooch")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def mirror(tmp_path):
    """A folder of four small files, and the address that serves it."""
    folder = tmp_path / "served"
    write_mnist(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def known(mirror, monkeypatch):
    """The files of the mirror take the place of the published ones."""
    sums = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in mirror[0].iterdir()}
    files = [KnownFile("mnist", "gz", name, md5, f"{mirror[1]}/") for name, md5 in sums.items()]
    monkeypatch.setattr("giw.paper.files.KNOWN_FILES", files)
    return files


@pytest.mark.usefixtures("known")
def test_what_is_fetched_is_verified_and_read(mirror, tmp_path):
    paths = fetch("mnist", tmp_path / "data")

    assert [path.parent for path in paths] == [tmp_path / "data" / "mnist"] * 4
    assert len(mnist("train", data_dir=tmp_path / "data")) == 30


def test_files_that_are_there_are_not_fetched_again(mirror, known, tmp_path):
    fetch("mnist", tmp_path / "data")
    for path in mirror[0].iterdir():
        path.unlink()

    assert len(fetch("mnist", tmp_path / "data")) == len(known)


def test_an_altered_download_is_refused_with_both_checksums_and_not_kept(mirror, known, tmp_path):
    first = known[0]
    (mirror[0] / first.name).write_bytes(b"not the file")
    found = hashlib.md5(b"not the file").hexdigest()

    with pytest.raises(ValueError, match=rf"is not {first.name}(.|\n)*{first.md5}") as caught:
        fetch("mnist", tmp_path / "data")

    assert found in str(caught.value)
    assert not (tmp_path / "data" / "mnist" / first.name).exists()


def test_a_file_the_server_lacks_and_no_server_name_the_way_out(
    mirror, known, tmp_path, monkeypatch
):
    for path in mirror[0].iterdir():
        path.unlink()
    with pytest.raises(ConnectionError, match="giw demo"):
        fetch("mnist", tmp_path / "data")
    nowhere = [replace(file, url="http://127.0.0.1:9/") for file in known]  # nobody listens
    monkeypatch.setattr("giw.paper.files.KNOWN_FILES", nowhere)
    with pytest.raises(ConnectionError, match="giw demo"):
        fetch("mnist", tmp_path / "data")


@pytest.mark.usefixtures("known")
def test_without_pooch_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"giw\[data\].*giw demo"):
        fetch("mnist", tmp_path / "data")
