"""Directional derivatives of all losses at once, by two roads."""

import pytest
import torch
from tests.nets.methods.steps import a_batch
from tests.nets.methods.two_backwards import slope_by_pulling_back
from tests.nets.training.toy import toy_net
from torch import nn
from torch.func import vmap

from giw.nets.kernels import fused_norm
from giw.nets.methods.meta_gradient import (
    goes_forward_mixed,
    losses_of,
    mean_gradient,
    moved_params,
    slope_along,
)
from giw.nets.models import ResNet18
from giw.nets.training import FunctionalNet

ROADS = [slope_along, slope_by_pulling_back]


def normalised_net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).train()


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("make", [toy_net, normalised_net])
def test_slopes_are_inner_products_with_each_gradient(road, make):
    net, batch = FunctionalNet(make()), a_batch()
    params = net.params()
    losses, moved = losses_of(net, params, batch.x, batch.y), moved_params(params)
    direction = mean_gradient(losses_of(net, params, batch.x_val, batch.y_val), moved)
    leaves = {name: p.clone().requires_grad_() for name, p in moved.items()}
    for one, slope in zip(losses(leaves), road(losses, moved, direction), strict=True):
        gradient = torch.autograd.grad(one, list(leaves.values()), retain_graph=True)
        expected = sum((g * d).sum() for g, d in zip(gradient, direction.values(), strict=True))
        torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("road", ROADS)
def test_trials_side_by_side_have_the_slopes_of_each_alone(road):
    net = FunctionalNet(toy_net())

    def slopes(params, x, y):
        losses = losses_of(net, params, x, y)
        return road(losses, params, mean_gradient(losses, params))

    starts = [moved_params(FunctionalNet(toy_net(seed)).params()) for seed in range(3)]
    batches = [a_batch(seed) for seed in range(3)]
    together = vmap(slopes)(
        {name: torch.stack([p[name] for p in starts]) for name in starts[0]},
        torch.stack([b.x for b in batches]),
        torch.stack([b.y for b in batches]),
    )
    alone = [slopes(p, b.x, b.y) for p, b in zip(starts, batches, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("road", ROADS)
def test_looking_ahead_leaves_running_statistics_alone(road):
    net, batch = FunctionalNet(normalised_net()), a_batch()
    before = net.buffers()
    losses, moved = losses_of(net, net.params(), batch.x, batch.y), moved_params(net.params())
    road(losses, moved, mean_gradient(losses, moved))
    for name, value in net.buffers().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("mixed", [False, True])
def test_mixed_precision_goes_into_a_derivative_only_where_asked(mixed):
    seen = []

    def losses(moved):
        seen.append(torch.is_autocast_enabled("cpu"))
        return moved["p"].square()

    one = {"p": torch.ones(3)}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        slope = slope_along(losses, one, {"p": torch.arange(3.0)}, mixed=mixed)
    assert seen == [mixed]
    torch.testing.assert_close(slope, 2 * torch.arange(3.0))


def test_only_nets_whose_norms_have_kernels_go_forward_mixed(monkeypatch):
    fused, plain = ResNet18(2).train(), normalised_net()
    fused_norm.fuse_norms(fused, True)
    assert not goes_forward_mixed(FunctionalNet(fused))  # on the CPU
    monkeypatch.setattr(fused_norm, "reaches", lambda tensor: True)
    assert goes_forward_mixed(FunctionalNet(fused))
    assert not goes_forward_mixed(FunctionalNet(plain))
    assert not goes_forward_mixed(FunctionalNet(nn.Sequential(fused, plain)))
    assert not goes_forward_mixed(FunctionalNet(toy_net()))  # nothing to go by
    assert not goes_forward_mixed(FunctionalNet(fused.eval()))
    assert not goes_forward_mixed(FunctionalNet(ResNet18(2).train()))  # not switched on
