"""CCSA aligns classes across the two sets; DANN hides where a point came from."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tests.nets.methods.steps import a_batch, a_loss, descend, losses, start
from tests.nets.training.toy import toy_net
from torch.nn.functional import softplus

from giw.nets.methods import CCSA, DANN, TrainOnly
from giw.nets.methods.alignment import reversal_weight, reverse_gradient
from giw.nets.training import FunctionalNet
from giw.objective.terms import contrast


def test_pull_and_push_by_hand():
    """Distances √2, 0 (like) and 1, √1.25 … on four points in the plane."""
    train = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    val = torch.tensor([[0.0, 1.0], [0.5, 0.0]])
    like = torch.tensor([[True, False], [False, False]])
    pull, push = contrast(train, val, like, margin=1.0)
    # like: (0,0)-(0,1), distance 1; unlike: 1/2, √2 (beyond the margin), 1/2
    torch.testing.assert_close(pull, torch.tensor(0.5))
    torch.testing.assert_close(push, torch.tensor((0.125 + 0 + 0.125) / 3))


def test_points_that_coincide_give_no_nan():
    z = torch.ones(3, 2, requires_grad=True)
    for like in (torch.ones(3, 3) > 0, torch.ones(3, 3) < 0):
        pull, push = contrast(z, z.detach(), like, margin=1.0)
        (gradient,) = torch.autograd.grad(pull + push, z)
        assert gradient.isfinite().all()
        assert (pull + push).isfinite()


def test_the_parts_are_mixed_by_gamma():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    train_loss, val_loss = losses(net, params, batch)
    z, z_val = net.with_hidden(params, batch.x)[1], net.with_hidden(params, batch.x_val)[1]
    pull, push = contrast(z, z_val, batch.y[:, None] == batch.y_val, margin=1.3)
    assert min(pull, push) > 0
    aligned, _ = a_loss(CCSA(gamma=0.3, margin=1.3, val_share=0.0), batch, toy_net())
    torch.testing.assert_close(aligned, 0.7 * train_loss.mean() + 0.3 * (pull + push))
    with_val, _ = a_loss(CCSA(gamma=0.0), batch, toy_net())
    torch.testing.assert_close(with_val, (train_loss.mean() + val_loss.mean()) / 2)


def cross_distances(method):
    """Mean distance of like and of unlike pairs, after training."""
    module, batch = toy_net(), a_batch(n=40)
    params, _ = descend(method, module, batch, 200)
    net = FunctionalNet(module)
    distance = torch.cdist(
        net.with_hidden(params, batch.x)[1], net.with_hidden(params, batch.x_val)[1]
    )
    like = batch.y[:, None] == batch.y_val
    return distance[like].mean(), distance[~like].mean()


def test_like_points_of_the_two_sets_come_together_and_unlike_points_part():
    like, unlike = cross_distances(CCSA(val_share=0.0))
    like_without, unlike_without = cross_distances(TrainOnly())
    assert like < 0.2 * like_without
    assert unlike > unlike_without
    assert unlike > 0.9


# DANN


def test_reversal_keeps_values_and_turns_gradients():
    z = torch.tensor([0.3, -1.7], requires_grad=True)
    back = reverse_gradient(z, torch.tensor(0.4))
    assert torch.equal(back, z)
    (gradient,) = torch.autograd.grad((back * torch.tensor([1.0, 2.0])).sum(), z)
    torch.testing.assert_close(gradient, torch.tensor([-0.4, -0.8]))


def test_the_schedule_starts_at_zero_and_ends_near_one():
    weights = reversal_weight(torch.tensor([0.0, 0.1, 1.0]))
    torch.testing.assert_close(weights, torch.tensor([0.0, 0.46211716, 0.9999092]))


@pytest.mark.parametrize("progress", [0.0, 0.3])
def test_one_gradient_moves_both_each_its_own_way(progress):
    net, params, state = start(DANN(), toy_net())
    batch = a_batch()._replace(progress=torch.tensor(progress))
    loss, _, logs = DANN().loss(net, params, state, batch)
    both = list(params.values()), list(state.tensors().values())
    mine = [torch.autograd.grad(loss, leaves, retain_graph=True) for leaves in both]

    domain = (
        softplus(state(net.with_hidden(params, batch.x)[1])).mean()
        + softplus(-state(net.with_hidden(params, batch.x_val)[1])).mean()
    )
    torch.testing.assert_close(logs["domain_loss"], domain)
    classified = losses(net, params, batch)[0].mean()
    sides = classified - reversal_weight(batch.progress) * domain, domain
    for scalar, leaves, found in zip(sides, both, mine, strict=True):
        expected = torch.autograd.grad(scalar, leaves, retain_graph=True)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def two_domains(seed=0):
    """The first feature tells the class in both sets, the second one the set."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(60) % 2

    def draw(second):
        x = torch.stack([4.0 * y - 2, torch.full((60,), second)], dim=1)
        return x + 0.3 * torch.randn(60, 2, generator=generator)

    return a_batch()._replace(x=draw(-1.0), y=y, x_val=draw(1.0), y_val=y, inside=torch.ones(60))


def after_training(method, seed):
    """Gap between the sets within a class, how well a line tells them apart, and the accuracy."""
    module, batch = toy_net(seed), two_domains()
    # plain descent, as in the original: momentum sends the two players round in circles
    params, _ = descend(method, module, batch, 600, optimizer=torch.optim.SGD, learning_rate=0.1)
    net = FunctionalNet(module)
    z, z_val = (net.with_hidden(params, x)[1] for x in (batch.x, batch.x_val))
    gap = sum((z[batch.y == c].mean(0) - z_val[batch.y == c].mean(0)).norm() for c in (0, 1)) / 2
    both, domain = torch.cat([z, z_val]), torch.arange(120) >= 60
    told = LogisticRegression().fit(both, domain).score(both, domain)
    return float(gap), told, float((net(params, batch.x).argmax(1) == batch.y).float().mean())


@pytest.mark.parametrize("seed", range(3))
def test_features_become_harder_to_tell_apart_by_domain(seed):
    gap, told, correct = after_training(DANN(), seed)
    gap_without, told_without, _ = after_training(DANN(strength=0.0), seed)
    assert gap < 0.3 * gap_without
    assert told < 0.8 < 0.95 < told_without
    assert correct == 1.0


def test_labels_of_validation_points_are_not_looked_at_unless_asked():
    batch = a_batch()
    relabelled = batch._replace(y_val=1 - batch.y_val)
    for method, same in [(DANN(), True), (DANN(val_share=0.5), False)]:
        one, other = (a_loss(method, b, toy_net())[0] for b in (batch, relabelled))
        assert torch.equal(one, other) is same


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (CCSA, {"gamma": 1.5}),
        (CCSA, {"gamma": float("nan")}),
        (CCSA, {"margin": 0.0}),
        (DANN, {"strength": -1.0}),
        (DANN, {"learning_rate": 0.0}),
    ],
)
def test_settings_without_a_meaning_are_refused(make, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        make(**setting)
