"""Mahalanobis distances."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.support.scorers.mahalanobis import Mahalanobis


def test_it_is_the_textbook_distance():
    rng = np.random.default_rng(0)
    z, val = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    inverse = np.linalg.inv(np.cov(z.T, bias=True))
    gap = val - z.mean(axis=0)
    expected = np.sqrt(np.einsum("md,de,me->m", gap, inverse, gap))

    score = Mahalanobis(shrinkage=1e-12).fit(torch.from_numpy(z)).score(torch.from_numpy(val))

    np.testing.assert_allclose(score.numpy(), expected, rtol=1e-6)


def test_per_class_measures_from_the_nearest_mean():
    z = torch.tensor([[-1.0], [1.0], [9.0], [11.0]], dtype=torch.float64)
    label = torch.tensor([0, 0, 1, 1])  # means 0 and 10, shared variance 1

    score = Mahalanobis(per_class=True).fit(z, label).score(torch.tensor([[5.0], [10.0]]))

    np.testing.assert_allclose(score.numpy(), [5.0, 0.0], atol=1e-6)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31))
def test_rotations_and_one_scale_for_all_change_nothing(seed):
    rng = np.random.default_rng(seed)
    z, val = rng.normal(size=(40, 4)), rng.normal(size=(5, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0] * 7.0
    scorer = Mahalanobis()

    plain = scorer.fit(torch.from_numpy(z)).score(torch.from_numpy(val))
    turned = scorer.fit(torch.from_numpy(z @ turn)).score(torch.from_numpy(val @ turn))

    np.testing.assert_allclose(plain.numpy(), turned.numpy(), rtol=1e-8)


def test_classes_of_one_point_each_get_plain_distance():
    z = torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    scorer = Mahalanobis(per_class=True).fit(z, torch.tensor([0, 1]))

    assert scorer.score(torch.tensor([[3.0, 4.0]])).item() == pytest.approx(4.0)


def test_bad_use_is_refused():
    with pytest.raises(ValueError, match="needs y_train"):
        Mahalanobis(per_class=True).fit(torch.zeros(3, 2))
    with pytest.raises(ValueError, match="shrinkage"):
        Mahalanobis(shrinkage=0)
    with pytest.raises(ValueError, match="call fit"):
        Mahalanobis().score(torch.zeros(1, 2))
