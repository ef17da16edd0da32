from dataclasses import dataclass, replace

import pytest
import torch
from tests.nets.methods.steps import a_batch, a_loss, losses, start
from tests.nets.training.toy import toy_net

from giw.nets.methods import GIW, GIWPlus, Pooled, PooledPlus, method_named
from giw.nets.training import Batch, Evidence, FunctionalNet
from giw.objective.terms import contrast

PLAIN = {"copies": 1, "noise": 0.0, "align": 0.0}


@dataclass(frozen=True)
class NoShares(GIWPlus):
    """GIW+ whose weights do not follow the class shares of validation labels."""

    def state(self, evidence, split):
        state = super().state(evidence, split)
        return replace(state, class_ratio=torch.ones_like(state.class_ratio))


def value(method, batch, module=None):
    module = module or toy_net()
    return a_loss(method, batch, module)[0]


def test_pooled_without_help_is_pooled():
    torch.testing.assert_close(
        value(PooledPlus(copies=1, noise=0, align=0), a_batch()),
        value(Pooled(), a_batch()),
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_training_data_carry_their_share_with_weights_matched_to_points_inside(share):
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    weight = GIW().weigh(train_loss, val_loss, batch.inside)
    expected = share * (weight * train_loss).mean() + (1 - share) * val_loss.mean()
    torch.testing.assert_close(value(NoShares(**PLAIN, train_share=share), batch), expected)


def copies(method, batch):
    return method._copies(start(method, toy_net())[2].phase, batch.x, batch.x_val)[0]


def test_no_more_copies_than_training_points_and_the_first_as_it_is():
    method, batch = GIWPlus(copies=4), a_batch(n=24, m=6)
    found = copies(method, batch)
    assert len(found) == 24
    assert torch.equal(found[:6], batch.x_val)
    assert (found[6:] != batch.x_val.repeat(3, 1)).any(1).all()
    assert len(copies(method, a_batch(n=13, m=6))) == 12
    one = a_batch(n=7, m=6)
    assert (copies(method, one) != one.x_val).any(1).all()  # nothing else


def test_alignment_is_that_of_pairs_counted_by_the_weight_of_their_training_point():
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    method = NoShares(**PLAIN | {"align": 0.7})
    weight = method.weigh(train_loss, val_loss, batch.inside)
    z, z_val = (net.with_hidden(net.params(), x)[1] for x in (batch.x, batch.x_val))
    like = batch.y[:, None] == batch.y_val
    pull, push = contrast(z, z_val, like, margin=1.0, weight=weight[:, None].expand(24, 6))
    assert min(pull, push) > 0
    term = value(method, batch) - value(replace(method, align=0.0), batch)
    torch.testing.assert_close(term, 0.7 * (pull + push), atol=1e-5, rtol=1e-4)


def test_labels_that_weigh_nothing_pull_nothing():
    weight = torch.tensor([[1.0], [0.0], [2.0]]).expand(3, 6)
    z, other = (torch.rand(size, 4).double() for size in (3, 6))
    like = torch.rand(3, 6) < 0.5
    found = contrast(z, other, like, margin=1.0, weight=weight.double())
    repeated = torch.tensor([0, 2, 2])  # a weight of two is the point twice
    expected = contrast(z[repeated], other, like[repeated], margin=1.0)
    torch.testing.assert_close(found, expected)


def test_images_are_moved_and_tables_are_jittered():
    method, x, x_val = GIWPlus(), torch.rand(12, 1, 16, 16), torch.rand(3, 1, 16, 16)
    batch = a_batch()._replace(x=x, x_val=x_val)
    moved = copies(method, batch)
    still = x_val.repeat(4, 1, 1, 1)
    assert (moved[3:] - still[3:]).abs().amax((1, 2, 3)).min() > 0.01
    fewer = batch._replace(x=x[:5])  # no room for a second round
    assert torch.equal(copies(method, fewer), x_val)
    six = batch._replace(x=x[:6])
    assert len(copies(method, six)) == 6
    assert not torch.equal(copies(replace(method, copies=1), six), x_val)
    for form in (lambda v: v.flatten(1), lambda v: v[..., :15], lambda v: v[..., :15, :15]):
        table = batch._replace(x=form(x), x_val=form(x_val))
        noisy = copies(method, table) - form(still)
        assert 0 < noisy[3:].abs().max() < 0.1  # tables, and images not square or too small


def noisy_evidence(share=0.4, n=2000, m=30):
    """A net that is right about x; a share of training labels is flipped, validation is clean."""
    generator = torch.Generator().manual_seed(0)
    x, x_val = torch.randn(n, 1, generator=generator), torch.randn(m, 1, generator=generator)
    flipped = torch.rand(n, generator=generator) < share
    y = (x[:, 0] > 0) ^ flipped
    seen = torch.arange(n) % 2 > 0
    evidence = Evidence(
        x, y.long(), x_val, (x_val[:, 0] > 0).long(), seen, lambda z: z, 0,
        logits=lambda z: 2 * torch.cat([-z, z], 1),
    )  # fmt: skip
    return evidence, flipped


@pytest.mark.parametrize("rare", [False, True])
def test_matched_weights_are_those_of_a_batch_with_the_shares_of_classes(rare):
    evidence, _ = noisy_evidence(n=600, m=12)
    few = evidence.y_train == 0
    keep = ~few | (torch.arange(600) % 10 == 0) if rare else torch.ones(600, dtype=torch.bool)
    evidence = replace(
        evidence, x_train=evidence.x_train[keep], y_train=evidence.y_train[keep],
        seen=evidence.seen[keep], y_val=torch.arange(12) % 2,
    )  # fmt: skip
    batch = Batch(
        evidence.x_train, evidence.y_train, evidence.x_val, evidence.y_val,
        torch.ones(12), torch.ones(()), torch.zeros(()),
    )  # fmt: skip
    sides = (evidence.x_train, evidence.y_train), (evidence.x_val, evidence.y_val)
    own = [
        torch.nn.functional.cross_entropy(evidence.logits(x), y, reduction="none") for x, y in sides
    ]
    method = GIWPlus()
    state = method.state(evidence, None)
    found = method._weights(state, batch, *own)
    plain = method.weigh(*own, batch.inside)
    mean = torch.stack([plain[evidence.y_train == c].mean() for c in range(2)])
    expected = plain * (state.class_ratio / mean)[evidence.y_train]
    torch.testing.assert_close(found, expected / expected.mean() if rare else plain)
    # each class has the share that the ratio asks for
    share = torch.stack([found[evidence.y_train == c].sum() for c in range(2)]) / len(found)
    asked = state.class_ratio * torch.bincount(evidence.y_train) / len(found)
    if rare:
        torch.testing.assert_close(share, asked / asked.sum())
    # classes that differ by no more than chance change nothing
    assert torch.allclose(found, plain, atol=1e-5) == (not rare)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train_share": 1.5}, "train_share must lie between 0 and 1"),
        ({"align": -0.1}, "align must not be negative"),
        ({"copies": 0}, "copies must be at least 1"),
        ({"noise": -1.0}, "noise must not be negative"),
        ({"split_on": "loss"}, "auto, hidden, input"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        method_named("giw_plus", **settings)
