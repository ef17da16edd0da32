"""The published machine through near pairs alone: libsvm finds the same scores."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import OneClassSVM

import giw
from giw.paper.narrow_svm import NarrowOneClassSVM, PublishedSplitter


def test_the_split_is_that_of_the_public_splitter():
    rng = np.random.default_rng(0)
    z, new = rng.normal(size=(200, 3)), rng.normal(size=(50, 3))
    new = np.concatenate([new, z[:50]])
    fast, slow = (
        splitter(scorer="osvm").fit(z).split(new)
        for splitter in (PublishedSplitter, giw.SupportSplitter)
    )
    assert_array_equal(fast.inside, slow.inside)
    assert_allclose(fast.score, slow.score, atol=1e-3)


def test_crowded_points_have_the_scores_of_libsvm():
    """Evenly on an arc, thirty neighbours each: coefficients trade places until none gains."""
    angle = np.linspace(0, 1, 400)
    z = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ours = NarrowOneClassSVM().fit(z).score_samples(z)
    theirs = OneClassSVM(gamma=10_000, tol=1e-6).fit(z).score_samples(z)
    assert_allclose(ours, theirs, atol=2e-3)
