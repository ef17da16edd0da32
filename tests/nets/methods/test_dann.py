"""DANN: features that hide where a point came from."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tests.nets.methods.steps import a_batch, descend, losses, start
from tests.nets.training.toy import toy_net
from torch.nn.functional import softplus

from giw.nets.methods import DANN
from giw.nets.methods.dann import reversal_weight, reverse_gradient
from giw.nets.methods.perceptron import perceptron
from giw.nets.training import OWN, FunctionalNet


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
    method, net = DANN(), FunctionalNet(toy_net())
    params = start(method, toy_net())
    batch = a_batch()._replace(progress=torch.tensor(progress))
    loss, logs = method.loss(net, params, batch)
    mine = dict(zip(params, torch.autograd.grad(loss, list(params.values())), strict=True))

    domain = (
        softplus(perceptron(params, net.with_hidden(params, batch.x)[1])).mean()
        + softplus(-perceptron(params, net.with_hidden(params, batch.x_val)[1])).mean()
    )
    torch.testing.assert_close(logs["domain_loss"], domain)
    classified = losses(net, params, batch)[0].mean()
    weight = reversal_weight(batch.progress)
    for scalar, chosen in [
        (domain, [name for name in params if name.startswith(OWN)]),
        (classified - weight * domain, [name for name in params if not name.startswith(OWN)]),
    ]:
        expected = torch.autograd.grad(scalar, [params[k] for k in chosen], retain_graph=True)
        for name, gradient in zip(chosen, expected, strict=True):
            torch.testing.assert_close(mine[name], gradient, rtol=1e-4, atol=1e-6)


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
    params = descend(method, module, batch, 600, optimizer=torch.optim.SGD, learning_rate=0.1)
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
    net, batch = FunctionalNet(toy_net()), a_batch()
    relabelled = batch._replace(y_val=1 - batch.y_val)
    for method, same in [(DANN(), True), (DANN(classify_val=True), False)]:
        params = start(method, toy_net())
        one, other = (method.loss(net, params, b)[0] for b in (batch, relabelled))
        assert torch.equal(one, other) is same


@pytest.mark.parametrize("setting", [{"strength": -1.0}, {"width": 0}, {"learning_rate": 0.0}])
def test_settings_without_a_meaning_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        DANN(**setting)
