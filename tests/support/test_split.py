"""What a split says, and what it was."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giw
from giw.diagnosis import outside_list
from giw.support import soft_membership


def test_a_given_split_is_what_was_given():
    split = giw.SupportSplit.given([True, False, True, True])
    assert split.alpha == 0.75
    assert split.inside.tolist() == [True, False, True, True]
    assert split.membership.tolist() == [1.0, 0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="one True or False per validation point"):
        giw.SupportSplit.given([0.3, 0.7])


def test_a_given_tensor_stays_a_tensor(torch):
    split = giw.SupportSplit.given(torch.tensor([True, False]))
    assert isinstance(split.membership, torch.Tensor)


def test_repr_is_one_line_and_html_names_the_representations():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(100, 2))
    split = giw.SupportSplitter(random_state=0).fit({"<a>": z, "b": z}).split({"<a>": z, "b": z})
    assert "of 100 validation points inside" in repr(split)
    assert "\n" not in repr(split)
    assert len(repr(split)) < 150
    assert "&lt;a&gt;, unit norm" in split._repr_html_()


def test_soft_membership_is_the_share_of_inside_points_at_each_p_value():
    """Half evenly spread p-values, half near zero: inside above, outside below."""
    spread = np.arange(1, 101) / 100
    p_value = np.concatenate([spread, np.full(100, 1e-4)])
    posterior = soft_membership(p_value)
    assert posterior[50:100].min() > 0.95
    assert posterior[100:].max() < 0.05
    assert abs(posterior.mean() - 0.5) < 0.03


def test_soft_membership_of_inside_points_alone_is_nearly_one():
    posterior = soft_membership(np.arange(1, 51) / 50)
    assert_allclose(posterior, 1.0, atol=0.05)


def test_a_softened_split_has_the_mean_posterior_as_alpha():
    rng = np.random.default_rng(0)
    new = np.concatenate([rng.normal(size=(50, 2)), rng.normal(9, 1, (50, 2))])
    split = giw.SupportSplitter(random_state=0).fit(rng.normal(size=(400, 2))).split(new).soften()
    assert split.alpha == split.posterior.mean()
    assert split.membership is split.posterior
    assert split.posterior[50:].max() < 0.05


def test_the_list_of_outside_points_keeps_its_rate_by_hand():
    """Sorted p-values 0.01, 0.02, 0.5 against lines 0.033, 0.067, 0.1: two are listed."""
    split = giw.SupportSplit(np.ones(3, bool), np.array([0.5, 0.02, 0.01]))
    assert outside_list(split, fdr=0.1).tolist() == [2, 1]
    assert outside_list(split, fdr=0.02).tolist() == []


def test_the_old_share_says_where_it_went():
    rng = np.random.default_rng(0)
    split = giw.SupportSplitter(random_state=0).fit(rng.normal(size=(90, 2))).split([[0.0, 0.0]])
    with pytest.warns(DeprecationWarning, match=r"giw\.support_share\(split\) now"):
        assert split.support_share == giw.support_share(split).share
    with pytest.warns(DeprecationWarning, match="support_share"):
        assert split.support_share_interval == giw.support_share(split).interval
