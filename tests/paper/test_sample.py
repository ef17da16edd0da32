"""A sample is checked once, where it is made."""

import numpy as np
import pytest

from giw.paper.sample import Sample


def small(**changes):
    parts = {"x": np.arange(6.0).reshape(3, 2), "y": [0, 1, 0], "group": [4, 5, 4]}
    return Sample(**{**parts, "classes": ("a", "b"), **changes})


def test_taking_rows_keeps_points_labels_and_groups_together():
    taken = small().take([2, 0])

    np.testing.assert_array_equal(taken.x, [[4.0, 5.0], [0.0, 1.0]])
    np.testing.assert_array_equal(taken.y, [0, 0])
    np.testing.assert_array_equal(taken.group, [4, 4])
    assert taken.classes == ("a", "b")
    assert len(small().take([])) == 0
    assert len(small().take([False, True, False])) == 1


def test_labels_and_groups_are_int64_whatever_came():
    sample = small(y=np.array([0, 1, 0], dtype=np.uint8), group=[True, False, True])

    assert sample.y.dtype == sample.group.dtype == np.int64


def test_classes_left_out_are_counted():
    assert small(y=[0, 2, 0], classes=()).classes == ("0", "1", "2")


def test_pixels_stay_uint8():
    assert small(x=np.zeros((3, 1, 4, 4), np.uint8)).x.dtype == np.uint8


def test_without_groups_nothing_tells_the_subclass():
    assert set(small().without_groups().group) == {0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [0, 1]}, r"need one y per point: shape \(3,\)"),
        ({"group": [[4], [5], [4]]}, "need one group per point"),
        ({"y": [0.0, 1.0, 0.0]}, "y must hold integers"),
        ({"y": [0, 2, 0]}, "y must index the 2 classes"),
        ({"y": [0, -1, 0]}, "y must not be negative"),
        ({"group": [-1, 0, 1]}, "group must not be negative"),
        ({"x": np.arange(3.0)}, r"x\[:, None\]"),
        ({"x": np.array([["a"], ["b"], ["c"]])}, "must hold numbers"),
    ],
)
def test_parts_that_do_not_fit_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        small(**changes)
