"""Memory formats, which must change nothing but speed."""

import pytest
import torch
from torch import nn

from giw.nets.kernels.devices import FULL, Precision, precision_for
from giw.nets.methods import Pooled
from giw.nets.models import LeNet5, ResNet18, initialised
from giw.nets.training import FunctionalNet, Tensors, TrainingConfig, train

CPU = torch.device("cpu")


class Viewing(nn.Module):
    """A net as many write it: ``view`` asks for the plain memory format."""

    def __init__(self):
        super().__init__()
        self.conv, self.output = nn.Conv2d(3, 4, 3), nn.Linear(4 * 36, 2)

    def forward(self, x):
        return self.output(self.conv(x).relu().view(len(x), -1))


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_last_reaches_every_kernel_and_every_image(channels):
    net = FunctionalNet(LeNet5(2, channels), Precision(channels_last=True))
    kernels = [p for p in net.params().values() if p.ndim == 4]
    for z in (*kernels, net.precision.images(torch.rand(2, channels, 8, 8))):
        assert z.stride()[1] == 1  # of one channel too: its strides are what libraries look at


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_last_changes_rounding_only(channels):
    module = initialised(lambda: LeNet5(2, channels), 0)
    x = torch.rand(5, channels, 32, 32, generator=torch.Generator().manual_seed(0))
    found = []
    for precision in (FULL, Precision(channels_last=True)):
        net = FunctionalNet(module, precision)
        params = net.params()
        logits, hidden = net.with_hidden(params, x)
        slopes = torch.autograd.grad(logits.square().sum(), list(params.values()))
        found.append((logits, hidden, *slopes))
    for plain, last in zip(*found, strict=True):
        torch.testing.assert_close(plain, last, rtol=1e-4, atol=1e-5)


def test_nets_of_ones_own_keep_the_plain_format():
    assert precision_for("auto", LeNet5(2), CPU).channels_last
    assert precision_for("auto", ResNet18(2), CPU).channels_last
    assert not precision_for("auto", LeNet5(2), CPU, stacked=True).channels_last
    for device in ("cpu", "cuda"):
        normalised = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        assert not precision_for("auto", normalised, torch.device(device)).channels_last


def test_a_net_that_views_its_images_is_trained():
    x, y = torch.rand(20, 3, 8, 8), torch.arange(20) % 2
    record = train(Pooled(), Viewing(), Tensors(x, y, x[:4], y[:4]), TrainingConfig(epochs=1))
    assert torch.isfinite(record.module(x)).all()
