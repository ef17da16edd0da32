import numpy as np
import torch

from giw.estimators.folds import cuts_and_rests, folds_of, stratified_folds


def test_folds_share_every_class_evenly():
    label = np.array(["a"] * 10 + ["b"] * 5)
    fold = stratified_folds(label, 5, np.random.default_rng(0))
    assert np.bincount(fold).tolist() == [3] * 5
    for value, count in (("a", 2), ("b", 1)):
        assert np.bincount(fold[label == value]).tolist() == [count] * 5


def test_every_point_is_left_out_once_and_rests_are_equally_long():
    fold = stratified_folds(np.zeros(11), 3, np.random.default_rng(0))
    cuts = cuts_and_rests(fold, torch.device("cpu"))
    assert torch.stack([out for out, _ in cuts]).sum(0).tolist() == [1] * 11
    for out, rest in cuts:
        assert len(rest) == 7  # eleven less the largest fold
        assert not out[rest].any()


def test_rows_of_a_group_stay_together_and_folds_are_nearly_even():
    groups = np.repeat(np.arange(8), [5, 1, 1, 1, 3, 2, 2, 1])
    fold = folds_of(np.zeros(16), 3, np.random.default_rng(0), groups)
    assert all(len(set(fold[groups == g])) == 1 for g in range(8))
    assert sorted(np.bincount(fold).tolist()) == [5, 5, 6]
