"""MW-Net: a weighting net that learns from the validation loss one step ahead."""

import pytest
import torch
from tests.nets.methods.steps import a_batch, descend, losses, start
from tests.nets.training.toy import toy_net

from giw.nets.methods import MWNet
from giw.nets.methods.meta_gradient import loss_weights
from giw.nets.training import OWN, FunctionalNet


def own(params):
    return {name: p for name, p in params.items() if name.startswith(OWN)}


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("virtual_step", [0.1, 2.0])
def test_the_gradient_is_that_of_a_virtual_step_differentiated_twice(virtual_step, normalise):
    method = MWNet(virtual_step=virtual_step, normalise=normalise)
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = start(method, toy_net())
    loss, _ = method.loss(net, params, batch)
    mine = dict(zip(params, torch.autograd.grad(loss, list(params.values())), strict=True))

    train_loss, _ = losses(net, params, batch)
    weight = loss_weights(params, train_loss.detach())
    weighted = (weight * train_loss).mean() / (weight.mean() if normalise else 1.0)
    names = [name for name in params if name not in own(params)]
    leaves = [params[name] for name in names]
    step = torch.autograd.grad(weighted, leaves, create_graph=True)
    ahead = {k: p - virtual_step * g for k, p, g in zip(names, leaves, step, strict=True)}
    meta = torch.autograd.grad(
        losses(net, ahead, batch)[1].mean(), own(params).values(), retain_graph=True
    )
    for name, expected in zip(own(params), meta, strict=True):
        assert expected.abs().max() > 0
        torch.testing.assert_close(mine[name], expected, rtol=1e-4, atol=1e-8)
    for name, expected in zip(names, step, strict=True):  # and the net takes that very step
        torch.testing.assert_close(mine[name], expected)


def test_the_loss_is_the_weighted_training_loss_alone():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = start(MWNet(), toy_net())
    train_loss, _ = losses(net, params, batch)
    weight = loss_weights(params, train_loss)
    first = MWNet(normalise=False).loss(net, params, batch)[0]
    torch.testing.assert_close(first, (weight * train_loss).mean())
    torch.testing.assert_close(MWNet().loss(net, params, batch)[0], first / weight.mean())


def test_high_losses_of_flipped_labels_learn_a_low_weight():
    batch = a_batch(n=60)
    flipped = torch.arange(60) % 10 < 4
    batch = batch._replace(
        y=torch.where(flipped, 1 - batch.y, batch.y), x_val=batch.x_val[:2], y_val=batch.y_val[:2]
    )
    # normalised weights make the steps of this one batch larger than a weighting net can follow
    method, module = MWNet(normalise=False), toy_net()
    before = start(method, module)
    after = descend(method, module, batch, 300)
    weight = loss_weights(after, losses(FunctionalNet(module), after, batch)[0])
    assert weight[flipped].max() < 0.1 * weight[~flipped].min()
    at_start = loss_weights(before, losses(FunctionalNet(module), before, batch)[0])
    assert at_start.max() < 2 * at_start.min()  # it was learnt, not drawn


@pytest.mark.parametrize("setting", [{"virtual_step": 0.0}, {"width": -1}, {"learning_rate": 0.0}])
def test_settings_without_a_meaning_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        MWNet(**setting)


def test_the_weighting_net_is_drawn_from_the_random_state_alone():
    def draw(seed):
        return own(start(MWNet(), toy_net(), seed))

    assert {name: p.shape for name, p in draw(0).items()} == {
        "method.weight1": (100, 1),
        "method.bias1": (100,),
        "method.weight2": (1, 100),
        "method.bias2": (1,),
    }
    for name, p in draw(0).items():
        assert torch.equal(p, draw(0)[name])
        assert not torch.equal(p, draw(1)[name])
