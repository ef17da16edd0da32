"""The paper's GIW for class-prior shift."""

import pytest
import torch
from tests.nets.methods.steps import a_batch, losses
from tests.nets.training.toy import toy_net

from giw.nets.methods import DIW, GIWUnsplit, ValOnly
from giw.nets.training import FunctionalNet
from giw.objective import DynamicWeights


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_all_validation_data_are_in_both_terms(share):
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    train_loss, val_loss = losses(net, params, batch)
    weight = DynamicWeights()(train_loss, val_loss)
    expected = share * (weight * train_loss).mean() + (1 - share) * val_loss.mean()
    torch.testing.assert_close(GIWUnsplit(alpha=share).loss(net, params, batch)[0], expected)


def test_half_and_half_unless_told_otherwise():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    halves = (DIW().loss(net, params, batch)[0] + ValOnly().loss(net, params, batch)[0]) / 2
    torch.testing.assert_close(GIWUnsplit().loss(net, params, batch)[0], halves)


def test_a_split_would_make_no_difference():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    other = batch._replace(inside=1 - batch.inside, alpha=torch.tensor(0.9))
    assert torch.equal(
        GIWUnsplit().loss(net, params, batch)[0], GIWUnsplit().loss(net, params, other)[0]
    )


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="alpha"):
        GIWUnsplit(alpha=share)


def test_an_unknown_representation_is_refused():
    with pytest.raises(ValueError, match="loss, hidden"):
        GIWUnsplit(representation="pixels")
