"""The grid on made-up images, small enough to train in a blink."""

import re
import subprocess

import numpy as np
import pytest
from tests.paper.tiny_grid import SAMPLES

import giw
from giw.paper.parallel import Place, run_job, run_jobs
from giw.paper.plan import Job, Run, group, plan
from giw.paper.rows import Store
from giw.paper.run import (
    Runner,
    about_this_machine,
    config_of,
    make_problem,
)

SETTING = {"datasets": ["mnist"], "cases": ["iii"], "shifts": ["label_noise_0.2"], "epochs": 1}

IMAGES = ("train_images", "train_images_shape", "val_images", "val_images_shape")


def place_of(folder):
    return Place(folder, None, read=small_samples)


def small_samples(dataset, data_dir):
    return SAMPLES


def jobs(*methods, trials=2, **choice):
    return group(plan(methods=methods, trials=trials, **SETTING, **choice))


def test_methods_of_a_setting_share_draws_noise_and_start():
    runner = Runner(SAMPLES)
    first, second = (runner.run(job) for job in jobs("pooled", "giw"))
    assert [r.run.trial for r in first] == [0, 1]
    assert all(r.curve.shape == (1,) for r in first + second)
    alone = Runner(SAMPLES).run(jobs("giw")[0])
    np.testing.assert_array_equal(alone[0].curve, second[0].curve)


def test_a_split_is_judged_and_its_scores_are_kept():
    (job,) = group(plan(**SETTING | {"shifts": ["support"]}, methods=["giw"], trials=1))
    (done,) = Runner(SAMPLES).run(job)
    assert done.split["true_alpha"] == pytest.approx(0.4)
    assert {"alpha", "false_outside", "false_inside", "auroc"} <= set(done.split)
    assert sorted(done.extra) == ["inside", "p_value"]
    assert len(done.extra["p_value"]) == 20
    assert sum(done.extra["inside"]) == 8
    assert done.about["torch"]


def test_the_oracle_is_always_right_and_flips_are_as_many_as_asked_for():
    runner = Runner(SAMPLES)
    (oracle,), (flipped,) = (
        runner.run(jobs("giw", trials=1, variants=[variant])[0])
        for variant in ("oracle", "out_to_in_0.5")
    )
    assert oracle.split["false_inside"] == oracle.split["false_outside"] == 0
    assert flipped.split["false_inside"] == pytest.approx(0.5)
    assert flipped.split["false_outside"] == 0


def test_the_schedule_shrinks_with_the_epochs_and_keeps_the_papers_decay():
    run = Run("color_mnist", "iii", "class_prior_10", "giw", 0, epochs=40)
    config = config_of(run)
    assert config.drop_every == 10
    assert config.weight_decay == 1e-5
    assert (config.batch_size, config.learning_rate, config.decay) == (256, 5e-4, 0.1)
    assert config.pretrain_epochs == 10


def test_sizes_follow_the_variant():
    fewer, _ = make_problem(Run("mnist", "iii", "support", "giw", 0, variant="n_train_50"), SAMPLES)
    assert len(fewer.train) == 50
    small, _ = make_problem(Run("mnist", "iii", "support", "giw", 0, variant="n_val_10"), SAMPLES)
    assert len(small.val) == 10


def test_an_interrupted_grid_gives_the_same_results_as_one_left_alone(tmp_path):
    (job,) = jobs("pooled", trials=3)
    list(run_jobs([job], place_of(tmp_path / "whole")))
    run_job(Job(job.runs[1:2]), place_of(tmp_path / "cut"))  # one trial, then the rest
    list(run_jobs([job], place_of(tmp_path / "cut")))
    whole, _ = Store(tmp_path / "whole").read_all()
    cut, _ = Store(tmp_path / "cut").read_all()
    assert [r.run for r in whole] == [r.run for r in cut]
    for a, b in zip(whole, cut, strict=True):
        np.testing.assert_allclose(a.curve, b.curve, atol=0.02)  # side by side rounds otherwise


def test_a_run_locked_by_another_process_is_left_alone(tmp_path):
    (job,) = jobs("val_only", trials=1)
    with Store(tmp_path).lock(job.first):
        assert run_job(job, place_of(tmp_path)).written == 0


def test_a_failing_job_is_told_of_and_the_next_one_runs(tmp_path):
    broken = Job((Run("mnist", "iii", "support", "giw", 0, variant="n_train_99999", epochs=1),))
    (fine,) = jobs("val_only", trials=1)
    first, second = run_jobs([broken, fine], place_of(tmp_path))
    assert "99999" in first.error
    assert second.written == 1


def test_results_name_their_commit_and_whether_files_differ_from_it(tmp_path, monkeypatch):
    package = tmp_path / "src" / "giw"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(giw, "__file__", str(package / "__init__.py"))
    assert about_this_machine("cpu")["commit"] == ""

    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    clean = about_this_machine("cpu")["commit"]
    assert re.fullmatch("[0-9a-f]{12}", clean)

    (package / "__init__.py").write_text("changed = True")
    assert about_this_machine("cpu")["commit"] == clean + "+"
