"""Variants are methods with something changed; they compose."""

from dataclasses import replace

import pytest
import torch
from tests.paper.tiny_grid import SAMPLES
from torch import as_tensor
from torch.func import vmap
from torch.testing import assert_close

from giw.nets.methods import method_named
from giw.objective import DynamicWeights
from giw.paper.narrow_svm import PublishedSplitter
from giw.paper.plan import Run, plan
from giw.paper.run import config_of, make_net, make_problem
from giw.paper.variants import composed, make_method


def test_published_methods_cut_the_rate_where_the_paper_does_however_few_their_epochs():
    run = Run("mnist", "iii", "support", "giw_published", 0, "authors", epochs=200)
    assert config_of(run).drop_every == 100
    assert config_of(replace(run, method="giw")).drop_every == 50


def test_giw_does_not_split_where_the_papers_does_not_whatever_else_is_changed():
    assert make_method("giw", "", {}, splits=False).name == "giw_unsplit"
    changed = make_method("giw", "paper_bandwidth", {}, splits=False)
    assert changed == method_named("giw_unsplit", weigh=DynamicWeights(bandwidth="paper"))
    assert make_method("giw", "n_val_40", {}, splits=False).name == "giw_unsplit"
    with pytest.raises(ValueError, match=r"does not split under class-prior shift \(giw_split"):
        make_method("giw", "soft", {}, splits=False)


def test_split_giw_splits_there():
    assert make_method("giw_split", "", {}, splits=False) == method_named("giw")
    assert make_method("giw_split", "soft", {}, splits=False) == method_named("giw", soft=True)


def test_the_papers_own_configuration_is_a_variant():
    """One-class SVM at 0.4, the threshold of the text, and the published width, at once."""
    made = make_method("giw", "eval_loss+osvm_text+paper_bandwidth", {})
    assert repr(make_method("giw_published", "", {})) == repr(made)
    assert make_method("diw_published", "", {}).weigh == made.weigh
    unsplit = make_method("giw_published", "", {}, splits=False)
    assert (unsplit.name, unsplit.weigh) == ("giw_unsplit", made.weigh)
    assert made.split_on == "hidden"
    assert (
        made.splitter.get_params()
        == PublishedSplitter(scorer="osvm", threshold="text").get_params()
    )
    assert made.weigh == DynamicWeights(bandwidth="paper")


def test_variants_compose_in_any_order_and_every_run_has_all_of_them():
    assert composed(["soft", "hidden"]) == composed(["hidden+soft"]) == "hidden+soft"
    runs = plan(datasets=["mnist"], cases=["iii"], shifts=["support"], methods=["giw"],
                variants=["paper_bandwidth", "osvm_code"], trials=2)  # fmt: skip
    assert {run.variant for run in runs} == {"osvm_code+paper_bandwidth"}


def test_the_split_differs_in_one_thing_only():
    assert make_method("giw", "soft", {}) == method_named("giw", soft=True)
    by_level = make_method("giw", "level_0.1", {})
    assert by_level == method_named("giw", level=0.1)


@pytest.mark.parametrize(
    ("method", "variant", "settings"),
    [
        ("mw_net", "first_release", {"normalise": False}),
        ("dann", "val_share_0.5", {"val_share": 0.5}),
        ("ccsa", "val_share_0", {"val_share": 0.0}),
    ],
)
def test_readings_of_what_the_paper_leaves_open_belong_to_one_method(method, variant, settings):
    assert make_method(method, variant, {}) == method_named(method, **settings)
    with pytest.raises(ValueError, match="not of diw"):
        make_method("diw", variant, {})


def test_one_step_an_epoch_changes_the_epochs_and_not_the_method():
    run = Run("mnist", "iii", "support", "val_only", 0, variant="one_step")
    assert make_method("val_only", "one_step", {}) == method_named("val_only")
    assert (config_of(run).epoch_of, config_of(run).test_last) == ("val", 10)
    plain = replace(run, variant="")
    assert (config_of(plain).epoch_of, config_of(plain).test_last) == ("train", None)
    assert run.data == plain.data  # one pretraining serves both


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("n_val_few", "unknown variant 'n_val_few'"),
        ("n_val_0", "unknown variant"),
        ("out_to_in_1.5", "unknown variant"),
        ("oracle+out_to_in_0.3", "more than one known split"),
        ("paper_bandwidth+median_bandwidth", "two values of bandwidth"),
        ("one_step", "is one of val_only and pretrain_val"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(variant, words):
    with pytest.raises(ValueError, match=words):
        make_method("giw", variant, {})


def test_published_giw_is_pretrained_on_all_rows_and_shares_that_with_no_other():
    run = Run("mnist", "iii", "support", "giw_published", 0, "authors")
    assert config_of(run).max_calibration == 0
    assert run.data != replace(run, method="giw").data
    assert run.data == replace(run, method="giw", variant="all_rows").data


def test_the_wide_net_has_the_channels_of_the_colour_net():
    run = Run("mnist", "iii", "support", "giw", 0, variant="wide_net")
    problem, _ = make_problem(run, SAMPLES)
    net = make_net(run, problem, seed=0)
    assert [net.conv1.out_channels, net.conv2.out_channels] == [20, 50]
    assert net(as_tensor(problem.val.x)).shape == (20, 2)


def test_trials_side_by_side_get_the_weights_that_each_gets_alone():
    weigh = DynamicWeights(bandwidth="paper")
    train, val = torch.rand(2, 3, 30, generator=torch.manual_seed(0)).pow(3).unbind()
    inside = torch.arange(90).reshape(3, 30) % 3 == 0
    both = vmap(weigh)(train, val[:, :20], inside[:, :20].float())
    for trial in range(3):
        one = weigh(train[trial], val[trial, :20], inside[trial, :20].float())
        assert_close(both[trial], one)
    assert_close(weigh(train[0], val[0]), weigh(train[0], val[0], torch.ones(30)))
