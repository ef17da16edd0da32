"""The harness of ``make soak``, for seconds instead of minutes."""

import os
import signal
import time

import pytest
from tests.paper.process_tree import AVAILABLE, kill_if_alive
from tests.soak import full_disk, fuzzing, killing, power_cut
from tests.soak.__main__ import recorded, told_sum
from tests.soak.works import FourRanks, Grid, ShortFit, ShortTraining


@pytest.fixture(autouse=True)
def this_tree(monkeypatch):
    for name in ("PYTHONPATH", "OMP_NUM_THREADS"):  # put back at the end
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    killing.prepare()


def test_no_spoiled_file_does_harm():
    for found in fuzzing.fuzz_all(400, first_seed=5):
        assert not found.losses, found


def test_readers_are_fuzzed_side_by_side_in_processes_of_their_own():
    found = list(fuzzing.fuzz_side_by_side(20, 5, 2, ["checkpoint", "result"]))
    assert {one.name for one in found} == {"checkpoint", "result store and packs"}
    assert sum(one.cases for one in found) >= 20
    assert not any(one.losses for one in found)


@pytest.mark.parametrize(
    "work", [ShortTraining, ShortFit, pytest.param(FourRanks, marks=pytest.mark.slow)]
)
def test_killed_work_goes_on_and_ends_as_if_left_alone(work, tmp_path):
    found = killing.kill_often(work, tmp_path, kills=2, seed=1)
    assert found.kills == 2
    assert not found.losses, found.said


def test_a_full_disk_leaves_the_last_good_file_and_is_told_in_one_line(tmp_path):
    for found in full_disk.fill_all(tmp_path, step=150):
        assert found.failed > 1
        assert not found.losses, found


@pytest.mark.skipif(not AVAILABLE, reason="asks /proc what is open")
def test_a_power_cut_leaves_the_old_file_or_the_new_one(tmp_path):
    for found in power_cut.cut_all(tmp_path):
        assert found.old
        assert found.new
        assert not found.losses, found.said


@pytest.mark.skipif(not AVAILABLE, reason="asks /proc what is open")
@pytest.mark.parametrize("forgotten", ["fsync of files", "fsync of folders"])
def test_a_power_cut_finds_what_a_writer_forgets(tmp_path, forgotten):
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()

    def write(version):
        part = path.with_name("part")
        with open(part, "w") as file:
            file.write(str(version))
            file.flush()
            if forgotten != "fsync of files":
                os.fsync(file.fileno())
        os.replace(part, path)
        if forgotten != "fsync of folders":
            handle = os.open(path.parent, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)

    found = power_cut.cut("careless", path.parent, write, lambda: int(path.read_text()))
    assert found.losses > 0


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


def test_the_page_has_what_all_kept_runs_add_up_to():
    page = (killing.ROOT / "docs" / "reliability.md").read_text()
    assert told_sum(recorded()) in page
