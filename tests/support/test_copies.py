"""Repeated rows."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import giw
from giw.support import KNN
from giw.support.copies import first_occurrences


def test_copies_of_measurements_are_dropped_and_the_first_is_kept():
    z = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))

    assert first_occurrences(z[[0, 1, 1, 2, 0, *range(3, 30)]]).tolist() == [0, 1, 3, *range(5, 32)]


def test_different_rows_are_left_alone():
    assert first_occurrences(torch.arange(100.0)[:, None]) is None


def test_repeated_categories_are_left_alone():
    assert first_occurrences(torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])) is None


@pytest.mark.parametrize("values", [16, 17, 18, 19, 20, 21])
def test_one_column_of_few_values_can_be_split_whatever_their_number(values):
    rng = np.random.default_rng(0)
    z = rng.integers(0, values, (500, 1)).astype(float)
    split = giw.SupportSplitter(random_state=0).fit(z).split([[3.0], [3.0], [400.0]])
    assert split.inside.tolist() == [True, True, False]


def test_few_rows_that_occur_a_few_times_each_are_oversampled_and_dropped():
    z = torch.randn(18, 2, generator=torch.Generator().manual_seed(0))
    assert len(first_occurrences(z.repeat(4, 1))) == 18
    assert first_occurrences(z.repeat(5, 1)) is None


@pytest.mark.parametrize("calibration", ["leave_one_out", "hold_out"])
def test_an_oversampled_training_set_gives_the_split_of_the_original(calibration):
    rng = np.random.default_rng(0)
    z, y = rng.uniform(size=(500, 3)), rng.integers(0, 2, 500)
    val = rng.uniform(size=(200, 3))
    splitter = giw.SupportSplitter(calibration=calibration, random_state=0)

    plain = clone(splitter).fit(z, y).split(val)
    oversampled = clone(splitter).fit(np.concatenate([z, z, z]), np.tile(y, 3)).split(val)

    np.testing.assert_array_equal(plain.p_value, oversampled.p_value)


def test_a_splitter_with_a_scorer_can_be_cloned():
    splitter = clone(giw.SupportSplitter(KNN(k=3, unit_norm=True), level=0.1))

    assert splitter.scorer == KNN(k=3, unit_norm=True)
    assert splitter.level == 0.1


def test_a_net_that_collapsed_onto_one_point_per_class_gives_finite_answers():
    z = np.repeat(np.eye(3), 100, axis=0)
    splitter = giw.SupportSplitter(random_state=0).fit(z, np.repeat([0, 1, 2], 100))

    split = splitter.split(np.array([[1.0, 0.0, 0.0], [5.0, 5.0, 5.0]]))

    assert split.inside.tolist() == [True, False]
    assert np.isfinite(split.posterior).all()
    low, high = split.support_share_interval
    assert 0 <= low <= split.support_share <= high <= 1
    assert np.isfinite(splitter.cell_tilt_).all()
