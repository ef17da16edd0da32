"""The twenty settings, and one trial of each."""

import os
from collections import Counter

import numpy as np
import pytest
from tests.paper.written_files import FINE_TO_COARSE

from giw.nets.models import KINDS
from giw.paper.cifar import COARSE_NAMES, FINE_NAMES
from giw.paper.settings import PAPER_SETTINGS, paper_problem, paper_samples, paper_setting
from giw.paper.shifts import Sample

NAMES = {f"{s.dataset}-{s.case}-{s.shift}": s for s in PAPER_SETTINGS}


def pretend(dataset, each=300):
    """A pool and a test sample with the right classes and tiny images."""
    fine = np.repeat(np.arange(100 if dataset == "cifar20" else 10), each)
    if dataset == "cifar20":
        y, classes, channels = FINE_TO_COARSE[fine], COARSE_NAMES, 3
    elif dataset == "mnist":
        y, classes, channels = fine % 2, ("even", "odd"), 1
    else:
        y, classes, channels = fine, tuple("0123456789"), 1
    x = np.full((len(fine), channels, 2, 2), 200, np.uint8)
    return Sample(x, y, fine, classes), Sample(x[::5], y[::5], fine[::5], classes)


def test_there_are_five_shifts_for_each_of_four_columns():
    assert len(NAMES) == 20
    assert Counter((s.dataset, s.case) for s in PAPER_SETTINGS) == {
        ("mnist", "iii"): 5,
        ("mnist", "iv"): 5,
        ("color_mnist", "iii"): 5,
        ("cifar20", "iii"): 5,
    }


@pytest.mark.parametrize(
    ("dataset", "decays"),
    [
        ("mnist", [0.005, 0.005, 0.005]),
        ("color_mnist", [0.002, 0.002, 1e-5]),
        ("cifar20", [1e-4, 0.008, 1e-7]),
    ],
)
def test_weight_decay_is_that_of_the_appendix(dataset, decays):
    shifts = ("support", "label_noise_0.4", "class_prior_100")

    assert [paper_setting(dataset, "iii", shift).weight_decay for shift in shifts] == decays


def test_sizes_groups_and_minorities_are_those_of_the_paper():
    three, four = (paper_setting("mnist", case, "class_prior_10") for case in ("iii", "iv"))
    cifar = paper_setting("cifar20", "iii", "label_noise_0.2")
    color = paper_setting("color_mnist", "iii", "support")

    assert [s.n_val for s in (three, four, color, cifar)] == [20, 16, 20, 1000]
    assert four.train_groups == (0, 1, 2, 3)
    assert four.test_groups == tuple(range(2, 10))
    assert color.minority == (1, 2, 6, 7, 8)
    assert sorted(cifar.minority) == sorted([4, 14, 18, 5, 12, 11, 16, 6, 8, 1])
    assert [FINE_NAMES[g] for g in cifar.train_groups[:3]] == ["apple", "aquarium_fish", "baby"]
    assert len(cifar.train_groups) == 40
    assert color.augmentation is None
    assert three.splits_validation is False
    assert cifar.splits_validation is True


def test_every_net_named_in_a_setting_exists():
    assert {setting.net for setting in PAPER_SETTINGS} <= set(KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_a_trial_of_every_setting_has_the_shift_it_names(name):
    s = NAMES[name]
    problem, truth = paper_problem(s.dataset, s.case, s.shift, trial=0, samples=pretend(s.dataset))

    assert len(problem.val) == s.n_val
    assert problem.train.n_classes == s.n_classes
    expected = {"mnist": {"iii": 0.4, "iv": 0.25}, "color_mnist": {"iii": 0.35}}
    assert truth.alpha == expected.get(s.dataset, {"iii": 0.4})[s.case]
    moved = flips(s.dataset, s.case, s.shift) if s.noise_rate else np.zeros(len(problem.train))
    assert abs(moved.mean() - s.noise_rate) < 4 * np.sqrt(0.24 / len(problem.train))
    size = np.bincount(problem.train.y, minlength=s.n_classes)
    majority = np.setdiff1d(np.arange(s.n_classes), s.minority)
    if s.prior_ratio > 1:
        np.testing.assert_allclose(size[majority].mean() / size[list(s.minority)].mean(),
                                   s.prior_ratio, rtol=0.15)  # fmt: skip


def flips(dataset, case, shift, trial=0):
    """Training labels that differ from those of the same trial without noise."""
    samples = pretend(dataset)
    noisy, clean = (
        paper_problem(dataset, case, name, trial=trial, samples=samples)[0].train
        for name in (shift, "support")
    )
    np.testing.assert_array_equal(noisy.x, clean.x)
    return noisy.y != clean.y


def test_trials_differ_and_repeat():
    first, again, other = (flips("mnist", "iii", "label_noise_0.4", t) for t in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_shifts_of_one_trial_share_their_validation_draw():
    """A higher noise rate, for one, flips more of the same labels on the same rows."""
    low, high = (flips("mnist", "iii", f"label_noise_{rate}", 3) for rate in (0.2, 0.4))
    assert not (low & ~high).any()


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("GIW_DATA"), reason="GIW_DATA names no data folder")
@pytest.mark.parametrize("dataset", ["mnist", "color_mnist", "cifar20"])
def test_real_files_make_the_paper_s_problem(dataset):
    samples = paper_samples(dataset)
    problem, _ = paper_problem(dataset, "iii", "support", trial=0, samples=samples)
    assert problem.train.x.shape[-2:] == (32, 32)
    assert problem.train.x.dtype == np.uint8
