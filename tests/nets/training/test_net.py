import pytest
import torch
from torch import nn

from giw.nets.training import FunctionalNet, as_input, predict_in_blocks, unit_norm


class WithFeatures(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

    def features(self, x):
        return torch.relu(self.first(x))

    def head(self, z):
        return self.last(z)

    def forward(self, x):
        return self.head(self.features(x))


def plain():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


@pytest.mark.parametrize("make", [WithFeatures, plain])
def test_the_hidden_layer_is_what_enters_the_last_linear_layer(make):
    module, x = make(), torch.randn(5, 3)
    net = FunctionalNet(module)
    logits, hidden = net.with_hidden(net.params(), x)
    first = next(layer for layer in module.modules() if isinstance(layer, nn.Linear))
    torch.testing.assert_close(logits, module(x))
    torch.testing.assert_close(hidden, unit_norm(torch.relu(first(x))))


def test_parameters_come_from_outside():
    module, x = plain(), torch.randn(5, 3)
    net = FunctionalNet(module)
    before = module(x)
    zeros = {name: torch.zeros_like(p) for name, p in net.params().items()}
    assert (net(zeros, x) == 0).all()
    torch.testing.assert_close(module(x), before)


def test_with_params_makes_a_module_that_predicts_with_them():
    module, x = plain(), torch.randn(5, 3)
    net = FunctionalNet(module)
    params = {name: p * 2 for name, p in net.params().items()}
    torch.testing.assert_close(net.with_params(params)(x), net(params, x))


def test_a_net_without_a_linear_layer_says_what_it_lacks():
    net = FunctionalNet(nn.Sequential(nn.Flatten(), nn.ReLU()))
    with pytest.raises(ValueError, match="no linear layer"):
        net.with_hidden(net.params(), torch.randn(2, 3))


def test_zero_rows_stay_zero_and_others_get_length_one():
    z = unit_norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    torch.testing.assert_close(z, torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_blocks_do_not_change_predictions_and_dropout_is_off():
    module = nn.Sequential(nn.Linear(3, 50), nn.Dropout(0.5), nn.Linear(50, 2)).train()
    net, x = FunctionalNet(module), torch.randn(10, 3)
    params = net.params()
    whole = predict_in_blocks(net, params, x)
    torch.testing.assert_close(predict_in_blocks(net, params, x, block=3), whole)
    assert module.training


def test_bytes_become_numbers_between_zero_and_one():
    x = torch.tensor([0, 255], dtype=torch.uint8)
    assert as_input(x).tolist() == [0.0, 1.0]
    assert as_input(torch.tensor([7.0])).tolist() == [7.0]
