from dataclasses import replace

import torch
from tests.methods.steps import a_batch, losses
from tests.training.toy import toy_net, toy_tensors

from giw.methods import GIWPlus, TrainOnly
from giw.methods.first_block import tuned_first_block
from giw.training import FunctionalNet, TrainingConfig, pretrain_trials, train, train_trials


def test_the_first_block_is_fitted_and_nothing_else_is_touched():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    before = {name: p.detach().clone() for name, p in params.items()}
    tuned = tuned_first_block(
        net, params, batch.x_val, batch.y_val, steps=50, learning_rate=0.05
    )  # fmt: skip
    assert losses(net, tuned, batch)[1].mean() < 0.8 * losses(net, params, batch)[1].mean()
    for name, p in tuned.items():
        assert torch.equal(p, before[name]) == (not name.startswith("0.")), name
        assert torch.equal(params[name], before[name])  # what was handed in is as it was
        assert p.requires_grad


def test_one_step_of_adam_by_hand():
    """The first step of Adam moves every number by the rate, against the sign of its gradient."""
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    gradient = torch.autograd.grad(losses(net, params, batch)[1].mean(), params["0.weight"])[0]
    tuned = tuned_first_block(net, params, batch.x_val, batch.y_val, steps=1, learning_rate=0.01)
    moved = tuned["0.weight"] - params["0.weight"]
    torch.testing.assert_close(moved, -0.01 * gradient.sign(), atol=1e-4, rtol=0)


def test_without_steps_the_start_is_the_pretrained_net():
    params = FunctionalNet(toy_net()).params()
    assert GIWPlus(first_block=0).start(None, params, None) is params
    assert TrainOnly().start(None, params, None) is params


def test_descent_starts_there_alone_and_side_by_side():
    """With a learning rate of nothing, training ends where it starts."""
    nets = [toy_net() for _ in range(2)]
    datas = [toy_tensors(m=9, seed=seed) for seed in range(2)]
    config = TrainingConfig(epochs=1, pretrain_epochs=1, batch_size=16, learning_rate=0.05)
    pretrained = pretrain_trials(nets, datas, config)
    still, method = replace(config, learning_rate=1e-9), GIWPlus(first_block=20, average=0.0)
    stacked = train_trials(method, nets, datas, still, pretrained=pretrained, side_by_side=True)
    for k in range(2):
        alone = train(
            method, nets[k], datas[k], still, pretrained=pretrained[k], random_state=k
        )  # fmt: skip
        first = tuned_first_block(
            FunctionalNet(nets[k]), pretrained[k].params, datas[k].x_val, datas[k].y_val,
            steps=20, learning_rate=5e-3,
        )  # fmt: skip
        for record in (alone, stacked[k]):
            found = dict(record.module.named_parameters())
            for name, p in first.items():
                torch.testing.assert_close(found[name], p, atol=1e-4, rtol=0)
        moved = first["0.weight"] - pretrained[k].params["0.weight"]
        assert moved.abs().max() > 0.01
