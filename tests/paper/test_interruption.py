"""Grids that are killed, and grids that share a folder."""

import multiprocessing
import os
import random
import signal
from pathlib import Path

import pytest
from tests.killed import count_calls, killed_after
from tests.paper import tiny_grid

from giw.pages.tables import text_sheet
from giw.paper.report import paper_sheets
from giw.paper.rows import Store

# children of a server that has imported everything once start in no time
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.paper.tiny_grid"])
N_RUNS = sum(len(job.runs) for job in tiny_grid.tiny_jobs())


@pytest.fixture(scope="module", autouse=True)
def this_tree():
    """The server of processes must import this tree, whatever else is installed."""
    root = Path(__file__).parents[2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([f"{root}/src", str(root)]))
        yield


@pytest.fixture(scope="module")
def left_alone(this_tree, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    process = CONTEXT.Process(target=tiny_grid.run_tiny_grid, args=(folder,))
    process.start()
    process.join()
    return folder


def tables(folder):
    """All tables but those of wall time, and the learning curves to the last digit."""
    results, damaged = Store(folder).read_all()
    assert damaged == []
    texts = [text_sheet(s) for s in paper_sheets(results) if not s.name.startswith("time")]
    return texts, {r.run.key: tuple(r.curve) for r in results}


def n_written(folder):
    return len(Store(folder).read_all()[0])


def test_a_laptop_grid_killed_three_times_gives_the_tables_of_one_left_alone(tmp_path, left_alone):
    tiny_grid.run_tiny_grid(tmp_path / "first")  # calls some functions that later ones need not
    calls, rng = count_calls(tiny_grid.run_tiny_grid, tmp_path / "counted"), random.Random(0)
    folder, context = tmp_path / "killed", multiprocessing.get_context("fork")
    for _ in range(3):
        moment = rng.randint(calls // 4, calls // 3)
        process = context.Process(
            target=killed_after, args=(moment, tiny_grid.run_tiny_grid, folder)
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert 0 < n_written(folder) < N_RUNS
    tiny_grid.run_tiny_grid(folder)
    assert n_written(folder) == N_RUNS
    assert tables(folder) == tables(left_alone)


def test_two_processes_share_a_folder_and_do_no_run_twice(tmp_path, left_alone):
    written = CONTEXT.Queue()
    processes = [
        CONTEXT.Process(target=tiny_grid.tell_tiny_grid, args=(tmp_path, written)) for _ in range(2)
    ]
    for process in processes:
        process.start()
    counts = [written.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    assert sum(counts) == N_RUNS
    assert tables(tmp_path) == tables(left_alone)
