import os
import threading

import pytest

from giw.writing import whole_file, write_whole


def test_text_and_bytes_are_read_back_in_a_folder_that_was_not_there(tmp_path):
    path = tmp_path / "new" / "folder" / "file"
    write_whole(path, "α\n")
    assert path.read_bytes() == "α\n".encode()
    write_whole(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_whatever_fails_the_old_file_stays_whole_and_nothing_lies_about(
    step, tmp_path, monkeypatch
):
    path = tmp_path / "file"
    write_whole(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match=r"cannot write .*file: No space .* is unchanged; make room"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_gives_up_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_whole(path, "old")

    def give_up():
        with whole_file(path) as file:
            file.write(b"half of the new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_never_sees_half_of_a_file(tmp_path):
    path, contents = tmp_path / "file", [letter * 200_000 for letter in "abcdef"]
    write_whole(path, contents[0])
    done = threading.Event()

    def write():
        for content in contents * 3:
            write_whole(path, content)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while not done.is_set():
        seen.append(path.read_text())
    writer.join()
    assert set(seen) <= set(contents)


def test_two_writers_of_one_name_do_not_mix(tmp_path):
    path = tmp_path / "file"
    with whole_file(path) as first:
        first.write(b"first, ")
        with whole_file(path) as second:
            second.write(b"second")
        first.write(b"to the end")
    assert path.read_text() == "first, to the end"


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_has_the_permissions_that_open_would_give_it(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "ours", "x")
        (tmp_path / "opened").write_text("x")
    finally:
        os.umask(before)
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "opened").stat().st_mode


def test_what_killed_writers_left_is_removed_once_it_is_old(tmp_path):
    path = tmp_path / "file"
    old, young = tmp_path / f".file.{'a' * 16}", tmp_path / f".file.{'b' * 16}"
    folder = tmp_path / f".file.{'c' * 16}"
    other, foreign = tmp_path / f".file2.{'a' * 16}", tmp_path / ".file.swp"
    folder.mkdir()
    for left in (old, young, other, foreign, folder / "inside"):
        left.write_text("half")
    for left in (old, other, foreign, folder):
        os.utime(left, (0, 0))
    write_whole(path, "new")
    assert set(tmp_path.iterdir()) == {path, young, other, foreign}


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        write_whole(tmp_path, "text")
