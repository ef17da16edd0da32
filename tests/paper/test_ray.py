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


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'giw[ray]'")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={
            "env_vars": {"PYTHONPATH": os.pathsep.join([f"{ROOT}/src", str(ROOT)])},
        },
    )
    yield ray
    ray.shutdown()


def test_the_grid_on_ray_is_the_grid_here(tmp_path, cluster):
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


def test_a_failing_job_on_ray_is_told_of_and_the_others_run(tmp_path, cluster):
    broken = Job((Run("mnist", "iii", "support", "giw", 0, variant="n_train_99999", epochs=1),))
    jobs = [broken, tiny_grid.tiny_jobs()[0]]
    done = {d.job: d for d in run_jobs(jobs, tiny_grid.small_place(tmp_path), engine="ray")}
    assert "99999" in done[broken].error
    assert done[jobs[1]].written == 2
