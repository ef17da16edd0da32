"""The embedded digits."""

import numpy as np

from giw.paper.readers import digits


def test_digits_are_odd_against_even_with_the_digit_as_group():
    sample = digits()

    assert sample.x.shape == (1797, 1, 8, 8)
    assert sample.x.dtype == np.float32
    assert sample.x.min() == 0.0
    assert sample.x.max() == 1.0
    assert sample.classes == ("even", "odd")
    np.testing.assert_array_equal(sample.y, sample.group % 2)
    np.testing.assert_array_equal(np.unique(sample.group), np.arange(10))
