from dataclasses import replace

import numpy as np

from giw.paper.bench.plan import Run
from giw.paper.bench.store import Result
from giw.paper.report.cells import gather
from giw.paper.report.quality import commit_sheet, split_sheet, time_sheet


def experiment_of(*results):
    (experiment,), _ = gather(results)
    return experiment


def result(method="giw", trial=0, seconds=1.0, split=None, weights=None, **changes):
    run = Run("mnist", "iii", "support", method, trial, epochs=10, **changes)
    return Result(run, np.full(10, 0.5), seconds, split=split or {}, weights=weights or {})


def test_split_quality_is_averaged_and_a_missing_figure_is_a_dash():
    sheet = split_sheet(
        experiment_of(
            result(trial=0, split={"alpha": 0.3, "true_alpha": 0.4, "auroc": 0.9}),
            result(trial=1, split={"alpha": 0.5, "true_alpha": 0.4}),
        )
    )
    assert [entry.text for entry in sheet.rows[0]] == [
        *("GIW, honest", "0.40 ± 0.14", "0.40 ± 0.00", "–", "–", "–", "0.90", "2")
    ]


def test_protocols_stand_side_by_side_and_given_splits_are_not_judged():
    alpha = {"alpha": 0.4}
    sheet = split_sheet(
        experiment_of(
            result(split=alpha),
            result(split=alpha, protocol="published"),
            result(split=alpha, variant="osvm_code"),
            result(split=alpha, variant="n_val_100"),
            result(split=alpha, variant="n_val_40"),
            result(split=alpha, variant="oracle"),
            result(split=alpha, variant="out_to_in_0.3"),
        )
    )
    assert [row[0].text for row in sheet.rows] == [
        "GIW, honest",
        "GIW, 40 validation points, honest",
        "GIW, 100 validation points, honest",
        "GIW, published split, threshold of the code, honest",
        "GIW, published",
    ]


def test_without_a_split_there_is_no_table():
    assert split_sheet(experiment_of(result("diw"))) is None


def test_times_are_over_all_runs_of_a_method_and_the_total_counts_ablations():
    sheet = time_sheet(
        experiment_of(
            result(seconds=10.0, weights={"effective_share": 0.25}),
            result(trial=1, seconds=20.0, weights={"effective_share": 0.75}),
            result("diw", seconds=5.0),
            result(seconds=1000.0, variant="soft"),
        )
    )
    by_name = {row[0].text: [entry.text for entry in row[1:]] for row in sheet.rows}
    assert by_name["GIW"] == ["2", "15.0", "10.0", "20.0", "0.50"]
    assert by_name["DIW"] == ["1", "5.0", "5.0", "5.0", "–"]
    assert "1,035 s" in sheet.notes[0]


def test_versions_are_told_where_one_experiment_holds_several():
    old, new = {"commit": "aaa"}, {"commit": "bbb"}
    runs = [
        replace(result("giw"), about=old),
        replace(result("giw", trial=1), about=new),
        replace(result("diw"), about=new),
    ]
    experiments, _ = gather(runs)
    sheet = commit_sheet(experiments)
    texts = [[entry.text for entry in row] for row in sheet.rows]
    assert texts == [["aaa", "1", "GIW 1"], ["bbb", "2", "DIW 1, GIW 1"]]
    assert commit_sheet(gather(runs[1:])[0]) is None
