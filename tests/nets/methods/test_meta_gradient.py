"""Directional derivatives of all losses at once, and who asks for them."""

import pytest
import torch
from tests.nets.methods.steps import a_batch, a_loss, descend, losses, start
from tests.nets.training.toy import toy_net
from torch import nn
from torch.func import vmap

from giw.nets.methods import MWNet, Reweight, TrainOnly
from giw.nets.methods.meta_gradient import (
    agreement_weights,
    loss_weights,
    losses_of,
    mean_gradient,
    moved_params,
    slope_along,
)
from giw.nets.training import FunctionalNet, State


def normalised_net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).train()


@pytest.mark.parametrize("make", [toy_net, normalised_net])
def test_slopes_are_inner_products_with_each_gradient(make):
    net, batch = FunctionalNet(make()), a_batch()
    params = net.params()
    losses, moved = losses_of(net, params, batch.x, batch.y), moved_params(params)
    direction = mean_gradient(losses_of(net, params, batch.x_val, batch.y_val), moved)
    leaves = {name: p.clone().requires_grad_() for name, p in moved.items()}
    for one, slope in zip(losses(leaves), slope_along(losses, moved, direction), strict=True):
        gradient = torch.autograd.grad(one, list(leaves.values()), retain_graph=True)
        expected = sum((g * d).sum() for g, d in zip(gradient, direction.values(), strict=True))
        torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-6)


def test_trials_side_by_side_have_the_slopes_of_each_alone():
    net = FunctionalNet(toy_net())

    def slopes(params, x, y):
        losses = losses_of(net, params, x, y)
        return slope_along(losses, params, mean_gradient(losses, params))

    starts = [moved_params(FunctionalNet(toy_net(seed)).params()) for seed in range(3)]
    batches = [a_batch(seed) for seed in range(3)]
    together = vmap(slopes)(
        {name: torch.stack([p[name] for p in starts]) for name in starts[0]},
        torch.stack([b.x for b in batches]),
        torch.stack([b.y for b in batches]),
    )
    alone = [slopes(p, b.x, b.y) for p, b in zip(starts, batches, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-4, atol=1e-6)


def test_looking_ahead_leaves_running_statistics_alone():
    net, batch = FunctionalNet(normalised_net()), a_batch()
    before = net.buffers()
    losses, moved = losses_of(net, net.params(), batch.x, batch.y), moved_params(net.params())
    slope_along(losses, moved, mean_gradient(losses, moved))
    for name, value in net.buffers().items():
        assert torch.equal(value, before[name])


def test_slopes_are_computed_in_float32_within_mixed_precision():
    seen = []

    def losses(moved):
        seen.append(torch.is_autocast_enabled("cpu"))
        return moved["p"].square()

    one = {"p": torch.ones(3)}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        slope = slope_along(losses, one, {"p": torch.arange(3.0)})
    assert seen == [False]
    torch.testing.assert_close(slope, 2 * torch.arange(3.0))


# Reweight


def literal_weights(net, params, batch, virtual_step):
    """As Ren et al. write it: a step with weights that are zero, differentiated by them."""
    names, leaves = zip(*params.items(), strict=True)
    epsilon = torch.zeros(len(batch.y), requires_grad=True)
    weighted = (epsilon * losses(net, params, batch)[0]).sum()
    step = torch.autograd.grad(weighted, leaves, create_graph=True)
    ahead = {k: p - virtual_step * g for k, p, g in zip(names, leaves, step, strict=True)}
    val_loss = losses(net, ahead, batch)[1].mean()
    (slope,) = torch.autograd.grad(val_loss, epsilon)
    weight = (-slope).clamp(min=0)
    return weight / weight.sum()


def test_one_forward_product_equals_the_virtual_step_differentiated_twice():
    net = FunctionalNet(toy_net())
    params, batch = net.params(), a_batch()
    for virtual_step in (1e-3, 1.0):  # it cancels
        torch.testing.assert_close(
            agreement_weights(net, params, batch), literal_weights(net, params, batch, virtual_step)
        )


def test_flipped_labels_weigh_nothing():
    batch = a_batch(n=40)
    batch = batch._replace(x_val=batch.x_val[:2], y_val=batch.y_val[:2])  # one of each class inside
    module = toy_net()
    params, _ = descend(TrainOnly(), module, batch, 5)
    flipped = torch.arange(40) % 8 < 2
    noisy = batch._replace(y=torch.where(flipped, 1 - batch.y, batch.y))
    weight = agreement_weights(FunctionalNet(module), params, noisy)
    assert (weight[flipped] == 0).all()
    assert (weight[~flipped] > 0).all()
    torch.testing.assert_close(weight.sum(), torch.tensor(1.0))


def test_where_no_point_helps_the_loss_is_zero_and_so_is_its_gradient():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    against = batch._replace(x_val=batch.x[:2], y_val=1 - batch.y[:2], x=batch.x[:2], y=batch.y[:2])
    loss, _, logs = Reweight().loss(net, params, State(), against)
    gradients = torch.autograd.grad(loss, list(params.values()))
    assert loss == 0
    assert all((g == 0).all() for g in gradients)
    assert logs["effective_share"] == 0


def test_a_frozen_layer_takes_no_part_in_the_virtual_step():
    module = toy_net()
    module[0].requires_grad_(False)
    net, batch = FunctionalNet(module), a_batch()
    params = net.params()
    last = {k: p for k, p in params.items() if k.startswith("2.")}

    def dot(one, other):
        return sum((a * b).sum() for a, b in zip(one, other, strict=True))

    train_loss, val_loss = losses(net, params, batch)
    ahead = torch.autograd.grad(val_loss.mean(), last.values())
    gain = torch.stack(
        [
            dot(torch.autograd.grad(one, last.values(), retain_graph=True), ahead)
            for one in train_loss
        ]
    ).clamp(min=0)
    torch.testing.assert_close(agreement_weights(net, params, batch), gain / gain.sum())


def test_validation_points_are_not_trained_on():
    net, batch = FunctionalNet(toy_net()), a_batch()
    x_val = batch.x_val.clone().requires_grad_()
    loss = Reweight().loss(net, net.params(), State(), batch._replace(x_val=x_val))[0]
    (gradient,) = torch.autograd.grad(loss, x_val, allow_unused=True)
    assert gradient is None or (gradient == 0).all()


# MW-Net


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("virtual_step", [0.1, 2.0])
def test_the_gradient_of_mw_net_is_a_virtual_step_differentiated_twice(virtual_step, normalise):
    method, batch = MWNet(virtual_step=virtual_step, normalise=normalise), a_batch()
    net, params, state = start(method, toy_net())
    loss = method.loss(net, params, state, batch)[0]
    names, leaves = zip(*params.items(), strict=True)
    weighting = list(state.tensors().values())
    of_net, of_weights = (
        torch.autograd.grad(loss, p, retain_graph=True) for p in (leaves, weighting)
    )

    train_loss, _ = losses(net, params, batch)
    weight = loss_weights(state, train_loss.detach())
    weighted = (weight * train_loss).mean() / (weight.mean() if normalise else 1.0)
    step = torch.autograd.grad(weighted, leaves, create_graph=True)
    ahead = {k: p - virtual_step * g for k, p, g in zip(names, leaves, step, strict=True)}
    meta = torch.autograd.grad(losses(net, ahead, batch)[1].mean(), weighting, retain_graph=True)
    assert all(expected.abs().max() > 0 for expected in meta)
    torch.testing.assert_close(of_weights, meta, rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(of_net, step)  # and the net takes that very step


def test_the_loss_of_mw_net_is_the_weighted_training_loss_alone():
    batch = a_batch()
    net, params, state = start(MWNet(), toy_net())
    train_loss, _ = losses(net, params, batch)
    weight = loss_weights(state, train_loss)
    first, _ = a_loss(MWNet(normalise=False), batch, toy_net())
    torch.testing.assert_close(first, (weight * train_loss).mean())
    torch.testing.assert_close(a_loss(MWNet(), batch, toy_net())[0], first / weight.mean())


def test_high_losses_of_flipped_labels_learn_a_low_weight():
    batch = a_batch(n=60)
    flipped = torch.arange(60) % 10 < 4
    batch = batch._replace(
        y=torch.where(flipped, 1 - batch.y, batch.y), x_val=batch.x_val[:2], y_val=batch.y_val[:2]
    )
    net, params, state = start(MWNet(), toy_net())
    at_start = loss_weights(state, losses(net, params, batch)[0])
    # normalised weights make the steps of this one batch larger than a weighting net can follow
    params, state = descend(MWNet(normalise=False), toy_net(), batch, 300)
    weight = loss_weights(state, losses(net, params, batch)[0])
    assert weight[flipped].max() < 0.1 * weight[~flipped].min()
    assert at_start.max() < 2 * at_start.min()  # it was learnt, not drawn


@pytest.mark.parametrize("setting", [{"virtual_step": 0.0}, {"learning_rate": 0.0}])
def test_settings_without_a_meaning_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        MWNet(**setting)


def test_the_weighting_net_is_drawn_from_the_random_state_alone():
    one, same, other = (start(MWNet(), toy_net(), seed)[2].tensors() for seed in (0, 0, 1))
    assert [tuple(p.shape) for p in one.values()] == [(100, 1), (100,), (1, 100), (1,)]
    for name, p in one.items():
        assert torch.equal(p, same[name])
        assert not torch.equal(p, other[name])
