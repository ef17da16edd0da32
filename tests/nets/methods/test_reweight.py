"""Reweight: points count as far as a step on them lowers the validation loss."""

import torch
from tests.nets.methods.steps import a_batch, descend, losses
from tests.nets.training.toy import toy_net

from giw.nets.methods import Reweight, TrainOnly
from giw.nets.methods.meta_gradient import agreement_weights
from giw.nets.training import FunctionalNet


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
    params = descend(TrainOnly(), module, batch, 5)
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
    loss, logs = Reweight().loss(net, params, against)
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
    loss, _ = Reweight().loss(net, net.params(), batch._replace(x_val=x_val))
    (gradient,) = torch.autograd.grad(loss, x_val, allow_unused=True)
    assert gradient is None or (gradient == 0).all()
