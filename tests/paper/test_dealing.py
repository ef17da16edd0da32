"""How validation points are dealt."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from giw.paper.shifts import deal, equal_counts


@given(n=st.integers(1, 100), k=st.integers(1, 12))
def test_counts_are_equal_up_to_one_and_add_up(n, k):
    counts = equal_counts(np.arange(k), n)

    assert sum(counts.values()) == n
    assert max(counts.values()) - min(counts.values()) <= 1
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


def test_points_come_from_the_front_of_the_order():
    order, group = np.array([4, 0, 3, 1, 2]), np.array([0, 0, 1, 1, 1])

    np.testing.assert_array_equal(deal(order, group, {0: 1, 1: 2}), [0, 4, 3])
