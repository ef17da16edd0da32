"""Minority classes in training."""

import numpy as np

from giw.paper.shifts import Sample, class_prior


def balanced(n_each=199):
    y = np.repeat(np.arange(4), n_each)
    return Sample(np.arange(len(y))[:, None], y, y, tuple("0123"))


def test_minority_classes_shrink_to_the_ratio_and_majority_classes_stay():
    rare = class_prior(balanced(), ratio=10, minority=[1, 3], random_state=0)

    np.testing.assert_array_equal(np.bincount(rare.y), [199, 20, 199, 20])
    np.testing.assert_array_equal(rare.y, balanced().y[rare.x[:, 0]])
    assert len(set(rare.x[:, 0])) == len(rare)


def test_another_seed_keeps_other_rows():
    kept = [
        set(class_prior(balanced(), ratio=10, minority=[0], random_state=s).x[:, 0])
        for s in (0, 0, 1)
    ]

    assert kept[0] == kept[1] != kept[2]


def test_at_least_one_point_of_a_minority_class_is_left():
    rare = class_prior(balanced(), ratio=10_000, minority=[2], random_state=0)

    assert np.bincount(rare.y)[2] == 1
