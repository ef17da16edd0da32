"""The nets of the paper against its appendix, and one for tables."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from giw.nets.models import MLP, LeNet5, ResNet18, build, model_for

SHAPES = {"mlp": (4, 7), "lenet5": (4, 1, 32, 32), "resnet18": (4, 3, 8, 8)}


def points(name, seed=0):
    return torch.randn(SHAPES[name], generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_the_head_of_features_that_are_not_negative(name):
    net, x = build(name, SHAPES[name], 3, random_state=0).eval(), points(name)

    assert net(x).shape == (4, 3)
    assert torch.equal(net.head(net.features(x)), net(x))
    assert net.features(x).ndim == 2
    assert (net.features(x) >= 0).all()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_stacked_trials_give_what_each_net_gives_alone(name, training):
    nets = [build(name, SHAPES[name], 3, random_state=seed).train(training) for seed in range(2)]
    x = torch.stack([points(name, seed) for seed in range(2)])
    parameters, buffers = stack_module_state(nets)

    def forward(p, b, point):
        return functional_call(nets[0], (p, b), (point,))

    with torch.no_grad():
        together = vmap(forward)(parameters, buffers, x)
        alone = torch.stack([net(point) for net, point in zip(nets, x, strict=True)])

    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4)
    for index, net in enumerate(nets):  # running statistics moved in the net's own slice
        for key, own in net.named_buffers():
            torch.testing.assert_close(buffers[key][index], own)


@pytest.mark.parametrize("name", SHAPES)
def test_a_net_depends_on_its_seed_and_leaves_the_global_one_alone(name):
    before = torch.get_rng_state()
    nets = [build(name, SHAPES[name], 2, random_state=seed) for seed in (5, 5, 6)]
    weights = [nn.utils.parameters_to_vector(net.parameters()) for net in nets]

    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((100, 2), MLP),
        ((1797, 1, 8, 8), MLP),
        ((10, 3, 4), MLP),
        ((10, 1, 28, 28), LeNet5),
        ((10, 3, 32, 32), LeNet5),
        ((10, 4, 32, 32), MLP),
    ],
)
def test_the_shape_of_x_chooses_the_net(shape, kind):
    net = model_for(shape, 2, random_state=0)

    assert type(net) is kind
    assert net(torch.zeros(2, *shape[1:])).shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: model_for((5,), 2), r"mlp takes X of shape .* or \(n, d\); got \(5,\)"),
        (lambda: model_for((5, 3), 1), "at least two classes"),
        (lambda: build("vgg", (5, 3), 2), "net must be one of"),
        (lambda: build("resnet18", (5, 3), 2), "resnet18 takes X of shape"),
        (lambda: MLP(3, 2, hidden=()), "at least one layer"),
        (lambda: LeNet5(2, channels=2), "1 or 3 channels"),
    ],
)
def test_wrong_requests_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_perceptron_by_hand():
    net = MLP(2, 2, hidden=(2,))
    with torch.no_grad():
        net.hidden[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, -1.0]]))
        net.hidden[0].bias.copy_(torch.tensor([0.5, 0.0]))
        net.output.weight.copy_(torch.tensor([[2.0, 1.0], [0.0, 1.0]]))
        net.output.bias.zero_()
    x = torch.tensor([[1.0, 3.0], [-2.0, -4.0]])

    assert torch.equal(net.features(x), torch.tensor([[1.5, 0.0], [0.0, 4.0]]))
    assert torch.equal(net(x), torch.tensor([[3.0, 0.0], [4.0, 4.0]]))


@pytest.mark.parametrize(("channels", "first", "second"), [(1, 6, 16), (3, 20, 50)])
def test_lenet_has_the_widths_of_the_appendix(channels, first, second):
    net = LeNet5(10, channels=channels)
    shapes = {name: tuple(p.shape) for name, p in net.named_parameters() if "weight" in name}

    assert shapes == {
        "conv1.weight": (first, channels, 5, 5),
        "conv2.weight": (second, first, 5, 5),
        "fc1.weight": (120, second * 25),
        "fc2.weight": (84, 120),
        "output.weight": (10, 84),
    }


def test_lenet_is_the_sequence_written_in_the_appendix():
    net = LeNet5(2)
    x = torch.rand(3, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    pool, relu = torch.nn.MaxPool2d(2), torch.nn.ReLU()
    chain = torch.nn.Sequential(
        *(net.conv1, relu, pool, net.conv2, relu, pool, torch.nn.Flatten()),
        *(net.fc1, relu, net.fc2, relu, net.output),
    )

    torch.testing.assert_close(net(x), chain(x))
    torch.testing.assert_close(net.features(x), chain[:9](x))  # after ReLU of the third layer


@pytest.mark.parametrize("net", [LeNet5(2, channels=3), ResNet18(2)], ids=["lenet5", "resnet18"])
@pytest.mark.parametrize("side", [28, 32])
def test_bytes_and_other_sizes_are_welcome(net, side):
    x = torch.randint(0, 256, (2, 3, side, side), generator=torch.Generator().manual_seed(0))

    with torch.no_grad():
        torch.testing.assert_close(net.eval()(x.to(torch.uint8)), net(x / 255))


def test_resnet_has_the_convolutions_of_the_appendix():
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
    assert sum(p.numel() for p in net.parameters()) == 11_179_092


def test_resnet_features_are_the_average_of_a_4_by_4_map():
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
