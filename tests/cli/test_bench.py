import importlib

import numpy as np
import pytest
from tests.bench.test_runner import SAMPLES
from typer.testing import CliRunner

from giw.bench import engines
from giw.bench.store import Store
from giw.cli import app

runner = CliRunner()
command = importlib.import_module("giw.cli.bench")  # the package exports a function so named
SMALL = ["--dataset", "mnist", "--case", "iii", "--shift", "support", "--epochs", "1"]
SMALL += ["--method", "val_only", "--trials", "2", "--device", "cpu", "--yes"]


@pytest.fixture(autouse=True)
def no_files(monkeypatch):
    monkeypatch.setattr(engines, "paper_samples", lambda dataset, data_dir: SAMPLES)
    monkeypatch.setattr(engines, "_RUNNERS", {})
    monkeypatch.setattr(command, "_check_data", lambda runs, data: None)


def bench(out, *more):
    return runner.invoke(app, ["bench", "--out", str(out), *SMALL, *more], env={"COLUMNS": "200"})


def test_a_grid_is_planned_run_and_not_run_again(tmp_path):
    first = bench(tmp_path)
    assert first.exit_code == 0, first.output
    assert "2 runs, 0 done, 2 to do" in first.output
    assert "2 runs, 2 done, 0 to do" in bench(tmp_path).output


def test_a_damaged_result_is_named_set_aside_and_done_again(tmp_path):
    bench(tmp_path)
    path = sorted(tmp_path.glob("*.json"))[0]
    before = Store(tmp_path).read(path)
    path.write_text(path.read_text()[:100])
    again = bench(tmp_path)
    assert "set aside" in again.output
    assert (tmp_path / "set_aside" / path.name).exists()
    np.testing.assert_allclose(Store(tmp_path).read(path).curve, before.curve, atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "gwi"], "unknown method 'gwi'"),
        (["--engine", "slurm"], "local, ray"),
        (["--protocol", "leaky"], "unknown protocol"),
    ],
)
def test_bad_choices_are_refused_in_one_line(tmp_path, arguments, words):
    result = bench(tmp_path, *arguments)
    assert result.exit_code == 2
    assert words in result.output
