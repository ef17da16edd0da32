"""The published rule recognises copies and hardly anything else."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import OneClassSVM

import giw


def test_copies_are_inside_and_their_neighbours_are_not():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 6))
    split = giw.SupportSplitter("osvm").fit(z).split(np.concatenate([z[:20], z[:20] + 0.3]))
    assert split.inside[:20].mean() > 0.9
    assert not split.inside[20:].any()


def test_the_thresholds_are_those_of_the_text_and_of_the_code():
    rng = np.random.default_rng(0)
    z, new = rng.normal(size=(100, 3)), rng.normal(size=(50, 3))
    z, new = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (z, new))
    score = OneClassSVM(gamma=10_000).fit(z).score_samples(new)
    for threshold, value in (("text", 0.4), ("code", 1e-4), (0.01, 0.01)):
        split = giw.SupportSplitter("osvm", threshold=threshold).fit(z).split(new)
        assert_array_equal(split.inside, score > value)
        assert_allclose(split.score, score)
