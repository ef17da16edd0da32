"""LeNet-5 by the paper's appendix."""

import pytest
import torch

from giw.nets.models import LeNet5


@pytest.mark.parametrize(("channels", "first", "second"), [(1, 6, 16), (3, 20, 50)])
def test_widths_are_those_of_the_appendix(channels, first, second):
    net = LeNet5(10, channels=channels)
    shapes = {name: tuple(p.shape) for name, p in net.named_parameters() if "weight" in name}

    assert shapes == {
        "conv1.weight": (first, channels, 5, 5),
        "conv2.weight": (second, first, 5, 5),
        "fc1.weight": (120, second * 25),
        "fc2.weight": (84, 120),
        "output.weight": (10, 84),
    }


def test_the_forward_pass_is_the_sequence_written_in_the_appendix():
    net = LeNet5(2)
    x = torch.rand(3, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    pool, relu = torch.nn.MaxPool2d(2), torch.nn.ReLU()
    chain = torch.nn.Sequential(
        *(net.conv1, relu, pool, net.conv2, relu, pool, torch.nn.Flatten()),
        *(net.fc1, relu, net.fc2, relu, net.output),
    )

    torch.testing.assert_close(net(x), chain(x))
    torch.testing.assert_close(net.features(x), chain[:9](x))  # after ReLU of the third layer
    torch.testing.assert_close(net.layers(x)["conv2"], chain[:7](x))


def test_bytes_and_28_pixels_are_welcome():
    net = LeNet5(2)
    x = torch.randint(0, 256, (2, 1, 28, 28), generator=torch.Generator().manual_seed(0))

    torch.testing.assert_close(net(x.to(torch.uint8)), net(x / 255))
