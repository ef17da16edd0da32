import multiprocessing
import os
import socket
import time

import pytest

from giw.paper.bench import claims
from giw.paper.bench.claims import take


def test_a_claim_has_one_owner_at_a_time_and_ends_with_its_work(tmp_path):
    path = tmp_path / "claims" / "run"
    with take(path) as first, take(path) as second:
        assert first
        assert not second
    assert not path.exists()
    with take(path) as again:
        assert again


def hold(path, ready):
    with take(path) as mine:
        ready.put(mine)
        time.sleep(3600)  # until it is killed


def test_the_claim_of_a_killed_process_is_void(tmp_path):
    path = tmp_path / "run"
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    process = context.Process(target=hold, args=(path, ready))
    process.start()
    assert ready.get(timeout=600)
    with take(path) as while_alive:
        assert not while_alive
    process.kill()
    process.join()
    with take(path) as after:
        assert after


@pytest.mark.parametrize(("silent_for", "void"), [(5, False), (3600, True)])
@pytest.mark.parametrize("text", ["elsewhere 1", ""])
def test_a_claim_from_elsewhere_is_void_once_nobody_touches_it(tmp_path, text, silent_for, void):
    """As in a folder of results copied from a machine that was switched off."""
    path = tmp_path / "run"
    path.write_text(text)
    then = time.time() - silent_for
    os.utime(path, (then, then))
    with take(path) as mine:
        assert mine == void
    assert path.exists() != void
    assert [p for p in tmp_path.iterdir() if p != path] == []


def test_a_living_owner_touches_its_claim(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.01)
    path = tmp_path / "run"
    with take(path):
        os.utime(path, (0, 0))
        deadline = time.monotonic() + 600
        while path.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 0


def test_a_claim_of_a_former_process_with_our_number_is_void(tmp_path):
    """In a container that is started again the first process has the number that it had before."""
    path = tmp_path / "run"
    path.write_text(f"{socket.gethostname()} {os.getpid()}")
    with take(path) as mine, take(path) as again:
        assert mine
        assert not again  # now it is our own


def test_a_silent_claim_whose_number_another_process_has_now_is_void(tmp_path):
    path = tmp_path / "run"
    path.write_text(f"{socket.gethostname()} {os.getppid()}")
    with take(path) as mine:
        assert not mine
    os.utime(path, (0, 0))
    with take(path) as mine:
        assert mine


@pytest.mark.parametrize("text", [b"\xff\xfe", b"a " + b"9" * 400, b"\x00" * 50])
def test_a_claim_of_noise_blocks_for_a_while_only(tmp_path, text):
    path = tmp_path / "run"
    path.write_bytes(text.replace(b"a ", f"{socket.gethostname()} ".encode()))
    os.utime(path, (0, 0))
    with take(path) as mine:
        assert mine
