"""The perceptron against arithmetic."""

import torch

from giw.nets.models import MLP


def test_one_hidden_layer_by_hand():
    net = MLP(2, 2, hidden=(2,))
    with torch.no_grad():
        net.hidden[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, -1.0]]))
        net.hidden[0].bias.copy_(torch.tensor([0.5, 0.0]))
        net.output.weight.copy_(torch.tensor([[2.0, 1.0], [0.0, 1.0]]))
        net.output.bias.zero_()
    x = torch.tensor([[1.0, 3.0], [-2.0, -4.0]])

    assert torch.equal(net.features(x), torch.tensor([[1.5, 0.0], [0.0, 4.0]]))
    assert torch.equal(net(x), torch.tensor([[3.0, 0.0], [4.0, 4.0]]))


def test_images_are_flattened_and_layers_named():
    net = MLP(64, 3, hidden=(8, 5))
    layers = net.layers(torch.zeros(4, 1, 8, 8))

    assert {name: tuple(layer.shape) for name, layer in layers.items()} == {
        "fc1": (4, 8),
        "fc2": (4, 5),
    }
