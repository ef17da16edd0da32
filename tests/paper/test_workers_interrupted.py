"""``giw paper run --processes 2``, stopped or killed, gives the table of one left alone.

Real programs: the command, and the two processes that it starts. Signals come when an epoch of a
job is on the disk and the job is not done.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.paper.process_tree import (
    AVAILABLE,
    is_alive,
    is_importing,
    kill_if_alive,
    workers_of,
)

from giw.paper.rows import Store

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AVAILABLE, reason="looks at processes in /proc"),
]


def start(folder, processes=2):
    """The command in a session of its own, as a terminal starts it."""
    path = os.pathsep.join([f"{ROOT}/src", str(ROOT)])
    words = [
        "-m",
        "tests.paper.small_bench",
        "--out",
        str(folder),
        "--processes",
        str(processes),
    ]
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(folder, processes=2):
    command = start(folder, processes)
    said = command.communicate(timeout=6000)[1]
    assert command.returncode == 0, said


def results(folder):
    found, damaged = Store(folder).read_all()
    assert damaged == []
    return {r.run.key: (tuple(r.curve), r.split, r.extra) for r in found}


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    finish(folder, processes=1)
    return results(folder)


def wait_until(true, command, seconds=600):
    deadline = time.monotonic() + seconds
    while not true():
        assert command.poll() is None, command.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)


def in_the_middle(folder, command):
    wait_until(lambda: list(folder.glob("unfinished/[!.]*.safetensors*")), command)


def check_goes_on(folder, left_alone):
    done = results(folder)
    assert len(done) < len(left_alone)
    finish(folder)
    assert results(folder) == left_alone
    # what a killed writer has left under a hidden name stays for ten minutes
    assert [p for p in (folder / "unfinished").iterdir() if not p.name.startswith(".")] == []


def test_ctrl_c_stops_all_processes_and_saves(tmp_path, left_alone):
    command = start(tmp_path)
    in_the_middle(tmp_path, command)
    os.killpg(command.pid, signal.SIGINT)  # Ctrl-C reaches everyone
    said = command.communicate(timeout=600)[1]

    assert command.returncode == 130, said
    assert "all processes were stopped, and their jobs are saved" in said
    assert "run the same command again to go on" in said
    assert "Traceback" not in said
    assert list(tmp_path.glob("unfinished/*.safetensors*"))
    check_goes_on(tmp_path, left_alone)


def test_ctrl_c_while_processes_are_starting_is_as_clean(tmp_path):
    command = start(tmp_path)
    wait_until(lambda: sum(map(is_importing, workers_of(command.pid))) == 2, command)
    os.killpg(command.pid, signal.SIGINT)
    said = command.communicate(timeout=600)[1]

    assert command.returncode == 130, said
    assert "run the same command again to go on" in said
    assert "Traceback" not in said


def test_a_killed_worker_ends_the_command_with_a_way_on(tmp_path, left_alone):
    command = start(tmp_path)
    in_the_middle(tmp_path, command)
    kill_if_alive(workers_of(command.pid)[0])
    said = command.communicate(timeout=600)[1]

    assert command.returncode == 1, said
    assert "one of the processes was killed" in said.splitlines()[-1]
    assert "run the same command again to go on" in said.splitlines()[-1]
    assert "Traceback" not in said
    check_goes_on(tmp_path, left_alone)


def test_workers_of_a_killed_command_end_and_the_next_one_goes_on(tmp_path, left_alone):
    command = start(tmp_path)
    in_the_middle(tmp_path, command)
    workers = workers_of(command.pid)
    command.kill()
    command.communicate(timeout=600)
    deadline = time.monotonic() + 600

    assert len(workers) == 2
    while any(map(is_alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    check_goes_on(tmp_path, left_alone)
