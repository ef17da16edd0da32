"""What every method promises, and what each one alone does."""

import pytest
import torch
from tests.nets.methods.steps import a_batch, a_loss, learning, losses, start
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
    GIWUnsplit,
    Pooled,
    PretrainVal,
    TrainOnly,
    ValOnly,
    method_named,
)
from giw.nets.training import Batch, Evidence, FunctionalNet, TrainingConfig, train
from giw.objective import DynamicRelativeWeights, DynamicWeights, generalized_risk
from giw.support import SupportSplitter

EVERY = [make() for make in METHODS.values()] + [
    GIW(representation="hidden"),
    DIW(representation="hidden"),
    RDIW(representation="hidden"),
    CCSA(val_share=0.0),
    DANN(val_share=0.5),
    GIWPlus(noise=0.0, copies=1, align=0.0),
]


every_method = pytest.mark.parametrize("method", EVERY, ids=repr)


def gradients(method, net, params, state, batch):
    """Of all that learns, as the run takes them for one trial."""
    leaves = learning(params, state)
    loss = method.loss(net, params, state, batch)[0]
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    zeros = (
        torch.zeros_like(p) if g is None else g for p, g in zip(leaves.values(), found, strict=True)
    )
    return dict(zip(leaves, zeros, strict=True))


def functional_gradients(method, net, params, state, batch):
    """The same through torch.func."""
    parts = state.tensors()
    kept = {name: p.detach() for name, p in parts.items() if not p.requires_grad}

    def loss(p, learnt, batch):
        return method.loss(net, p, state.with_tensors(kept | learnt), batch)[0]

    free = {name: p.detach() for name, p in params.items()}
    learnt = {name: p.detach() for name, p in parts.items() if p.requires_grad}
    of_net, of_state = grad(loss, argnums=(0, 1))(free, learnt, batch)
    return of_net | {f"state.{name}": g for name, g in of_state.items()}


@every_method
def test_trials_stacked_with_vmap_have_the_gradients_of_each_alone(method):
    """The protocol is functional: parameters and batches may carry a leading trial dimension."""
    net = FunctionalNet(toy_net())
    trials = [(*start(method, toy_net(seed), seed)[1:], a_batch(seed)) for seed in range(3)]
    state = trials[0][1]

    def gradient(params, tensors, batch):
        def loss(p):
            return method.loss(net, p, state.with_tensors(tensors), batch)[0]

        return grad(loss)(params)

    def stacked(parts):
        return {k: torch.stack([p[k].detach() for p in parts]) for k in parts[0]}

    together = vmap(gradient)(
        stacked([p for p, _, _ in trials]),
        stacked([s.tensors() for _, s, _ in trials]),
        Batch(*(torch.stack(parts) for parts in zip(*(b for *_, b in trials), strict=True))),
    )
    for t, (params, alone, batch) in enumerate(trials):
        for name, expected in functional_gradients(method, net, params, alone, batch).items():
            if name in together:
                torch.testing.assert_close(together[name][t], expected, rtol=1e-3, atol=1e-4)


@every_method
def test_the_loss_and_its_logs_are_scalars_and_the_state_keeps_its_shape(method):
    net, params, state = start(method, toy_net())
    loss, after, logs = method.loss(net, params, state, a_batch())
    assert loss.shape == ()
    assert all(value.shape == () for value in logs.values())
    shapes = [
        {k: (v.shape, v.requires_grad) for k, v in s.tensors().items()} for s in (state, after)
    ]
    assert shapes[0] == shapes[1]


@every_method
def test_plain_autograd_and_functional_gradients_agree(method):
    """The loop differentiates leaves; stacked trials go through torch.func."""
    begun, batch = start(method, toy_net()), a_batch()
    found, expected = (road(method, *begun, batch) for road in (gradients, functional_gradients))
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        torch.testing.assert_close(found[name], one, rtol=1e-4, atol=1e-6)


def small_convolutional_net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Unflatten(1, (2, 1, 1)), nn.Conv2d(2, 8, 1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2),
        )  # fmt: skip


@every_method
def test_mixed_precision_gives_almost_the_same_loss(method):
    begun, batch = start(method, small_convolutional_net()), a_batch()
    exact = method.loss(*begun, batch)[0]
    with torch.autocast("cpu", torch.bfloat16):
        mixed = method.loss(*begun, batch)[0]
        found = gradients(method, *begun, batch)
    torch.testing.assert_close(mixed, exact, rtol=0.05, atol=0.01)
    assert all(g.isfinite().all() for g in found.values())


@every_method
def test_a_net_with_batch_normalisation_keeps_statistics_of_real_passes_only(method):
    """Every method can train such a net, and a step updates its running statistics once."""
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).train()
    begun = start(method, module)
    assert all(g.isfinite().all() for g in gradients(method, *begun, a_batch()).values())
    assert int(begun[0].buffers()["1.num_batches_tracked"]) == 1


@every_method
def test_a_frozen_layer_stays_out_of_the_way(method):
    module = toy_net()
    module[0].requires_grad_(False)
    found = gradients(method, *start(method, module), a_batch())
    assert not any(name.startswith("0.") for name in found)
    assert all(g.isfinite().all() for g in found.values())


def value(method, batch):
    return a_loss(method, batch, toy_net())[0]


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


@pytest.mark.parametrize(
    ("method", "weigh", "share"),
    [
        (DIW(), DynamicWeights(), 1.0),
        (RDIW(), DynamicRelativeWeights(), 1.0),
        (GIWUnsplit(), DynamicWeights(), 0.5),
        (GIWUnsplit(alpha=0.25), DynamicWeights(), 0.25),
    ],
    ids=repr,
)
def test_weighted_training_losses_and_a_share_of_validation_losses(method, weigh, share):
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    weight = weigh(train_loss, val_loss)
    expected = share * (weight * train_loss).mean() + (1 - share) * val_loss.mean()
    torch.testing.assert_close(value(method, batch), expected)


def test_without_a_split_half_is_diw_and_half_is_validation_alone():
    batch = a_batch()
    halves = (value(DIW(), batch) + value(ValOnly(), batch)) / 2
    torch.testing.assert_close(value(GIWUnsplit(), batch), halves)
    other = batch._replace(inside=1 - batch.inside, alpha=torch.tensor(0.9))
    assert torch.equal(value(GIWUnsplit(), batch), value(GIWUnsplit(), other))


def test_diw_does_not_train_on_validation_points():
    batch = a_batch()
    x_val = batch.x_val.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(DIW(), batch._replace(x_val=x_val)), x_val)
    assert (gradient == 0).all()


def test_hidden_weights_speak_of_labels_too():
    """Two points with the same features and other labels must not share a weight."""
    net = FunctionalNet(toy_net())
    x, y = torch.zeros(20, 2), torch.arange(20) % 2
    one, zero = torch.ones(()), torch.zeros(())
    batch = Batch(x, y, x[:4], torch.zeros(4, dtype=torch.long), torch.ones(4), one, zero)
    class_zero = losses(net, net.params(), batch)[0][y == 0].mean()
    found = value(DIW(representation="hidden"), batch)
    torch.testing.assert_close(found, class_zero, rtol=0.1, atol=0)


def test_relative_weights_are_more_even_than_matched_ones():
    shares = [
        a_loss(method, a_batch(), toy_net())[1]["effective_share"] for method in (RDIW(), DIW())
    ]
    assert shares[0] > shares[1]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="alpha"):
        GIWUnsplit(alpha=share)


def test_giw_is_the_generalized_risk_with_weights_matched_to_inside_points():
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    weight = DynamicWeights()(train_loss, val_loss, batch.inside)
    expected = generalized_risk(train_loss, weight, val_loss, batch.inside, alpha=batch.alpha)
    torch.testing.assert_close(value(GIW(), batch), expected)


def test_giw_is_diw_when_everything_is_inside_and_val_only_when_nothing_is():
    everything = a_batch()._replace(inside=torch.ones(6), alpha=torch.ones(()))
    nothing = a_batch()._replace(inside=torch.zeros(6), alpha=torch.zeros(()))
    torch.testing.assert_close(value(GIW(), everything), value(DIW(), everything))
    torch.testing.assert_close(value(GIW(), nothing), value(ValOnly(), nothing))


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
    for name in ("giw", "giw_plus"):
        assert METHODS[name]().split(evidence()) is not None
    for name in (
        *("giw_unsplit", "diw", "r_diw", "reweight", "mw_net", "ccsa", "dann", "val_only"),
        *("pretrain_val", "pooled", "pooled_plus", "train_only"),
    ):
        assert METHODS[name]().split(evidence()) is None


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
