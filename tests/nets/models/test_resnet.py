"""ResNet-18 by the paper's appendix."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from giw.nets.models import ResNet18, build


def test_convolutions_are_those_of_the_appendix():
    net = ResNet18(20)
    convolutions = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
    main = [(m.out_channels, m.stride[0]) for m in convolutions if m.kernel_size == (3, 3)]
    shortcuts = [(m.out_channels, m.stride[0]) for m in convolutions if m.kernel_size == (1, 1)]

    assert main == [
        (64, 1),
        *[(64, 1)] * 4,
        *[(128, 2), (128, 1), (128, 1), (128, 1)],
        *[(256, 2), (256, 1), (256, 1), (256, 1)],
        *[(512, 2), (512, 1), (512, 1), (512, 1)],
    ]
    assert shortcuts == [(128, 2), (256, 2), (512, 2)]
    assert sum(isinstance(m, nn.BatchNorm2d) for m in net.modules()) == len(convolutions)


def test_it_has_as_many_parameters_as_counted_by_hand():
    """3 × 3 convolutions, projections, two numbers per normalised channel, the linear layer."""
    widths = [(64, 64), (64, 128), (128, 256), (256, 512)]
    count = 27 * 64 + 2 * 64
    for before, width in widths:
        count += 9 * before * width + 3 * 9 * width * width + 4 * 2 * width
        count += (before * width + 2 * width) * (before != width)
    count += 512 * 20 + 20

    assert sum(p.numel() for p in ResNet18(20).parameters()) == count == 11_179_092


def test_features_are_the_average_of_a_4_by_4_map():
    net = ResNet18(20).eval()
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    seen = []
    net.stages[-1].register_forward_hook(lambda module, inputs, output: seen.append(output))

    with torch.no_grad():
        features = net.features(x)

    assert seen[0].shape == (2, 512, 4, 4)
    torch.testing.assert_close(features, seen[0].mean((2, 3)))


def test_a_block_whose_branch_is_silent_passes_its_input():
    """With the last normalisation at zero, a block is ReLU of the shortcut."""
    block = ResNet18(2).stages[0][0].eval()
    nn.init.zeros_(block.norm2.weight)
    x = torch.randn(1, 64, 4, 4, generator=torch.Generator().manual_seed(0))

    torch.testing.assert_close(block(x), x.relu())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_bytes_and_floats_are_the_same_pixels(dtype):
    net = ResNet18(5).eval()
    pixels = torch.randint(0, 256, (1, 3, 32, 32), generator=torch.Generator().manual_seed(0))
    x = pixels.to(torch.uint8) if dtype is torch.uint8 else pixels / 255

    with torch.no_grad():
        torch.testing.assert_close(net(x), net(pixels / 255))


@pytest.mark.parametrize("training", [False, True])
def test_stacked_nets_give_what_each_gives_alone(training):
    nets = [build("resnet18", (1, 3, 8, 8), 3, random_state=s).train(training) for s in range(2)]
    x = torch.rand(2, 4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    parameters, buffers = stack_module_state(nets)

    def forward(p, b, images):
        return functional_call(nets[0], (p, b), (images,))

    with torch.no_grad():
        together = vmap(forward)(parameters, buffers, x)
        alone = torch.stack([net(images) for net, images in zip(nets, x, strict=True)])

    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4)
    # In training mode the running statistics of each net moved in its own slice.
    for index, net in enumerate(nets):
        torch.testing.assert_close(buffers["norm.running_mean"][index], net.norm.running_mean)
