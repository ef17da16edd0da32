import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import giw
from giw.weights.ratio import EffectiveSampleSizeWarning, warn_if_few


@pytest.mark.parametrize(
    ("weight", "points"),
    [
        ([3.0] * 7, 7),
        ([0.0, 0.0, 5.0], 1),
        ([1.0, 2.0], 9 / 5),  # (1 + 2)² / (1 + 4)
    ],
)
def test_the_effective_sample_size_by_hand(torch, weight, points):
    assert_allclose(giw.effective_sample_size(weight), points)
    assert_allclose(giw.effective_sample_size(torch.tensor(weight)), points)


@settings(deadline=None, max_examples=30)
@given(scale=st.floats(1e-200, 1e200), seed=st.integers(0, 100))
def test_the_scale_of_the_weights_does_not_matter(scale, seed):
    w = np.random.default_rng(seed).exponential(size=9)

    assert_allclose(giw.effective_sample_size(scale * w), giw.effective_sample_size(w))


@pytest.mark.parametrize("bad", [[-1.0, 2.0], [0.0, 0.0], [], [[1.0]], [np.nan, 1.0]])
def test_bad_weights_are_refused(bad):
    with pytest.raises(ValueError, match="weight"):
        giw.effective_sample_size(bad)


def test_a_collapse_is_explained():
    weight = np.zeros(100)
    weight[:2] = 50.0
    with pytest.warns(EffectiveSampleSizeWarning, match=r"2\.0 of 100 training points"):
        warn_if_few(weight, "kmm")


def test_six_percent_is_enough_to_stay_silent(recwarn):
    weight = np.zeros(100)
    weight[:6] = 100 / 6

    warn_if_few(weight, "kmm")

    assert not recwarn
