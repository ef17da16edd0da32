"""What hidden parts of training say about strangers."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import IsolationForest

import giw
from giw.support import KNN
from giw.support.calibration import Sides
from giw.support.mixture import (
    shape_log_likelihood,
    split_mixture,
    split_with_doubt,
    usual_shapes,
)
from giw.support.separation import expectations, hidden_kinds


def islands(n, rng, classes=4, scale=6.0, dims=4):
    """Gaussian islands at the corners of a simplex."""
    label = rng.integers(0, classes, n)
    return scale * np.eye(classes, dims)[label] + rng.normal(size=(n, dims)), label


def kinds_of(z, label, *, by_label, classes, within=True):
    rows, code = torch.from_numpy(z), torch.from_numpy(label)
    sides = Sides(rows, code, rows, code, within=within)
    return hidden_kinds(
        sides, code, KNN(), by_label=by_label, classes=classes, generator=np.random.default_rng(0)
    )


def test_hidden_classes_of_far_islands_are_told_and_halves_of_them_less():
    z, label = islands(900, np.random.default_rng(0), scale=12.0)
    parts, classes = kinds_of(z, label, by_label=True, classes=True)

    assert len(classes) == 4
    assert len(parts) == 8  # two halves of each class
    assert expectations([classes]).hidden_auroc > 0.98
    assert 0.5 < expectations([parts]).hidden_auroc < expectations([classes]).hidden_auroc


def test_without_labels_only_clusters_are_hidden():
    z, label = islands(900, np.random.default_rng(0))

    assert len(kinds_of(z, 0 * label, by_label=False, classes=False)) == 1


def test_a_class_that_looks_like_the_rest_is_expected_to_look_ordinary():
    """Labels that mean nothing: hidden points are exchangeable with the others."""
    z = np.random.default_rng(0).normal(size=(900, 4))
    label = np.random.default_rng(1).integers(0, 3, 900)
    kinds = kinds_of(z, label, by_label=True, classes=True)

    assert abs(expectations(kinds[1:]).hidden_auroc - 0.5) < 0.05


def test_shapes_are_weights_and_reserve_some_for_what_was_not_seen():
    rank, count = np.ones(50, dtype=int), np.full(50, 999)
    expected = expectations([[(rank, count)]])
    shapes = expected.shapes

    assert shapes.sum() == pytest.approx(1.0)
    assert expected.hidden_auroc == pytest.approx(1 - 0.5 / 1_000)
    assert expected.blind == 0.0
    best = np.argmax(shape_log_likelihood(rank, count))
    assert shapes[best] == shapes.max()
    assert (shapes[usual_shapes() > 0] > 0).all()


def test_nothing_hidden_means_nothing_learned():
    expected = expectations([])

    np.testing.assert_array_equal(expected.shapes, usual_shapes())
    assert expected.hidden_auroc is None
    assert expected.blind == 0.0
    z, label = islands(60, np.random.default_rng(0))
    assert kinds_of(z, label, by_label=True, classes=True) == []


def test_features_that_tell_nothing_apart_leave_the_share_open():
    """Strangers that look like anyone: the interval must hold the truth, whatever it is."""
    rng = np.random.default_rng(0)
    z, label = rng.normal(size=(600, 20)), rng.integers(0, 2, 600)
    splitter = giw.SupportSplitter(random_state=0).fit(z, label)
    low, high = splitter.split(rng.normal(size=(1_000, 20))).support_share_interval

    assert low < 0.3
    assert high == 1.0
    assert splitter.assumptions_.hidden_auroc < 0.8


def test_features_that_separate_keep_the_interval_short():
    rng = np.random.default_rng(0)
    z, label = islands(600, rng, scale=15.0)
    splitter = giw.SupportSplitter(random_state=0).fit(z, label)
    split = splitter.split(islands(1_000, rng, scale=15.0)[0])
    low, high = split.support_share_interval

    assert high == 1.0
    assert low > 0.8
    assert "hidden from the rest: AUROC 0.9" in split.summary()


@pytest.mark.parametrize("share", [0.2, 0.8])
@pytest.mark.parametrize("m", [20, 200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_the_interval_covers_where_inside_and_outside_overlap(share, m):
    """Six classes of nine are known; AUROC of the other three is about 0.65.

    Ten problems, four draws each.
    """
    covered = []
    for seed in range(10):
        rng = np.random.default_rng([seed, m])
        center = 0.5 * rng.normal(size=(9, 12))
        label = rng.integers(0, 6, 900)
        splitter = giw.SupportSplitter(random_state=seed)
        splitter.fit(center[label] + rng.normal(size=(900, 12)), label)
        for _ in range(4):
            inside = rng.random(m) < share
            group = np.where(inside, rng.integers(0, 6, m), rng.integers(6, 9, m))
            split = splitter.split(center[group] + rng.normal(size=(m, 12)))
            low, high = split.support_share_interval
            covered.append(low <= share <= high)

    assert np.mean(covered) >= 0.9


def test_any_detector_can_be_asked():
    z, label = islands(900, np.random.default_rng(0))
    splitter = giw.SupportSplitter(IsolationForest(n_estimators=10, random_state=0), random_state=0)

    assert 0.4 < splitter.fit(z, label).assumptions_.hidden_auroc <= 1


def test_the_published_rule_asks_nothing():
    z, label = islands(200, np.random.default_rng(0))
    splitter = giw.SupportSplitter("osvm", threshold="text", random_state=0).fit(z, label)

    assert splitter.assumptions_.hidden_auroc is None


def test_labels_can_be_split_too():
    """With same_label, parts of a class are hidden and never a whole class."""
    z, label = islands(900, np.random.default_rng(0), scale=12.0)
    splitter = giw.SupportSplitter(same_label=True, random_state=0).fit(z, label)

    assert 0.5 < splitter.assumptions_.hidden_auroc < 0.99


def test_assumptions_decide_where_the_data_cannot():
    """Uniform p-values: everything inside, or strangers who look like anyone."""
    rank, count, unseen = np.arange(1, 1_001), np.full(1_000, 999), np.zeros(1_000, dtype=bool)
    known = split_mixture(rank, count, unseen)
    open_ = split_mixture(
        rank, count, unseen, assumptions=giw.support.mixture.Assumptions(blind=1.0)
    )

    assert known.interval[0] > 0.85
    assert open_.interval[0] < 0.2


def test_doubt_widens_the_interval_and_moves_no_point():
    """Half of the points pile up at zero; what is assumed concerns the interval alone."""
    rank = np.concatenate([np.full(100, 1), np.linspace(1, 1_000, 100).astype(int)])
    count, unseen = np.full(200, 999), np.zeros(200, dtype=bool)
    usual = split_mixture(rank, count, unseen)
    doubtful = giw.support.mixture.Assumptions(tilt=0.5, blind=0.8)
    found = split_with_doubt(rank, count, unseen, assumptions=doubtful)

    np.testing.assert_array_equal(found.posterior, usual.posterior)
    assert found.share == usual.share == pytest.approx(0.5, abs=0.05)
    assert found.interval[0] < usual.interval[0] - 0.1
    assert found.interval[0] <= found.share <= found.interval[1]
