import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.estimators.static_weights import (
    effective_trust,
    likelihood_trust,
    mixture_share,
    sample_weights,
    shrunk,
    validation_share,
)
from giw.weights import effective_sample_size


def test_a_ratio_that_left_out_points_bear_out_is_believed():
    """All left-out points have weight 2: the likelihood grows with trust."""
    assert likelihood_trust(np.full(10, 2.0), np.ones(10)) == 1.0


def test_a_ratio_that_left_out_points_contradict_is_not_believed():
    assert likelihood_trust(np.full(10, 0.5), np.ones(10)) == 0.0


def test_trust_solves_the_likelihood_equation():
    """Half the points at w = 3, half at w = 1/2: 2/(1 + 2r) = 0.5/(1 - r/2) gives r = 3/4."""
    weight = np.array([3.0, 0.5] * 10)
    assert likelihood_trust(weight, np.ones(20)) == pytest.approx(0.75, abs=0.0126)


def test_points_outside_have_no_say_in_trust():
    weight = np.array([2.0, 2.0, 0.01, 0.01])
    assert likelihood_trust(weight, np.array([1.0, 1.0, 0.0, 0.0])) == 1.0


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(0, 50), min_size=5, max_size=30).filter(lambda w: sum(w) > 0.1),
    st.floats(0.1, 0.9),
)
def test_shrinking_reaches_the_effective_sample_size_that_was_asked_for(values, share):
    weight = np.array(values) / np.mean(values)
    trust = effective_trust(weight, share * len(weight))
    left = effective_sample_size(shrunk(weight, trust))
    assert left >= share * len(weight) * (1 - 1e-9)
    if trust < 1:
        assert left == pytest.approx(share * len(weight))


def test_a_better_second_model_takes_the_whole_mixture():
    bad, good = np.full(8, 2.0), np.full(8, 0.1)
    assert mixture_share(bad, good) == 1.0
    assert mixture_share(good, bad) == 0.0


def test_two_models_that_each_know_half_share_the_mixture():
    first, second = np.array([0.1, 3.0] * 5), np.array([3.0, 0.1] * 5)
    assert mixture_share(first, second) == pytest.approx(0.5)


def test_without_distrust_every_effective_point_counts_the_same():
    share = validation_share(np.ones(30), np.ones(10), 0.0)
    assert share == pytest.approx(10 / 40)
    train, val = sample_weights(np.ones(30), np.ones(10), share)
    np.testing.assert_allclose(np.concatenate([train, val]), 1.0)


def test_the_share_grows_with_distrust_of_training_data():
    assert validation_share(np.ones(30), np.ones(10), 1.0) == pytest.approx(0.8)
    assert validation_share(np.ones(30), np.zeros(10), 1.0) == 0.0


def test_sample_weights_are_the_generalized_risk():
    """alpha = 1/2, n = 2, m = 4, no share of inside points: the published objective."""
    weight, inside = np.array([0.5, 1.5]), np.array([1.0, 1.0, 0.0, 0.0])
    train, val = sample_weights(weight, inside, 0.0)
    scale = train[0] / (0.5 * 0.5 / 2)
    np.testing.assert_allclose(train, scale * 0.5 * weight / 2)
    np.testing.assert_allclose(val, scale * np.array([0, 0, 1, 1]) / 4)
    assert train.sum() + val.sum() == pytest.approx(4)  # mean one over the four that count


def test_with_everything_inside_it_is_plain_importance_weighting():
    """Cases (i) and (ii)."""
    weight = np.array([0.2, 0.8, 2.0])
    train, val = sample_weights(weight, np.ones(5), 0.0)
    np.testing.assert_allclose(train, weight)
    np.testing.assert_allclose(val, 0)
