"""R-DIW: DIW with a relative ratio."""

import torch
from tests.nets.methods.steps import a_batch, losses
from tests.nets.training.toy import toy_net

from giw.nets.methods import DIW, RDIW
from giw.nets.training import FunctionalNet
from giw.objective import DynamicRelativeWeights


def test_it_is_the_training_loss_weighted_by_the_relative_ratio():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    train_loss, val_loss = losses(net, params, batch)
    for eta in (0.1, 0.5):
        weigh = DynamicRelativeWeights(eta=eta)
        expected = (weigh(train_loss, val_loss) * train_loss).mean()
        torch.testing.assert_close(RDIW(weigh=weigh).loss(net, params, batch)[0], expected)
    assert RDIW().weigh == DynamicRelativeWeights(eta=0.5)


def test_its_weights_are_evener_than_those_of_diw():
    net, batch = FunctionalNet(toy_net()), a_batch()
    relative = RDIW().loss(net, net.params(), batch)[1]["effective_share"]
    matched = DIW().loss(net, net.params(), batch)[1]["effective_share"]
    assert relative > matched
