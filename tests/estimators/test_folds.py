import numpy as np

from giw.estimators.folds import folds_of, stratified_folds


def test_folds_share_every_class_evenly():
    label = np.array(["a"] * 10 + ["b"] * 5)
    fold = stratified_folds(label, 5, np.random.default_rng(0))
    assert np.bincount(fold).tolist() == [3] * 5
    for value, count in (("a", 2), ("b", 1)):
        assert np.bincount(fold[label == value]).tolist() == [count] * 5


def test_rows_of_a_group_stay_together_and_folds_are_nearly_even():
    groups = np.repeat(np.arange(8), [5, 1, 1, 1, 3, 2, 2, 1])
    fold = folds_of(np.zeros(16), 3, np.random.default_rng(0), groups)
    assert all(len(set(fold[groups == g])) == 1 for g in range(8))
    assert sorted(np.bincount(fold).tolist()) == [5, 5, 6]
