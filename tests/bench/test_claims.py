import multiprocessing
import os
import signal
import time

import pytest

from giw.bench import claims
from giw.bench.claims import take


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
        time.sleep(60)


def test_the_claim_of_a_killed_process_is_void(tmp_path):
    path = tmp_path / "run"
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    process = context.Process(target=hold, args=(path, ready))
    process.start()
    assert ready.get(timeout=60)
    with take(path) as while_alive:
        assert not while_alive
    os.kill(process.pid, signal.SIGKILL)
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
        deadline = time.monotonic() + 30
        while path.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 0
