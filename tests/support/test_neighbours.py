"""Exact neighbours, by a second road."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import KDTree

from giw.support import nearest
from giw.support.scores import _nearest_on_device


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_are_those_of_a_tree(dtype):
    rng = np.random.default_rng(0)
    reference, z = rng.normal(size=(500, 6)).astype(dtype), rng.normal(size=(40, 6)).astype(dtype)
    distance, index = nearest(z, reference, 4)
    expected, rows = KDTree(reference).query(z, 4)
    assert_array_equal(index, rows)
    assert_allclose(distance, expected, rtol=1e-5)


def test_the_torch_road_finds_the_same(torch):
    rng = np.random.default_rng(1)
    reference, z = rng.normal(size=(300, 5)), rng.normal(size=(70, 5))
    distance, index = nearest(z, reference, 3)
    other = _nearest_on_device(torch.as_tensor(z), torch.as_tensor(reference), 3)
    assert_array_equal(other[1], index)
    assert_allclose(other[0], distance)


def test_no_more_neighbours_than_rows():
    assert nearest(np.zeros((2, 1)), np.ones((3, 1)), 9)[0].shape == (2, 3)
