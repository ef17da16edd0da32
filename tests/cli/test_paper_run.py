"""``giw paper run`` as a person meets it."""

import sys

import numpy as np
import pytest
import torch
from tests.cli import tables
from tests.paper.tiny_grid import SAMPLES

from giw.paper import parallel, progress
from giw.paper.parallel import Place
from giw.paper.plan import Run
from giw.paper.rows import Store

SMALL = ["--dataset", "mnist", "--case", "iii", "--shift", "support", "--epochs", "1"]
SMALL += ["--method", "val_only", "--trials", "2", "--device", "cpu", "--yes", "--scale", "paper"]


def use(monkeypatch, read):
    """Read samples so, and not from files."""
    monkeypatch.setattr(parallel, "Place", lambda *args: Place(*args, read=read))


@pytest.fixture(autouse=True)
def no_files(monkeypatch):
    use(monkeypatch, lambda dataset, data_dir: SAMPLES)


def run(out, *more):
    return tables.run("paper", "run", "--out", out, *SMALL, *more)


def test_a_grid_is_planned_run_and_not_run_again(tmp_path):
    first = run(tmp_path)
    assert first.exit_code == 0, first.output
    assert "2 runs, 0 done, 2 to do" in first.output
    assert "2 runs, 2 done, 0 to do" in run(tmp_path).output


def test_the_callers_threads_are_put_back(tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        run(tmp_path)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_damaged_result_is_named_set_aside_and_done_again(tmp_path):
    run(tmp_path)
    (path,) = Store(tmp_path).files()
    before = Store(tmp_path).read_all()[0]
    path.write_text(path.read_text()[:100])
    again = run(tmp_path)
    assert "set aside" in again.output
    assert (tmp_path / "set_aside" / path.name).exists()
    for old, new in zip(before, Store(tmp_path).read_all()[0], strict=True):
        np.testing.assert_allclose(new.curve, old.curve, atol=0.02)


def test_data_are_read_once(tmp_path, monkeypatch):
    reads = []
    use(monkeypatch, lambda *what: reads.append(what) or SAMPLES)
    done = run(tmp_path, "--method", "pooled", "--shift", "label_noise_0.2")
    assert done.exit_code == 0, done.output
    assert reads == [("mnist", None)]


def test_without_ray_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run(tmp_path, "--engine", "ray")
    assert done.exit_code == 2
    assert "giw[ray]" in done.output


def test_hours_are_not_started_where_nobody_can_be_asked(tmp_path, monkeypatch):
    monkeypatch.setitem(progress.EPOCH_SECONDS["cpu"], "mnist", 1e6)
    arguments = [word for word in SMALL if word != "--yes"]
    done = tables.run("paper", "run", "--out", tmp_path, *arguments)
    assert done.exit_code == 2
    assert "add --yes" in done.output
    assert Store(tmp_path).files() == []


def test_a_device_that_is_not_there_is_refused_before_anything_is_planned(tmp_path):
    done = run(tmp_path / "new", "--device", "tpu", "--estimate")
    assert done.exit_code == 2
    assert "device 'tpu' cannot be used" in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_a_damaged_result_is_still_to_do(tmp_path):
    folder = tmp_path / "new"
    folder.mkdir()
    one = Run("mnist", "iii", "support", "val_only", 0, epochs=1)
    Store(folder).path(one).write_text("garbage")
    done = run(folder, "--estimate")
    assert "0 done, 2 to do" in done.output


def test_an_estimate_needs_no_data_and_does_nothing(tmp_path, monkeypatch):
    use(monkeypatch, None)
    done = run(tmp_path / "new", "--estimate")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 runs, 0 done, 2 to do in 1 jobs of 1 epochs on cpu; about ")
    assert not (tmp_path / "new").exists()


def test_what_was_not_named_is_told(tmp_path):
    arguments = [*SMALL, "--trials", "1"]
    done = tables.run("paper", "run", "--out", tmp_path, *arguments[:4], *arguments[6:])
    assert "note: chosen for this machine: --shift support" in done.stderr
    assert done.stdout.startswith("1 runs in")


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupt(job, place):
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "run_job", interrupt)
    done = run(tmp_path)
    assert done.exit_code == 130
    assert "finished runs are kept; run the same command again to go on" in done.output


def test_missing_data_are_one_line(tmp_path, monkeypatch):
    def missing(*_):
        raise FileNotFoundError("no MNIST in ~/.cache/giw")

    use(monkeypatch, missing)
    done = run(tmp_path)
    assert done.exit_code == 2
    assert "no MNIST in" in done.output


def test_what_another_process_has_locked_is_not_counted_as_done(tmp_path):
    with Store(tmp_path).lock(Run("mnist", "iii", "support", "val_only", 0, epochs=1)):
        done = run(tmp_path)
    assert "1 runs in" in done.output
    assert "1 not done" in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "gwi"], "unknown method 'gwi'"),
        (["--engine", "slurm"], "local, ray"),
        (["--protocol", "leaky"], "unknown protocol"),
        (["--variant", "n_val_few"], "unknown variant"),
        (["--variant", "n_val_0"], "unknown variant"),
        (["--variant", "oracle"], "one of giw and giw_split, not of val_only"),
        (["--variant", "out_to_in_1.5"], "unknown variant"),
        (["--out", __file__], "it is a file; name a folder with --out"),
    ],
)
def test_bad_choices_are_refused_in_one_line(tmp_path, arguments, words):
    result = run(tmp_path, *arguments)
    assert result.exit_code == 2
    assert words in result.output
