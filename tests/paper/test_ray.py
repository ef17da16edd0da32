"""The grid on a real Ray, started here."""

import os
from pathlib import Path

import pytest
from tests.paper import tiny_grid

from giw.paper.parallel import run_jobs
from giw.paper.plan import Job, Run
from giw.paper.rows import Store

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture
def machines():
    """A cluster of two machines with a processor each, of which the second may be killed."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'giw[ray]'")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    paths = [f"{ROOT}/src", str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}},
    )
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


def test_the_grid_on_ray_is_the_grid_here(tmp_path, machines):
    done = list(
        run_jobs(tiny_grid.tiny_jobs(), tiny_grid.small_place(tmp_path / "ray"), engine="ray")
    )
    assert [d.error for d in done] == [""] * len(tiny_grid.tiny_jobs())
    tiny_grid.run_tiny_grid(tmp_path / "here")
    there, here = (
        {r.run.key: tuple(r.curve) for r in Store(tmp_path / name).read_all()[0]}
        for name in ("ray", "here")
    )
    assert there == here


def test_a_failing_job_on_ray_is_told_of_and_the_others_run(tmp_path, machines):
    broken = Job((Run("mnist", "iii", "support", "giw", 0, variant="n_train_99999", epochs=1),))
    jobs = [broken, tiny_grid.tiny_jobs()[0]]
    done = {d.job: d for d in run_jobs(jobs, tiny_grid.small_place(tmp_path), engine="ray")}
    assert "99999" in done[broken].error
    assert done[jobs[1]].written == 2


def test_a_machine_that_dies_loses_nothing_and_the_others_go_on(tmp_path, machines):
    cluster, second = machines
    jobs = tiny_grid.tiny_jobs()
    running = run_jobs(jobs, tiny_grid.small_place(tmp_path / "ray"), engine="ray")
    done = [next(running)]
    cluster.remove_node(second, allow_graceful=False)
    done += running

    assert [d.error for d in done] == [""] * len(jobs)
    tiny_grid.run_tiny_grid(tmp_path / "here")
    there, here = (
        {r.run.key: tuple(r.curve) for r in Store(tmp_path / name).read_all()[0]}
        for name in ("ray", "here")
    )
    assert there == here
