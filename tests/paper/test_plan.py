import itertools
from dataclasses import asdict

import pytest

from giw.paper.plan import PAPER_METHODS, Run, group, plan


def test_the_whole_grid_is_twenty_settings_by_ten_methods_by_five_trials():
    runs = plan()
    beside = [run for run in runs if run.method == "giw_split"]  # where GIW itself does not split
    assert len(runs) - len(beside) == 20 * len(PAPER_METHODS) * 5
    assert len(beside) == 8 * 5
    assert {run.shift for run in beside} == {"class_prior_10", "class_prior_100"}
    assert len({run.key for run in runs}) == len(runs)


def test_published_methods_are_planned_where_validation_points_stay_in_training():
    mnist = {"datasets": ["mnist"], "cases": ["iii"], "trials": 1}
    for protocol, planned in (("honest", 0), ("published", 10), ("authors", 10)):
        runs = plan(**mnist, protocols=[protocol])
        assert sum(run.method.endswith("_published") for run in runs) == planned


def test_a_part_of_the_grid_is_chosen_by_name():
    runs = plan(datasets=["mnist"], cases=["iv"], shifts=["support"], methods=["giw"], trials=2)
    assert [(r.dataset, r.case, r.shift, r.method, r.trial) for r in runs] == [
        ("mnist", "iv", "support", "giw", 0),
        ("mnist", "iv", "support", "giw", 1),
    ]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"datasets": ["minst"]}, "unknown dataset 'minst'; known are cifar20, color_mnist, mnist"),
        ({"methods": ["gwi"]}, "unknown method"),
        ({"methods": ["giw_split"], "shifts": ["support"]}, "differs from giw only under class-pr"),
        ({"shifts": ["none"]}, "unknown shift"),
        ({"protocols": ["leaky"]}, "unknown protocol"),
        ({"datasets": ["cifar20"], "cases": ["iv"]}, "no setting"),
    ],
)
def test_what_is_not_in_the_grid_is_refused(choice, words):
    with pytest.raises(ValueError, match=words):
        plan(**choice)


def test_runs_that_differ_in_the_trial_alone_make_one_job():
    runs = plan(datasets=["mnist"], cases=["iii"], methods=["giw", "diw"], trials=3)
    jobs = group(runs)
    assert len(jobs) == 5 * 2
    assert all([run.trial for run in job.runs] == [0, 1, 2] for job in jobs)


def test_jobs_on_the_same_draws_follow_each_other():
    """Pretrained nets are kept only until the draws change."""
    jobs = group(
        plan(
            datasets=["mnist"],
            methods=["giw", "diw"],
            protocols=["honest", "published"],
            variants=["n_val_10"],
            trials=1,
        )
    )
    data = [job.first.data for job in jobs]
    changes = sum(a != b for a, b in itertools.pairwise(data))
    assert changes == len(set(data)) - 1


def test_a_run_survives_the_way_through_a_dictionary():
    run = Run("mnist", "iii", "support", "giw", 3, variant="oracle", epochs=7)
    assert Run.from_dict(asdict(run)) == run
    with pytest.raises(ValueError, match="a run has"):
        Run.from_dict({"dataset": "mnist"})
