import numpy as np
import pytest
from tests.paper.report.made_up import made_up

from giw.paper.bench.plan import Run, plan
from giw.paper.bench.store import Result
from giw.paper.report.cells import Key, Place, gather

PLACE = Place("mnist", "iii", "support")


def run(method="giw", trial=0, **changes):
    return Run(*PLACE, method, trial, **changes)


def test_epochs_and_seeds_are_never_mixed():
    runs = [run(epochs=20), run(trial=1, epochs=20), run(epochs=30), run(epochs=20, seed=1)]
    experiments, remarks = gather([made_up(r) for r in runs])
    assert [(e.epochs, e.seed, e.n_results) for e in experiments] == [
        (20, 0, 2),
        (20, 1, 1),
        (30, 0, 1),
    ]
    assert remarks == []


def test_protocols_and_variants_are_cells_of_their_own():
    runs = [run(), run(protocol="published"), run(variant="soft")]
    (experiment,), _ = gather([made_up(r) for r in runs])
    assert set(experiment.cells) == {
        Key(PLACE, "honest", "giw"),
        Key(PLACE, "published", "giw"),
        Key(PLACE, "honest", "giw", "soft"),
    }
    assert list(experiment.standings(PLACE, "honest")) == ["giw"]
    assert experiment.protocols() == ["honest", "published"]


def test_the_order_of_results_does_not_matter():
    results = [made_up(r) for r in plan(datasets=["mnist"], methods=["giw", "diw"], trials=2)]
    assert repr(gather(results)) == repr(gather(results[::-1]))


def test_a_run_in_two_files_is_counted_once_and_named():
    (experiment,), remarks = gather([made_up(run()), made_up(run())])
    assert experiment.n_results == 1
    assert remarks == [f"{run().key} stands in more than one file; counted once"]


@pytest.mark.parametrize(
    ("strange", "words"),
    [
        (Run("digits", "iii", "support", "giw", 0), "no setting of the paper"),
        (run(protocol="leaky"), "no table has the protocol 'leaky'"),
    ],
)
def test_runs_from_elsewhere_are_named_and_left_out(strange, words):
    experiments, remarks = gather([Result(strange, np.full(100, 0.5), 1.0)])
    assert experiments == []
    assert strange.key in remarks[0]
    assert words in remarks[0]


def test_percentages_are_not_taken_for_accuracies():
    experiments, remarks = gather([Result(run(), np.full(100, 91.0), 1.0)])
    assert experiments == []
    assert "outside 0 to 1" in remarks[0]


def test_a_curve_of_another_length_is_counted_and_named():
    (experiment,), remarks = gather([Result(run(), np.full(7, 0.5), 1.0)])
    assert experiment.n_results == 1
    assert "7 accuracies for 100 epochs" in remarks[0]


def test_curves_are_stacked_in_the_order_of_trials():
    results = [made_up(run(trial=1), 0.2), made_up(run(trial=0), 0.1)]
    (experiment,), _ = gather(results)
    curves = experiment.curves(Key(PLACE, "honest", "giw"))
    assert curves.shape == (2, 100)
    np.testing.assert_allclose(curves[:, 0], [0.1, 0.2])
    assert experiment.curves(Key(PLACE, "honest", "diw")) is None


def test_methods_beyond_the_ten_come_last():
    (experiment,), _ = gather([made_up(run("train_only"), 0.5)])
    assert len(experiment.methods) == 11
    assert experiment.methods[-1] == "train_only"


def test_the_experiment_with_most_runs_of_plain_methods_comes_first():
    runs = [run(epochs=20, variant=f"n_val_{n}") for n in (10, 20, 40)]
    experiments, _ = gather([made_up(r) for r in [*runs, run(epochs=30)]])
    assert [e.epochs for e in experiments] == [30, 20]


def test_an_experiment_of_ablations_alone_has_no_protocol_to_show():
    (experiment,), _ = gather([made_up(run(variant="soft"))])
    assert experiment.protocols() == []
    assert experiment.dataset_cases == []
