"""Cells: trusted classes, clusters, and small cells that merge."""

import numpy as np
import torch

from giw.support.cells import cluster, merge_small_cells, neighbour_agreement


def test_a_small_cell_joins_the_nearest_one():
    count = np.array([100, 3, 100])
    center = np.array([[0.0], [9.0], [10.0]])

    assert merge_small_cells(count, center, least=50).tolist() == [0, 2, 2]


def test_merging_goes_on_until_every_cell_is_large_enough():
    count = np.array([10, 10, 10, 100])
    center = np.array([[0.0], [1.0], [2.5], [50.0]])

    assert len(set(merge_small_cells(count, center, least=30)[:3])) == 1
    assert merge_small_cells(count, center, least=30)[3] == 3
    assert len(set(merge_small_cells(count, center, least=1_000))) == 1


def test_large_cells_are_left_alone():
    assert merge_small_cells(np.array([5, 5]), np.zeros((2, 1)), least=5).tolist() == [0, 1]


def test_agreement_is_one_for_clean_islands_and_a_coin_for_coin_labels():
    rng = np.random.default_rng(0)
    z = torch.from_numpy(np.repeat([[0.0], [10.0]], 500, axis=0) + rng.normal(0, 0.1, (1000, 1)))
    clean = torch.arange(2).repeat_interleave(500)
    coin = torch.from_numpy(rng.integers(0, 2, 1000))

    assert neighbour_agreement(z, clean, rng) == 1.0
    assert abs(neighbour_agreement(z, coin, rng) - 0.5) < 0.06


def test_clusters_find_the_islands():
    rng = np.random.default_rng(0)
    z = torch.from_numpy(np.repeat([[0.0], [10.0]], 50, axis=0) + rng.normal(0, 0.1, (100, 1)))
    found = cluster(z, 2, rng)

    assert len(found[:50].unique()) == len(found[50:].unique()) == 1
    assert found[0] != found[-1]


def test_no_more_clusters_than_distinct_rows():
    z = torch.tensor([[0.0]] * 10 + [[1.0]] * 10)

    assert len(cluster(z, 10, np.random.default_rng(0)).unique()) == 2
