import pytest
import torch
from tests.nets.methods.steps import a_batch, descend, losses, start
from tests.nets.training.toy import toy_tensors
from torch import nn

from giw.nets.methods import Surgical
from giw.nets.training import FunctionalNet, TrainingConfig, pretrain_trials, train, train_trials


def three_blocks():
    torch.manual_seed(0)
    layers = (nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    return nn.Sequential(*layers)


@pytest.mark.parametrize(("block", "learns"), [("first", "0"), ("middle", "2"), ("last", "4")])
def test_one_block_learns_and_the_others_stay(block, learns):
    module, method = three_blocks(), Surgical(block=block)
    before, after = start(method, module), descend(method, module, a_batch(), 3)
    for name in before:
        assert torch.equal(before[name], after[name]) == (name.split(".")[0] != learns), name


def test_trials_side_by_side_leave_the_same_layers_alone():
    nets = [three_blocks() for _ in range(2)]
    datas = [toy_tensors(seed=seed) for seed in range(2)]
    config = TrainingConfig(epochs=1, pretrain_epochs=1, batch_size=16, learning_rate=0.05)
    start = pretrain_trials(nets, datas, config)
    stacked = train_trials(Surgical(), nets, datas, config, pretrained=start, side_by_side=True)
    for k, (record, first) in enumerate(zip(stacked, start, strict=True)):
        alone = train(Surgical(), nets[k], datas[k], config, pretrained=first, random_state=k)
        pairs = zip(record.module.parameters(), alone.module.parameters(), strict=True)
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in pairs)
        layers = record.module.state_dict()
        assert torch.equal(layers["4.weight"], first.params["4.weight"])
        assert not torch.equal(layers["0.weight"], first.params["0.weight"])


def test_it_descends_the_validation_loss():
    net, batch = FunctionalNet(three_blocks()), a_batch()
    _, val_loss = losses(net, net.params(), batch)
    torch.testing.assert_close(Surgical().loss(net, net.params(), batch)[0], val_loss.mean())


def test_unknown_blocks_are_refused():
    with pytest.raises(ValueError, match="first, middle, last"):
        Surgical(block="second")
