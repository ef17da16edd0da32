"""Strange for its label."""

import numpy as np
import pytest
import torch

import giw
from giw.support.scorers import KNN, OSVM, SameLabel


def line(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


def test_only_rows_of_the_same_label_count():
    scorer = SameLabel(KNN(k=1, relative=0)).fit(line(0.0, 10.0), torch.tensor([0, 1]))

    assert scorer.score(line(1.0, 1.0), torch.tensor([0, 1])).tolist() == [1.0, 9.0]


def test_a_label_without_rows_gets_the_least_score():
    scorer = SameLabel(KNN(k=1, relative=0)).fit(line(0.0, 10.0), torch.tensor([0, 1]))

    assert scorer.score(line(1.0), torch.tensor([5])).tolist() == [1.0]


def test_it_leaves_one_out_if_the_scorer_within_does():
    assert SameLabel(KNN()).leaves_one_out
    assert not SameLabel(OSVM()).leaves_one_out


def test_a_familiar_point_with_the_wrong_label_is_outside():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    z = 10.0 * y[:, None] + rng.uniform(size=(600, 2))
    val, y_val = 10.0 * y[:100, None] + rng.uniform(size=(100, 2)), y[:100].copy()
    y_val[:50] = 1 - y_val[:50]

    by_x = giw.SupportSplitter(random_state=0).fit(z, y).split(val, y_val)
    by_both = giw.SupportSplitter(same_label=True, random_state=0).fit(z, y).split(val, y_val)

    assert by_x.inside.mean() > 0.9
    assert not by_both.inside[:50].any()
    assert by_both.inside[50:].mean() > 0.9


def test_calibration_rows_bring_their_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    z = 10.0 * y[:, None] + rng.uniform(size=(600, 2))
    splitter = giw.SupportSplitter(same_label=True, random_state=0)
    splitter.fit(z[:400], y[:400], z[400:], y[400:])

    assert splitter.split(z[400:], y[400:]).inside.mean() > 0.9


def test_missing_labels_are_asked_for():
    z, y = np.random.default_rng(0).normal(size=(60, 2)), np.repeat([0, 1], 30)
    splitter = giw.SupportSplitter(same_label=True)
    with pytest.raises(ValueError, match="needs y_train"):
        splitter.fit(z)
    with pytest.raises(ValueError, match="needs y_val"):
        splitter.fit(z, y).split(z)
    with pytest.raises(ValueError, match="y_calibration"):
        splitter.fit(z, y, z)
    with pytest.raises(ValueError, match="call fit"):
        SameLabel(KNN()).score(line(0.0), torch.tensor([0]))
