"""CCSA: classes aligned across the two sets."""

import pytest
import torch
from tests.nets.methods.steps import a_batch, descend, losses
from tests.nets.training.toy import toy_net

from giw.nets.methods import CCSA, TrainOnly
from giw.nets.methods.ccsa import contrast
from giw.nets.training import FunctionalNet


def test_pull_and_push_by_hand():
    """Distances √2, 0 (like) and 1, √1.25 … on four points in the plane."""
    train = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    val = torch.tensor([[0.0, 1.0], [0.5, 0.0]])
    like = torch.tensor([[True, False], [False, False]])
    pull, push = contrast(train, val, like, margin=1.0)
    # like: (0,0)-(0,1), distance 1; unlike: 1/2, √2 (beyond the margin), 1/2
    torch.testing.assert_close(pull, torch.tensor(0.5))
    torch.testing.assert_close(push, torch.tensor((0.125 + 0 + 0.125) / 3))


def test_points_that_coincide_give_no_nan():
    z = torch.ones(3, 2, requires_grad=True)
    for like in (torch.ones(3, 3) > 0, torch.ones(3, 3) < 0):
        pull, push = contrast(z, z.detach(), like, margin=1.0)
        (gradient,) = torch.autograd.grad(pull + push, z)
        assert gradient.isfinite().all()
        assert (pull + push).isfinite()


def test_the_parts_are_mixed_by_gamma():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    train_loss, val_loss = losses(net, params, batch)
    z, z_val = net.with_hidden(params, batch.x)[1], net.with_hidden(params, batch.x_val)[1]
    pull, push = contrast(z, z_val, batch.y[:, None] == batch.y_val, margin=1.3)
    assert min(pull, push) > 0
    aligned = CCSA(gamma=0.3, margin=1.3, classify_val=False).loss(net, params, batch)[0]
    torch.testing.assert_close(aligned, 0.7 * train_loss.mean() + 0.3 * (pull + push))
    with_val = CCSA(gamma=0.0).loss(net, params, batch)[0]
    torch.testing.assert_close(with_val, (train_loss.mean() + val_loss.mean()) / 2)


def cross_distances(method):
    """Mean distance of like and of unlike pairs, after training."""
    module, batch = toy_net(), a_batch(n=40)
    params = descend(method, module, batch, 200)
    net = FunctionalNet(module)
    distance = torch.cdist(
        net.with_hidden(params, batch.x)[1], net.with_hidden(params, batch.x_val)[1]
    )
    like = batch.y[:, None] == batch.y_val
    return distance[like].mean(), distance[~like].mean()


def test_like_points_of_the_two_sets_come_together_and_unlike_points_part():
    like, unlike = cross_distances(CCSA(classify_val=False))
    like_without, unlike_without = cross_distances(TrainOnly())
    assert like < 0.2 * like_without
    assert unlike > unlike_without
    assert unlike > 0.9


@pytest.mark.parametrize("setting", [{"gamma": 1.5}, {"gamma": float("nan")}, {"margin": 0.0}])
def test_settings_without_a_meaning_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        CCSA(**setting)
