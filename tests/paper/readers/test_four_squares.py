"""The geometry of the paper's two examples."""

import numpy as np
import pytest

from giw.paper.readers import four_squares


@pytest.mark.parametrize("example", [1, 2])
def test_points_fill_four_unit_squares_with_a_margin_of_a_tenth(example):
    sample = four_squares(example=example, n=4000, random_state=0)

    for square in range(4):
        points = sample.x[sample.group == square]
        assert len(points) == 1000
        assert np.all(np.ptp(points, axis=0) <= 1.0)
        assert np.all(np.ptp(points, axis=0) > 0.98)
    assert np.abs(sample.x).min() >= 0.05 - 1e-7  # half the margin
    assert np.abs(sample.x).max() <= 1.05 + 1e-6


def test_the_first_example_is_red_on_the_top_and_the_second_a_checkerboard():
    first = four_squares(example=1, n=400, random_state=0)
    second = four_squares(example=2, n=400, random_state=0)
    right, top = first.x[:, 0] > 0, first.x[:, 1] > 0

    np.testing.assert_array_equal(first.y, top)
    np.testing.assert_array_equal(second.y, top ^ right)
    np.testing.assert_array_equal(first.group, 2 * right + ~top)


def test_only_the_squares_asked_for_are_drawn_in_equal_number():
    sample = four_squares(example=2, n=7, squares=(0, 1), random_state=0)

    np.testing.assert_array_equal(np.bincount(sample.group), [4, 3])


@pytest.mark.parametrize("wrong", [{"example": 3}, {"n": 0}, {"squares": ()}, {"squares": (4,)}])
def test_what_the_paper_does_not_have_is_refused(wrong):
    with pytest.raises(ValueError, match=r"example must be|need n ≥ 1"):
        four_squares(**{"example": 1, "n": 8, **wrong})
