"""Kernels that cut patches and take the best of four, run by Triton's interpreter.

In float64 the same functions take torch's own operations: those are what is compared with.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call, grad, jvp, vmap

from giw.nets.kernels.patches import best_of_four, cut_patches
from giw.nets.kernels.products import by_products, conv_relu_pool, framing
from giw.nets.models import LeNet5, initialised

pytestmark = pytest.mark.kernels
SIDES = st.integers(6, 11)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def cubes(function):
    """A curved function of it, so that gradients of gradients say something."""
    return lambda z: function(z).pow(3).mean()


def agree(function, *inputs, tolerance=1e-4):
    found = function(*inputs)
    expected = function(*(z.double() for z in inputs))
    torch.testing.assert_close(found, expected.float(), rtol=tolerance, atol=tolerance)


@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 4), height=SIDES, width=SIDES, c=st.integers(1, 3), k=st.integers(3, 6))
def test_patches_are_those_of_torch(n, height, width, c, k):
    agree(lambda x: cut_patches(x, k), normal(n, height, width, c), tolerance=0)
    # channels first in memory, as images come
    agree(lambda x: cut_patches(x.permute(0, 2, 3, 1), k), normal(n, c, height, width), tolerance=0)


@pytest.mark.parametrize("k", [3, 6])
def test_gradients_of_patches_are_those_of_torch_twice_and_along_a_direction(k):
    x, direction = normal(2, 9, 7, 2), normal(2, 9, 7, 2, seed=1)
    cut = cut_patches(x.clone().requires_grad_(), k)
    assert "_Cut" in cut.grad_fn.name()  # it was the kernel
    curve = cubes(lambda z: cut_patches(z, k))
    agree(grad(curve), x)
    agree(grad(cubes(grad(curve))), x)
    agree(lambda z, d: jvp(lambda u: cut_patches(u, k), (z,), (d,))[1], x, direction)
    agree(vmap(grad(curve)), normal(3, 2, 9, 7, 2))


@settings(max_examples=10, deadline=None)
@given(rows=st.integers(1, 700), out=st.integers(1, 5))
def test_the_best_of_four_is_that_of_torch(rows, out):
    agree(best_of_four, normal(rows, 4, out), tolerance=0)


def test_nothing_is_better_than_zero_and_nothing_flows_back_to_it():
    windows = torch.tensor([[[-1.0], [-2.0], [-3.0], [-4.0]], [[1.0], [4.0], [3.0], [2.0]]])
    assert best_of_four(windows).tolist() == [[0.0], [4.0]]
    slopes = grad(lambda z: best_of_four(z).sum())(windows)
    assert slopes[..., 0].tolist() == [[0, 0, 0, 0], [0, 1, 0, 0]]


def test_gradients_of_the_best_are_those_of_torch_twice_and_along_a_direction():
    x, direction = normal(50, 4, 3), normal(50, 4, 3, seed=1)
    assert "_Best" in best_of_four(x.clone().requires_grad_()).grad_fn.name()
    curve = cubes(best_of_four)
    agree(grad(curve), x)
    agree(grad(cubes(grad(curve))), x)
    agree(lambda z, d: jvp(best_of_four, (z,), (d,))[1], x, direction)
    agree(vmap(grad(curve)), normal(3, 50, 4, 3))


@pytest.mark.parametrize("side", [6, 9])
def test_one_product_is_convolution_relu_and_pooling(side):
    x, conv = normal(3, 2, side, side), initialised(lambda: nn.Conv2d(2, 4, 5), 0)
    found = conv_relu_pool(x.permute(0, 2, 3, 1), conv.weight, conv.bias, framing(5))
    expected = nn.functional.max_pool2d(conv(x).relu(), 2)
    torch.testing.assert_close(found.permute(0, 3, 1, 2), expected, rtol=1e-4, atol=1e-5)


def test_gradients_and_slopes_of_lenets_side_by_side_are_those_of_convolutions():
    modules = [initialised(lambda: LeNet5(3), seed) for seed in range(2)]
    twin, x, y = by_products(modules[0]), torch.rand(2, 4, 1, 32, 32), torch.tensor([0, 1, 2, 0])
    params = [dict(module.named_parameters()) for module in modules]
    stacked = {name: torch.stack([p[name].detach() for p in params]) for name in params[0]}

    def loss(net):
        return lambda p, z: nn.functional.cross_entropy(functional_call(net, p, (z,)), y)

    def slope(net):
        return lambda p, z: jvp(lambda q: loss(net)(q, z), (p,), (p,))[1]

    found, slopes = vmap(grad(loss(twin)))(stacked, x), vmap(slope(twin))(stacked, x)
    for t, module in enumerate(modules):
        own = {name: p.detach() for name, p in params[t].items()}
        for name, expected in grad(loss(module))(own, x[t]).items():
            torch.testing.assert_close(found[name][t], expected, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(slopes[t], slope(module)(own, x[t]), rtol=1e-4, atol=1e-5)
