"""Importance weighting without a split."""

import pytest
import torch
from tests.nets.methods.steps import a_batch, a_loss, losses
from tests.nets.training.toy import toy_net

from giw.nets.methods import DIW, RDIW, GIWUnsplit, ValOnly
from giw.nets.training import Batch, FunctionalNet
from giw.objective import DynamicRelativeWeights, DynamicWeights


def value(method, batch):
    return a_loss(method, batch, toy_net())[0]


@pytest.mark.parametrize(
    ("method", "weigh", "share"),
    [
        (DIW(), DynamicWeights(), 1.0),
        (RDIW(), DynamicRelativeWeights(), 1.0),
        (GIWUnsplit(), DynamicWeights(), 0.5),
        (GIWUnsplit(alpha=0.25), DynamicWeights(), 0.25),
    ],
    ids=repr,
)
def test_weighted_training_losses_and_a_share_of_validation_losses(method, weigh, share):
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    weight = weigh(train_loss, val_loss)
    expected = share * (weight * train_loss).mean() + (1 - share) * val_loss.mean()
    torch.testing.assert_close(value(method, batch), expected)


def test_without_a_split_half_is_diw_and_half_is_validation_alone():
    batch = a_batch()
    halves = (value(DIW(), batch) + value(ValOnly(), batch)) / 2
    torch.testing.assert_close(value(GIWUnsplit(), batch), halves)
    other = batch._replace(inside=1 - batch.inside, alpha=torch.tensor(0.9))
    assert torch.equal(value(GIWUnsplit(), batch), value(GIWUnsplit(), other))


def test_diw_does_not_train_on_validation_points():
    batch = a_batch()
    x_val = batch.x_val.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(DIW(), batch._replace(x_val=x_val)), x_val)
    assert (gradient == 0).all()


def test_hidden_weights_speak_of_labels_too():
    """Two points with the same features and other labels must not share a weight."""
    net = FunctionalNet(toy_net())
    x, y = torch.zeros(20, 2), torch.arange(20) % 2
    one, zero = torch.ones(()), torch.zeros(())
    batch = Batch(x, y, x[:4], torch.zeros(4, dtype=torch.long), torch.ones(4), one, zero)
    class_zero = losses(net, net.params(), batch)[0][y == 0].mean()
    found = value(DIW(representation="hidden"), batch)
    torch.testing.assert_close(found, class_zero, rtol=0.1, atol=0)


def test_relative_weights_are_more_even_than_matched_ones():
    shares = [
        a_loss(method, a_batch(), toy_net())[1]["effective_share"] for method in (RDIW(), DIW())
    ]
    assert shares[0] > shares[1]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="alpha"):
        GIWUnsplit(alpha=share)


def test_an_unknown_representation_is_refused():
    with pytest.raises(ValueError, match="loss, hidden"):
        DIW(representation="pixels")
