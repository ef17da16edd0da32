import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap

from giw.nets.kernels.products import by_products, conv_relu_pool, framing, most_parts
from giw.nets.models import LeNet5, initialised


@pytest.mark.parametrize("side", [6, 9, 14])
@pytest.mark.parametrize("n", [1, 6])
def test_one_product_is_convolution_relu_and_pooling(side, n):
    generator = torch.Generator().manual_seed(side)
    x = torch.randn(n, 3, side, side, generator=generator, dtype=torch.float64)
    conv = nn.Conv2d(3, 4, 5).double()
    expected = nn.functional.max_pool2d(conv(x).relu(), 2)
    frames = framing(5).double()
    found = conv_relu_pool(x.permute(0, 2, 3, 1), conv.weight, conv.bias, frames)
    torch.testing.assert_close(found.permute(0, 3, 1, 2), expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_gradients_are_those_of_lenet(channels):
    module = initialised(lambda: LeNet5(10, channels=channels), 0).double()
    twin = by_products(module)
    x = torch.rand(8, channels, 32, 32, dtype=torch.float64)
    assert [name for name, _ in twin.named_parameters()] == [
        name for name, _ in module.named_parameters()
    ]
    torch.testing.assert_close(twin.features(x), module.features(x))
    for net in (module, twin):
        nn.functional.cross_entropy(net(x), torch.arange(8)).backward()
    for mine, its in zip(twin.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, its.grad)


def test_stacked_nets_are_each_net_alone():
    modules = [initialised(lambda: LeNet5(2), seed) for seed in range(3)]
    twin, x = by_products(modules[0]), torch.rand(3, 4, 1, 32, 32)
    params = {
        name: torch.stack([dict(m.named_parameters())[name].detach() for m in modules])
        for name, _ in twin.named_parameters()
    }
    found = vmap(lambda p, b: functional_call(twin, p, (b,)))(params, x)
    for t, module in enumerate(modules):
        torch.testing.assert_close(found[t], module(x[t]), rtol=1e-4, atol=1e-5)


def test_other_nets_and_heirs_of_lenet_are_copied_as_they_are():
    class Heir(LeNet5):
        pass

    module = Heir(2)
    assert type(by_products(module)) is Heir
    assert by_products(module) is not module


@pytest.mark.parametrize(
    ("n", "most", "parts"), [(276, 32, 23), (256, 32, 32), (7, 5, 1), (4, 0, 1)]
)
def test_parts_divide_the_points(n, most, parts):
    assert most_parts(n, most) == parts
