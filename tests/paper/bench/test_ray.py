"""The grid on a real Ray, started here."""

import os
from pathlib import Path

import pytest
from tests.paper.bench import tiny_grid
from typer.testing import CliRunner

from giw.cli import app
from giw.paper.bench import engines
from giw.paper.bench.engines import Place, run_jobs
from giw.paper.bench.plan import Job, Run
from giw.paper.bench.store import Store

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
            "worker_process_setup_hook": tiny_grid.use_small_samples,
            "env_vars": {"PYTHONPATH": os.pathsep.join([f"{ROOT}/src", str(ROOT)])},
        },
    )
    yield ray
    ray.shutdown()


def test_the_grid_on_ray_is_the_grid_here(tmp_path, cluster, monkeypatch):
    done = list(
        run_jobs(tiny_grid.tiny_jobs(), Place(tmp_path / "ray", None, threads=1), engine="ray")
    )
    assert [d.error for d in done] == [""] * len(tiny_grid.tiny_jobs())
    monkeypatch.setattr(engines, "paper_samples", engines.paper_samples)
    tiny_grid.run_tiny_grid(tmp_path / "here")
    there, here = (
        {r.run.key: tuple(r.curve) for r in Store(tmp_path / name).read_all()[0]}
        for name in ("ray", "here")
    )
    assert there == here


def test_a_worker_that_dies_is_told_of(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(engines, "run_job", tiny_grid.die)
    (done,) = run_jobs(tiny_grid.tiny_jobs()[:1], Place(tmp_path, None), engine="ray")
    assert "WorkerCrashed" in done.error
    assert len(done.error.splitlines()) == 1


def test_a_failing_job_on_ray_is_told_of_and_the_others_run(tmp_path, cluster):
    broken = Job((Run("mnist", "iii", "support", "giw", 0, variant="n_train_99999", epochs=1),))
    jobs = [broken, tiny_grid.tiny_jobs()[0]]
    done = {d.job: d for d in run_jobs(jobs, Place(tmp_path, None, threads=1), engine="ray")}
    assert "99999" in done[broken].error
    assert done[jobs[1]].written == 2


def test_the_command_runs_on_ray_and_does_nothing_twice(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(engines, "paper_samples", lambda dataset, data_dir: tiny_grid.FEWER)
    monkeypatch.setattr(engines, "_SAMPLES", {})
    options = "--dataset mnist --case iii --shift support --method val_only --method pooled"
    options += " --trials 2 --epochs 1 --device cpu --yes --engine ray"
    command = ["bench", "--out", str(tmp_path), *options.split()]
    first, second = (CliRunner().invoke(app, command, env={"COLUMNS": "200"}) for _ in range(2))
    assert first.exit_code == 0, first.output
    assert "4 runs in" in first.output
    assert "4 done, 0 to do" in second.output
    assert len(Store(tmp_path).read_all()[0]) == 4
