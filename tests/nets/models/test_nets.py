"""What every net of this room can do."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from giw.nets.models import MLP, LeNet5, build, model_for

SHAPES = {"mlp": (4, 7), "lenet5": (4, 1, 32, 32), "resnet18": (4, 3, 8, 8)}


def points(name, seed=0):
    return torch.randn(SHAPES[name], generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", SHAPES)
def test_features_are_a_nonnegative_named_layer_and_logits_one_per_class(name):
    net, x = build(name, SHAPES[name], 3, random_state=0).eval(), points(name)

    layers = net.layers(x)

    assert net(x).shape == (4, 3)
    assert torch.equal(net.head(net.features(x)), net(x))
    assert any(torch.equal(net.features(x), layer) for layer in layers.values())
    assert all(layer.ndim == 2 and (layer >= 0).all() for layer in layers.values())


@pytest.mark.parametrize("name", SHAPES)
def test_stacked_trials_give_what_each_net_gives_alone(name):
    nets = [build(name, SHAPES[name], 3, random_state=seed).eval() for seed in range(2)]
    x = torch.stack([points(name, seed) for seed in range(2)])
    parameters, buffers = stack_module_state(nets)

    def forward(p, b, point):
        return functional_call(nets[0], (p, b), (point,))

    together = vmap(forward)(parameters, buffers, x)

    alone = torch.stack([net(point) for net, point in zip(nets, x, strict=True)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


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
        (lambda: model_for((5,), 2), "x_shape is the shape of X"),
        (lambda: model_for((5, 3), 1), "at least two classes"),
        (lambda: build("vgg", (5, 3), 2), "net must be one of"),
        (lambda: build("resnet18", (5, 3), 2), "resnet18 is for images"),
        (lambda: MLP(3, 2, hidden=()), "at least one layer"),
        (lambda: LeNet5(2, channels=2), "1 or 3 channels"),
    ],
)
def test_wrong_requests_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
