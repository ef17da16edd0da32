"""How far p-values may be off within a cell, and when a cell is really two."""

import numpy as np
import pytest
import torch

import giw
from giw.support.halves import LEAST_TILT, MOST_TILT, tilt, tilt_of_cells, tilt_spread


def dense_and_sparse(n, rng, sparse=0.5):
    """One class of two kinds: a tight island and a wide one."""
    wide = rng.random(n) < sparse
    z = rng.normal(size=(n, 3)) * np.where(wide, 1.0, 0.1)[:, None]
    z[:, 0] += 12 * wide
    return z, wide


@pytest.mark.parametrize("c", [0.5, 1.0, 2.0])
def test_the_tilt_of_beta_quantiles_is_log_c(c):
    """The quantile function of Beta(1, c) is 1 - (1 - u)^(1 / c)."""
    levels = (np.arange(20_000) + 0.5) / 20_000

    assert tilt(1 - (1 - levels) ** (1 / c)) == pytest.approx(np.log(c), abs=1e-3)


def test_halves_alike_have_no_tilt_and_halves_apart_have_much():
    """The strange half of a cell holds the p-values below one half: c = 1 / (1 - log 2)."""
    z = torch.zeros(200, 1)
    z[::2] = 10.0
    alike = tilt_of_cells(
        z, torch.arange(200.0), torch.zeros(200).long(), cells=1, generator=rng(0)
    )
    apart = tilt_of_cells(
        z.sort(dim=0).values,
        torch.arange(200.0),
        torch.zeros(200).long(),
        cells=1,
        generator=rng(0),
    )

    assert alike[0] < 0.02
    assert apart[0] == pytest.approx(
        np.sqrt((np.log(1 - np.log(2)) ** 2 + np.log(1 + np.log(2)) ** 2) / 2), abs=0.02
    )


def test_a_cell_with_few_rows_is_not_believed():
    found = tilt_of_cells(
        torch.zeros(5, 1), torch.arange(5.0), torch.ones(5).long(), cells=2, generator=rng(0)
    )

    assert found.tolist() == [0.0, MOST_TILT]


def test_only_cells_with_ordinary_points_count():
    p_value, cell = np.array([0.9, 0.5, 0.01]), np.array([0, 0, 1])

    assert tilt_spread(p_value, cell, np.array([0.3, 0.9])) == pytest.approx(0.3)
    assert tilt_spread(p_value, cell, np.array([0.0, 0.9])) == LEAST_TILT
    assert tilt_spread(p_value[2:], cell[2:], np.array([0.3, 0.4])) == pytest.approx(0.125**0.5)


def test_a_class_of_two_kinds_becomes_two_cells_and_keeps_the_level_for_one_of_them():
    """With one cell, points of the sparse kind alone are called outside far too often."""
    z, _ = dense_and_sparse(240, rng(0))
    splitter = giw.SupportSplitter(random_state=0).fit(z, np.zeros(240, dtype=int))
    only_sparse = dense_and_sparse(2_000, rng(1), sparse=1.0)[0]

    assert len(splitter.train_cell_share_) == 2
    assert abs(np.mean(~splitter.split(only_sparse).inside) - 0.05) < 0.03
    assert splitter.split(only_sparse).support_share > 0.95


def test_a_kind_too_rare_to_calibrate_widens_the_interval_instead():
    z, _ = dense_and_sparse(240, rng(0), sparse=0.16)
    splitter = giw.SupportSplitter(giw.support.KNN(relative=0.0), random_state=0)
    splitter.fit(z, np.zeros(240, dtype=int))
    only_sparse = dense_and_sparse(200, rng(1), sparse=1.0)[0]
    split = splitter.split(only_sparse)

    assert len(splitter.train_cell_share_) == 1
    assert split.assumptions.tilt > 0.4
    low, high = split.support_share_interval
    assert high - low > 0.3


def rng(seed):
    return np.random.default_rng(seed)
