"""Derivatives of the half-precision convolution, without Triton and without rounding."""

import pytest
import torch
from tests.nets.methods.two_backwards import slope_by_pulling_back
from tests.nets.training.test_trials import tiny_images, tiny_lenet
from torch.func import vmap

from giw.nets.kernels import half_conv, patches, products
from giw.nets.methods.virtual import (
    losses_of,
    mean_gradient,
    moved_params,
    slope_along,
)
from giw.nets.training import FunctionalNet, as_input, sample_losses

SEEDS = (0, 1, 2)


@pytest.fixture
def kernels_by_torch(monkeypatch):
    """What Triton would move, moved by torch; sixteen bits are sixty-four."""

    def cut(x, k, dtype):
        return patches.cut_patches(x, k).to(dtype).contiguous()

    def paste(rows, k, height, width, scale=None):
        c = rows.shape[-1] // (k * k)
        with torch.enable_grad():
            x = torch.zeros(len(rows), height, width, c, requires_grad=True)
            out = torch.autograd.grad(patches.cut_patches(x, k), x, rows.float())[0]
        scale = torch.ones(1) if scale is None else scale
        return (out.unflatten(0, (len(scale), -1)) / scale.view(-1, 1, 1, 1, 1)).flatten(0, 1)

    def best(windows):
        value, place = windows.max(dim=1)
        return value.relu().float(), place.where(value > 0, 4).to(torch.uint8)

    def to_one(value, which, dtype, scale=None):
        scale = torch.ones(1) if scale is None else scale
        scaled = (value.unflatten(0, (len(scale), -1)) * scale.view(-1, 1, 1)).flatten(0, 1)
        place = torch.nn.functional.one_hot(which.long(), 5)[..., :4].movedim(-1, 1)
        return (scaled[:, None] * place).to(dtype).contiguous()

    def sum_of_products(rows, back, parts):
        calls.append(parts)
        return (rows.mT @ back).float()

    calls = []
    for name, function in (("cut", cut), ("paste", paste), ("best", best), ("to_one", to_one)):
        for module in (half_conv, patches):
            monkeypatch.setattr(module, f"move_{name}", function)
    monkeypatch.setattr(half_conv, "HALF", torch.float64)
    monkeypatch.setattr(half_conv, "_sum_of_products", sum_of_products)
    monkeypatch.setattr(products, "suits", lambda x: True)
    return calls


def problem(seed):
    """Parameters of a plain net, and a batch."""
    data = tiny_images(seed)
    return (
        moved_params(FunctionalNet(tiny_lenet(seed)).params()),
        data.x_train[:6],
        data.y_train[:6],
    )


def test_gradients_are_those_of_convolutions(kernels_by_torch):
    params, x, y = problem(0)
    plain, fast = (
        FunctionalNet(net) for net in (tiny_lenet(0), products.by_products(tiny_lenet(0)))
    )
    for losses in (losses_of(plain, params, x, y), losses_of(fast, params, x, y)):
        found = mean_gradient(losses, params)
        expected = mean_gradient(losses_of(plain, params, x, y), params)
        for name in params:
            torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=1e-6)
    assert kernels_by_torch  # the fast way was gone


@pytest.mark.parametrize("road", [slope_along, slope_by_pulling_back])
def test_slopes_of_trials_side_by_side_are_those_of_convolutions(road, kernels_by_torch):
    plain, fast = (
        FunctionalNet(net) for net in (tiny_lenet(0), products.by_products(tiny_lenet(0)))
    )
    parts = [problem(seed) for seed in SEEDS]

    def slopes(net):
        def one(params, x, y):
            losses = losses_of(net, params, x, y)
            return road(losses, params, mean_gradient(losses, params))

        return one

    stacked = {name: torch.stack([p[name] for p, _, _ in parts]) for name in parts[0][0]}
    together = vmap(slopes(fast))(
        stacked, torch.stack([x for _, x, _ in parts]), torch.stack([y for _, _, y in parts])
    )
    for found, part in zip(together, parts, strict=True):
        torch.testing.assert_close(found, slopes(plain)(*part), rtol=1e-4, atol=1e-6)


def test_gradients_of_gradients_go_the_long_way(kernels_by_torch):
    params, x, y = problem(1)
    found = []
    for module in (tiny_lenet(1), products.by_products(tiny_lenet(1))):
        net, leaves = FunctionalNet(module), [p.clone().requires_grad_() for p in params.values()]
        named = dict(zip(params, leaves, strict=True))
        loss = sample_losses(net(named, as_input(x)), y).square().sum()
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), leaves))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
