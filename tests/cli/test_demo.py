"""The command as a person meets it."""

import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import giw
from giw.cli import app
from giw.cli.demo import demo_arrays, run_demo

runner = CliRunner()


def test_help_groups_the_commands():
    told = runner.invoke(app, ["--help"], env={"COLUMNS": "100", "NO_COLOR": "1"}).output
    tables, paper = told.index("Your tables"), told.index("The paper")
    assert tables < told.index(" fit ") < paper < told.index(" paper ")
    assert "bench" not in told


@pytest.mark.parametrize(("old", "new"), [("bench", "run"), ("data", "data"), ("report", "report")])
def test_old_names_say_what_they_are_called_now(old, new):
    done = runner.invoke(app, [old, "--out", "x", "--tables"])
    assert done.exit_code == 2
    assert done.output == f"giw {old}: is now called giw paper {new}\n"


def test_the_demo_draws_what_it_says():
    arrays, inside = demo_arrays(seed=0)
    assert len(arrays["y_val"]) == 20
    assert inside.sum() == 8
    images = {name: {x.tobytes() for x in arrays[f"x_{name}"]} for name in ("train", "val", "test")}
    assert not images["val"] & (images["train"] | images["test"])
    assert not images["train"] & images["test"]


@pytest.mark.slow
def test_giw_beats_plain_importance_weighting_and_its_split_is_mostly_right():
    scores = run_demo(trials=5)
    mean = {
        m: np.mean([s.record.final_accuracy() for s in scores if s.record.method == m])
        for m in ("giw_plus", "giw", "diw", "val_only")
    }
    assert mean["giw"] > mean["diw"] + 0.05
    assert mean["giw"] > mean["val_only"]
    assert mean["giw_plus"] > mean["diw"] + 0.05
    for score in scores:
        if score.record.split is not None:
            assert np.mean(np.asarray(score.record.split.inside) != score.inside) <= 0.2


def test_version_is_printed():
    assert runner.invoke(app, ["--version"]).output.strip() == f"giw {giw.__version__}"


def test_the_demo_writes_tables_five_figures_and_a_page(tmp_path):
    result = runner.invoke(app, ["demo", "--trials", "1", "--seed", "3", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for name in ("GIW+", "GIW", "DIW", "Pooled", "Pretrain-val", "Val-only"):
        assert name in result.output
    stems = ("tables", "images", "learning_curves", "split", "trials")
    figures = {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")}
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "table.md"} | figures
    page = (tmp_path / "report.html").read_text()
    assert "giw demo --trials 1 --seed 3" in page
    assert page.count("<figure") == 5
    for way in (
        "training alone",
        "validation alone",
        "both tables",
        "both, balanced",
        "giw, stack",
    ):
        assert way in result.output


def test_a_folder_that_cannot_be_written_is_noticed_before_the_work(tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = runner.invoke(
        app, ["demo", "--out", str(tmp_path / "taken")], env={"COLUMNS": "200", "NO_COLOR": "1"}
    )
    assert result.exit_code == 2
    assert "--out" in result.output


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "giw", "--version"], capture_output=True, text=True, check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.stdout.strip() == f"giw {giw.__version__}"
