import torch
from torch import nn

from giw.nets.methods.baselines import frozen_except, parameter_blocks
from giw.nets.models import build
from giw.nets.training import FunctionalNet


def blocks_of(name, shape):
    params = FunctionalNet(build(name, shape, 2, random_state=0)).params()
    return [block[0].rpartition(".")[0] for block in parameter_blocks(params)]


def test_layers_and_numbered_parts_are_blocks():
    assert blocks_of("lenet5", (9, 1, 32, 32)) == ["conv1", "conv2", "fc1", "fc2", "output"]
    resnet = blocks_of("resnet18", (9, 3, 32, 32))
    assert resnet[:3] == ["stem", "norm", "stages.0.0.conv1"]
    assert len(resnet) == 2 + 4 + 1
    plain = FunctionalNet(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))).params()
    assert parameter_blocks(plain) == [["0.weight", "0.bias"], ["2.weight", "2.bias"]]


def test_a_methods_own_tensors_are_in_no_block():
    params = {name: torch.ones(1).requires_grad_() for name in ("a.weight", "method.memory")}
    assert parameter_blocks(params) == [["a.weight"]]


def test_frozen_layers_are_no_blocks():
    params = {name: torch.ones(1).requires_grad_() for name in ("a.weight", "b.weight")}
    params["a.weight"].requires_grad_(False)
    assert parameter_blocks(params) == [["b.weight"]]


def test_only_the_named_parameters_carry_a_gradient():
    params = {name: torch.ones(2, requires_grad=True) for name in ("a", "b")}
    found = frozen_except(params, ["b"])
    assert not found["a"].requires_grad
    assert found["b"] is params["b"]
