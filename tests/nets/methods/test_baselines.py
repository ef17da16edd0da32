"""Methods that differ by what is averaged and by what learns."""

import pytest
import torch
from tests.nets.methods.steps import a_batch, a_loss, descend, losses, start
from tests.nets.training.toy import toy_net, toy_tensors
from torch import nn

from giw.nets.methods import DFR, Pooled, PretrainVal, Surgical, TrainOnly, ValOnly
from giw.nets.methods.baselines import balanced_mean, parameter_blocks
from giw.nets.models import build
from giw.nets.training import FunctionalNet, TrainingConfig, pretrain_trials, train, train_trials


def test_the_simple_losses_by_hand():
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    for method, expected in [
        (ValOnly(), val_loss.mean()),
        (PretrainVal(), val_loss.mean()),
        (Surgical(), val_loss.mean()),
        (TrainOnly(), train_loss.mean()),
        (Pooled(), (train_loss.mean() + val_loss.mean()) / 2),
    ]:
        torch.testing.assert_close(a_loss(method, batch, toy_net())[0], expected)


def test_dfr_descends_validation_losses_and_the_size_of_the_last_layer():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    last = [name for name in params if name.endswith("weight")][-1]
    expected = losses(net, params, batch)[1].mean() + 0.3 * params[last].abs().sum()
    torch.testing.assert_close(a_loss(DFR(penalty=0.3), batch, toy_net())[0], expected)


def test_pooled_data_count_by_halves_with_balanced_classes():
    net, batch = FunctionalNet(toy_net()), a_batch()
    sides = zip(losses(net, net.params(), batch), (batch.y, batch.y_val), strict=True)
    halves = [torch.stack([x[y == c].mean() for c in y.unique()]).mean() for x, y in sides]
    found = a_loss(DFR(data="pooled", penalty=0.0), batch, toy_net())[0]
    torch.testing.assert_close(found, (halves[0] + halves[1]) / 2)


def test_a_class_that_is_not_there_counts_for_nothing():
    loss, y = torch.tensor([1.0, 3.0, 8.0]), torch.tensor([0, 0, 2])
    assert balanced_mean(loss, y, 3) == (2.0 + 8.0) / 2


def three_blocks():
    torch.manual_seed(0)
    layers = (nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    return nn.Sequential(*layers)


@pytest.mark.parametrize(
    ("method", "learns"),
    [
        (Surgical(block="first"), "0"),
        (Surgical(block="middle"), "2"),
        (Surgical(block="last"), "4"),
        (DFR(), "4"),
        (DFR(data="pooled"), "4"),
    ],
    ids=repr,
)
def test_one_block_learns_and_the_others_stay(method, learns):
    module = three_blocks()
    _, before, _ = start(method, module)
    after, _ = descend(method, module, a_batch(), 3)
    for name in before:
        assert torch.equal(before[name], after[name]) == (name.split(".")[0] != learns), name


def test_trials_side_by_side_leave_the_same_layers_alone():
    nets = [three_blocks() for _ in range(2)]
    datas = [toy_tensors(seed=seed) for seed in range(2)]
    config = TrainingConfig(epochs=1, pretrain_epochs=1, batch_size=16, learning_rate=0.05)
    begun = pretrain_trials(nets, datas, config)
    stacked = train_trials(Surgical(), nets, datas, config, pretrained=begun, side_by_side=True)
    for k, (record, first) in enumerate(zip(stacked, begun, strict=True)):
        alone = train(Surgical(), nets[k], datas[k], config, pretrained=first, random_state=k)
        pairs = zip(record.module.parameters(), alone.module.parameters(), strict=True)
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in pairs)
        layers = record.module.state_dict()
        assert torch.equal(layers["4.weight"], first.params["4.weight"])
        assert not torch.equal(layers["0.weight"], first.params["0.weight"])


def blocks_of(module):
    return [
        block[0].rpartition(".")[0] for block in parameter_blocks(FunctionalNet(module).params())
    ]


def test_layers_and_numbered_parts_are_blocks_and_frozen_layers_are_none():
    lenet = build("lenet5", (9, 1, 32, 32), 2, random_state=0)
    assert blocks_of(lenet) == ["conv1", "conv2", "fc1", "fc2", "output"]
    lenet.conv2.requires_grad_(False)
    assert blocks_of(lenet) == ["conv1", "fc1", "fc2", "output"]
    resnet = blocks_of(build("resnet18", (9, 3, 32, 32), 2, random_state=0))
    assert resnet[:3] == ["stem", "norm", "stages.0.0.conv1"]
    assert len(resnet) == 2 + 4 + 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Surgical(block="second"), "first, middle, last"),
        (lambda: DFR(data="train"), "data must be one of val, pooled"),
        (lambda: DFR(penalty=-1), "not be negative"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
