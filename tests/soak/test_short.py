"""The harness of ``make soak``, for seconds instead of minutes."""

import os
import signal
import time

import pytest
from tests.paper.process_tree import kill_if_alive
from tests.soak import full_disk, fuzzing, killing
from tests.soak.works import Grid, ShortFit, ShortTraining


@pytest.fixture(autouse=True)
def this_tree(monkeypatch):
    for name in ("PYTHONPATH", "OMP_NUM_THREADS"):  # put back at the end
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    killing.prepare()


def test_no_spoiled_file_does_harm():
    for found in fuzzing.fuzz_all(400, first_seed=5):
        assert not found.losses, found


@pytest.mark.parametrize("work", [ShortTraining, ShortFit])
def test_killed_work_goes_on_and_ends_as_if_left_alone(work, tmp_path):
    found = killing.kill_often(work, tmp_path, kills=2, seed=1)
    assert found.kills == 2
    assert not found.losses, found.said


def test_a_full_disk_leaves_the_last_good_file_and_is_told_in_one_line(tmp_path):
    for found in full_disk.fill_all(tmp_path, step=150):
        assert found.failed > 1
        assert not found.losses, found


@pytest.mark.slow  # on a busy machine the work may be done before the signal comes
@pytest.mark.parametrize("work", [ShortFit, Grid])
def test_an_interrupted_command_says_how_to_go_on_and_goes_on(work, tmp_path):
    right, _ = killing.left_alone(work, tmp_path / "alone")
    folder = tmp_path / "stopped"
    folder.mkdir()
    process = killing.start_work(work, folder)
    while not work.started(folder) and process.is_alive():
        time.sleep(0.002)
    kill_if_alive(process.pid, signal.SIGINT)
    process.join()
    said = (tmp_path / "stopped.said").read_text()
    assert process.exitcode == 130, said
    assert "run the same command again to go on" in said
    assert "Traceback" not in said
    work.check(folder)
    process = killing.start_work(work, folder)
    process.join()
    assert process.exitcode == 0
    assert work.result(folder) == right
