"""What every method promises, and what each one alone does."""

import pytest
import torch
from tests.nets.methods.steps import a_batch, losses, start
from tests.nets.training.toy import toy_net, toy_tensors
from torch import nn
from torch.func import grad, vmap

from giw.nets.methods import (
    CCSA,
    DANN,
    DIW,
    GIW,
    METHODS,
    RDIW,
    GIWPlus,
    Pooled,
    PretrainVal,
    TrainOnly,
    ValOnly,
    method_named,
)
from giw.nets.training import OWN, Batch, Evidence, FunctionalNet, TrainingConfig, train
from giw.objective import DynamicWeights, generalized_risk
from giw.support import SupportSplitter

EVERY = [make() for make in METHODS.values()] + [
    GIW(representation="hidden"),
    DIW(representation="hidden"),
    RDIW(representation="hidden"),
    CCSA(classify_val=False),
    DANN(classify_val=True),
    GIWPlus(class_shares=False, noise=0.0, copies=1, align=0.0),
]


@pytest.mark.parametrize("method", EVERY, ids=repr)
def test_trials_stacked_with_vmap_have_the_gradients_of_each_alone(method):
    """The protocol is functional: parameters and batches may carry a leading trial dimension."""
    net = FunctionalNet(toy_net())
    trials = [
        ({k: v.detach() for k, v in start(method, toy_net(seed), seed).items()}, a_batch(seed))
        for seed in range(3)
    ]
    gradient = grad(lambda params, batch: method.loss(net, params, batch)[0])
    stacked_params = {k: torch.stack([p[k] for p, _ in trials]) for k in trials[0][0]}
    stacked_batch = Batch(
        *(torch.stack(parts) for parts in zip(*(b for _, b in trials), strict=True))
    )
    together = vmap(gradient)(stacked_params, stacked_batch)
    for t, (params, batch) in enumerate(trials):
        for name, alone in gradient(params, batch).items():
            torch.testing.assert_close(together[name][t], alone, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", EVERY, ids=repr)
def test_the_loss_is_a_scalar_and_the_logs_are_scalars(method):
    net = FunctionalNet(toy_net())
    loss, logs = method.loss(net, start(method, toy_net()), a_batch())
    assert loss.shape == ()
    assert all(value.shape == () for name, value in logs.items() if not name.startswith(OWN))


@pytest.mark.parametrize("method", EVERY, ids=repr)
def test_plain_autograd_and_functional_gradients_agree(method):
    """The loop differentiates leaves; stacked trials go through torch.func."""
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = start(method, toy_net())
    loss = method.loss(net, params, batch)[0]
    by_autograd = torch.autograd.grad(loss, list(params.values()), allow_unused=True)
    free = {name: p.detach() for name, p in params.items()}
    by_func = grad(lambda p: method.loss(net, p, batch)[0])(free)
    for leaf, functional in zip(by_autograd, by_func.values(), strict=True):
        expected = torch.zeros_like(functional) if leaf is None else leaf
        torch.testing.assert_close(functional, expected, rtol=1e-4, atol=1e-6)


def small_convolutional_net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Unflatten(1, (2, 1, 1)), nn.Conv2d(2, 8, 1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2),
        )  # fmt: skip


@pytest.mark.parametrize("method", EVERY, ids=repr)
def test_mixed_precision_gives_almost_the_same_loss(method):
    module = small_convolutional_net()
    net, batch = FunctionalNet(module), a_batch()
    params = start(method, module)
    exact, _ = method.loss(net, params, batch)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, _ = method.loss(net, params, batch)
    torch.testing.assert_close(mixed, exact, rtol=0.05, atol=0.01)
    gradients = torch.autograd.grad(mixed, list(params.values()), allow_unused=True)
    assert all(g is None or g.isfinite().all() for g in gradients)


@pytest.mark.parametrize("method", EVERY, ids=repr)
def test_a_net_with_batch_normalisation_keeps_statistics_of_real_passes_only(method):
    """Every method can train such a net, and a step updates its running statistics once."""
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).train()
    net = FunctionalNet(module)
    params = start(method, module)
    loss, _ = method.loss(net, params, a_batch())
    gradients = torch.autograd.grad(loss, list(params.values()), allow_unused=True)
    assert all(g is None or g.isfinite().all() for g in gradients)
    assert int(net.buffers()["1.num_batches_tracked"]) == 1


@pytest.mark.parametrize("method", EVERY, ids=repr)
def test_a_frozen_layer_stays_out_of_the_way(method):
    module = toy_net()
    module[0].requires_grad_(False)
    params = start(method, module)
    loss, _ = method.loss(FunctionalNet(module), params, a_batch())
    trained = [p for p in params.values() if p.requires_grad]
    assert all(
        g is None or g.isfinite().all()
        for g in torch.autograd.grad(loss, trained, allow_unused=True)
    )


def test_the_simple_losses_by_hand():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    train_loss, val_loss = losses(net, params, batch)
    for method, expected in [
        (ValOnly(), val_loss.mean()),
        (PretrainVal(), val_loss.mean()),
        (TrainOnly(), train_loss.mean()),
        (Pooled(), (train_loss.mean() + val_loss.mean()) / 2),
    ]:
        torch.testing.assert_close(method.loss(net, params, batch)[0], expected)


def test_giw_is_the_generalized_risk_with_weights_matched_to_inside_points():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    train_loss, val_loss = losses(net, params, batch)
    weight = DynamicWeights()(train_loss, val_loss, batch.inside)
    expected = generalized_risk(train_loss, weight, val_loss, batch.inside, alpha=batch.alpha)
    torch.testing.assert_close(GIW().loss(net, params, batch)[0], expected)


def test_giw_is_diw_when_everything_is_inside_and_val_only_when_nothing_is():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    everything = batch._replace(inside=torch.ones(6), alpha=torch.ones(()))
    nothing = batch._replace(inside=torch.zeros(6), alpha=torch.zeros(()))
    torch.testing.assert_close(
        GIW().loss(net, params, everything)[0], DIW().loss(net, params, everything)[0]
    )
    torch.testing.assert_close(
        GIW().loss(net, params, nothing)[0], ValOnly().loss(net, params, nothing)[0]
    )


def test_diw_does_not_train_on_validation_points():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    x_val = batch.x_val.clone().requires_grad_()
    loss, _ = DIW().loss(net, params, batch._replace(x_val=x_val))
    (gradient,) = torch.autograd.grad(loss, x_val)
    assert (gradient == 0).all()


def test_hidden_weights_speak_of_labels_too():
    """Two points with the same features and other labels must not share a weight."""
    net = FunctionalNet(toy_net())
    x = torch.zeros(20, 2)
    y = torch.arange(20) % 2
    batch = Batch(
        x, y, x[:4], torch.zeros(4, dtype=torch.long), torch.ones(4), torch.ones(()),
        torch.zeros(()),
    )  # fmt: skip
    params = net.params()
    loss, _ = DIW(representation="hidden").loss(net, params, batch)
    class_zero = losses(net, params, batch)[0][y == 0].mean()
    torch.testing.assert_close(loss, class_zero, rtol=0.1, atol=0)


def evidence(split_seed=0):
    data = toy_tensors(n=200, m=30)
    seen = torch.arange(200) % 5 > 0
    return Evidence(
        data.x_train, data.y_train, data.x_val, data.y_val, seen, lambda x: 10 * x, split_seed
    )


@pytest.mark.parametrize("split_on", ["auto", "input", "hidden"])
def test_giw_finds_the_blob_that_training_does_not_have(split_on):
    by_level = GIW(split_on=split_on).split(evidence())
    truth = torch.arange(30) % 3 < 2
    assert not torch.as_tensor(by_level.inside)[~truth].any()
    assert torch.as_tensor(by_level.inside)[truth].float().mean() > 0.7

    soft = GIW(split_on=split_on, soft=True).split(evidence())
    assert soft.alpha == pytest.approx(float(soft.posterior.mean()))
    assert soft.posterior[~truth].max() < 0.5


def test_only_giw_splits():
    assert [m for m in METHODS if METHODS[m]().split(evidence()) is not None] == ["giw", "giw_plus"]


def test_a_splitter_can_be_handed_in():
    split = GIW(splitter=SupportSplitter(scorer="osvm")).split(evidence())
    assert len(split.inside) == 30


def test_a_blob_outside_is_learnt_by_giw_and_not_by_diw():
    """The third blob has class 0 but lies where training alone would not say so."""
    config = TrainingConfig(epochs=30, pretrain_epochs=10, batch_size=32, learning_rate=0.01)
    data = toy_tensors(n=200, m=12, n_test=300)
    data = type(data)(
        data.x_train, data.y_train, data.x_val + 0, data.y_val, data.x_test, data.y_test
    )
    shifted = []
    for x in (data.x_train, data.x_val, data.x_test):
        far = x[:, 1] > 3
        shifted.append(torch.where(far[:, None], x + torch.tensor([6.0, 0.0]), x))
    data = type(data)(shifted[0], data.y_train, shifted[1], data.y_val, shifted[2], data.y_test)
    ours = train(GIW(split_on="input"), toy_net(), data, config).final_accuracy()
    theirs = train(DIW(), toy_net(), data, config).final_accuracy()
    assert ours > 0.95
    assert theirs < 0.8


@pytest.mark.parametrize("make", [GIW, DIW])
def test_an_unknown_representation_is_refused(make):
    with pytest.raises(ValueError, match="loss, hidden"):
        make(representation="pixels")


def test_an_unknown_place_to_split_is_refused():
    with pytest.raises(ValueError, match="auto, hidden, input"):
        GIW(split_on="loss")


def test_methods_go_by_name():
    assert method_named("giw", representation="hidden") == GIW(representation="hidden")
    with pytest.raises(ValueError, match="known are giw, diw"):
        method_named("gwi")
