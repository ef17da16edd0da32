"""The published score: scikit-learn's machine on unit-norm features, sign turned."""

import numpy as np
import pytest
import torch
from sklearn.svm import OneClassSVM

from giw.support.scorers import osvm
from giw.support.scorers.osvm import OSVM, PUBLISHED_THRESHOLDS


def test_it_is_minus_score_samples_on_unit_norm_features():
    rng = np.random.default_rng(0)
    train, val = rng.normal(size=(40, 6)), rng.normal(size=(7, 6))
    scale = np.linalg.norm(train, axis=1, keepdims=True)
    machine = OneClassSVM(gamma=10_000).fit(train / scale)
    expected = machine.score_samples(val / np.linalg.norm(val, axis=1, keepdims=True))

    score = OSVM().fit(torch.from_numpy(train)).score(torch.from_numpy(val))

    np.testing.assert_allclose(score.numpy(), -expected, atol=1e-12)


def test_the_narrow_kernel_recognises_copies_and_nothing_else():
    rng = np.random.default_rng(1)
    train = torch.from_numpy(rng.normal(size=(40, 6)))
    scorer = OSVM(nu=0.999).fit(train)  # nearly every row is a support vector

    assert bool((scorer.score(train) < -PUBLISHED_THRESHOLDS["text"]).all())
    fresh = torch.from_numpy(rng.normal(size=(40, 6)))
    assert bool((scorer.score(fresh) > -PUBLISHED_THRESHOLDS["code"]).all())


def test_the_cache_holds_the_whole_kernel():
    rows = torch.eye(600, dtype=torch.float64)
    assert OSVM().fit(rows).machine.cache_size * 2**20 >= 4 * 600**2
    assert OSVM().fit(rows[:2]).machine.cache_size == 1


def test_the_cache_has_a_bound(monkeypatch):
    monkeypatch.setattr(osvm, "MOST_CACHE", 1)
    assert OSVM().fit(torch.eye(600, dtype=torch.float64)).machine.cache_size == 1


def test_unfitted_is_said():
    with pytest.raises(ValueError, match="call fit"):
        OSVM().score(torch.zeros(1, 2))


def test_fitting_leaves_the_global_seed_alone():
    before = np.random.get_state()[2]  # noqa: NPY002
    OSVM().fit(torch.eye(4, dtype=torch.float64))
    assert np.random.get_state()[2] == before  # noqa: NPY002
