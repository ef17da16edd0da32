"""Methods that differ by what is averaged."""

import torch
from tests.nets.methods.steps import a_batch, a_loss, losses
from tests.nets.training.toy import toy_net

from giw.nets.methods import Pooled, PretrainVal, TrainOnly, ValOnly
from giw.nets.training import FunctionalNet


def test_the_simple_losses_by_hand():
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    for method, expected in [
        (ValOnly(), val_loss.mean()),
        (PretrainVal(), val_loss.mean()),
        (TrainOnly(), train_loss.mean()),
        (Pooled(), (train_loss.mean() + val_loss.mean()) / 2),
    ]:
        torch.testing.assert_close(a_loss(method, batch, toy_net())[0], expected)
