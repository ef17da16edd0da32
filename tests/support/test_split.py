"""What a split says about itself, and what its membership does to the risk."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import giw


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    z, y = rng.uniform(size=(500, 2)), rng.integers(0, 2, 500)
    val = np.concatenate([rng.uniform(size=(60, 2)), 1.1 + rng.uniform(size=(40, 2))])
    return giw.SupportSplitter(membership="soft", random_state=0).fit(z, y).split(val, y[:100])


def test_it_is_frozen(split):
    with pytest.raises(FrozenInstanceError):
        split.alpha = 1.0


def test_the_summary_tells_the_two_shares_apart(split):
    text = split.summary()

    assert f"alpha = {split.alpha:.3f}" in text
    assert f"support share {split.support_share:.3f}" in text
    assert f"leak {split.leak:.3f}" in text
    assert len(split) == 100


def test_the_leak_is_membership_times_probability_of_being_outside(split):
    expected = np.mean(split.posterior * (1 - split.posterior))

    assert split.leak == pytest.approx(expected)


def test_lists_and_verdicts_are_at_hand(split):
    listed = split.outside_list(fdr=0.1)

    assert np.mean(listed >= 60) > 0.8
    assert split.verdict().val_outside[0] > 0.1
    assert split.train_cell_share.sum() == pytest.approx(1.0)


POINTS = 6
positive = st.lists(st.floats(0.05, 1.0), min_size=POINTS, max_size=POINTS).map(np.array)


@settings(deadline=None, max_examples=50)
@given(train=positive, test=positive, member=positive, loss=positive, known=st.integers(1, 5))
def test_soft_membership_misses_exactly_what_it_leaks(train, test, member, loss, known):
    """Finite distributions, exact sums: J_G - R = -E_te[s loss; outside].

    So the risk is consistent if the membership vanishes outside the training support, and biased
    by the leak times its mean loss otherwise. Both terms use the same membership.
    """
    support = np.arange(POINTS) < known
    p_train, p_test = np.where(support, train, 0) / train[support].sum(), test / test.sum()

    def generalized(s):
        alpha = p_test @ s
        ratio = np.divide(p_test * s / alpha, p_train, out=np.zeros(POINTS), where=support)
        return alpha * (p_train @ (ratio * loss)) + p_test @ ((1 - s) * loss)

    risk = p_test @ loss
    vanishing = np.where(support, member, 0.0)

    assert generalized(vanishing) == pytest.approx(risk)
    leaked = (p_test * member * loss)[~support].sum()
    assert generalized(member) - risk == pytest.approx(-leaked)
