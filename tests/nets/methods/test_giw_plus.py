from dataclasses import replace

import pytest
import torch
from tests.nets.methods.steps import a_batch, losses, start
from tests.nets.training.toy import toy_net, toy_tensors

from giw.nets.methods import GIW, GIWPlus, Pooled, PooledPlus, method_named
from giw.nets.methods.ccsa import contrast
from giw.nets.methods.giw_plus import (
    ALPHA,
    CLASSES,
    COUNTS,
    FIRST_COUNTS,
    HANDOVER,
    HELD,
    HISTOGRAM,
    MOST_HELD,
    MOVED,
    STEP,
    steady_weights,
)
from giw.nets.training import AVERAGE, Batch, Evidence, FunctionalNet, TrainingConfig, train
from giw.support import SupportSplitter
from giw.weights.loss_histogram import BINS

PLAIN = {
    "copies": 1,
    "noise": 0.0,
    "average": 0.0,
    "soft": False,
    "handover": 1.0,
    "align": 0.0,
    "hold_out": False,
}


def value(method, batch, module=None):
    module = module or toy_net()
    return method.loss(FunctionalNet(module), start(method, module), batch)[0]


def test_without_its_parts_it_is_giw():
    batch = a_batch()
    torch.testing.assert_close(value(GIWPlus(weights="batch", **PLAIN), batch), value(GIW(), batch))


def test_pooled_without_help_is_pooled():
    torch.testing.assert_close(
        value(PooledPlus(copies=1, noise=0, average=0, align=0), a_batch()),
        value(Pooled(), a_batch()),
    )


@pytest.mark.parametrize("handover", [0.0, 0.3, 1.0])
def test_the_handover_moves_risk_from_training_to_validation_points(handover):
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    expected = (
        handover * batch.alpha * train_loss.mean()
        + ((1 - handover * batch.inside) * val_loss).mean()
    )
    method = GIWPlus(weights="uniform", **PLAIN | {"handover": handover})
    torch.testing.assert_close(value(method, batch), expected)


def test_no_more_copies_than_training_points_and_the_first_as_it_is():
    method, module = GIWPlus(copies=4), toy_net()
    params, batch = start(method, module), a_batch(n=24, m=6)
    copies = method._copies(params, batch.x, batch.x_val).x
    assert len(copies) == 24
    assert torch.equal(copies[:6], batch.x_val)
    assert (copies[6:] != batch.x_val.repeat(3, 1)).any(1).all()
    few = a_batch(n=13, m=6)
    assert len(method._copies(params, few.x, few.x_val).x) == 12
    one = a_batch(n=7, m=6)
    assert (method._copies(params, one.x, one.x_val).x != one.x_val).any(1).all()  # nothing else


def test_alignment_is_that_of_pairs_counted_by_weight_and_by_what_is_outside():
    """One pair of points left to count: the term is the pull or the push of that pair."""
    net, batch = FunctionalNet(toy_net()), a_batch()
    _, hidden = net.with_hidden(net.params(), torch.cat([batch.x, batch.x_val]))
    method = GIWPlus(weights="uniform", **PLAIN | {"align": 0.5, "handover": 1.0})
    outside = torch.ones(6)
    outside[2] = 0.0  # all but this one are inside
    batch = batch._replace(inside=outside, x=batch.x[:1], y=batch.y[:1])
    square = (hidden[0] - hidden[24 + 2]).square().sum()
    for label in (0, 1):
        shown = batch._replace(y=torch.tensor([label]), y_val=torch.zeros(6, dtype=torch.long))
        term = value(method, shown) - value(replace(method, align=0.0), shown)
        expected = square / 2 if label == 0 else (1 - square.sqrt()).clamp(min=0) ** 2 / 2
        torch.testing.assert_close(term, 0.5 * expected, atol=1e-5, rtol=1e-4)
    inside = shown._replace(inside=torch.ones(6))
    assert value(method, inside) == value(replace(method, align=0.0), inside)


def test_labels_that_weigh_nothing_pull_nothing():
    weight = torch.tensor([[1.0], [0.0], [2.0]]).expand(3, 6)
    z, other = (torch.rand(size, 4).double() for size in (3, 6))
    like = torch.rand(3, 6) < 0.5
    found = contrast(z, other, like, margin=1.0, weight=weight.double())
    repeated = torch.tensor([0, 2, 2])  # a weight of two is the point twice
    expected = contrast(z[repeated], other, like[repeated], margin=1.0)
    torch.testing.assert_close(found, expected)


def test_a_net_that_training_data_do_not_teach_is_not_aligned_with_them():
    batch = a_batch()
    method = GIWPlus(**PLAIN | {"align": 1.0, "handover": 0.0})
    assert value(method, batch) == value(replace(method, align=0.0), batch)


def test_images_are_moved_and_tables_are_jittered():
    method = GIWPlus()
    still_params = start(method, toy_net())
    params = still_params | {MOVED: torch.ones(())}
    x, x_val = torch.rand(12, 1, 16, 16), torch.rand(3, 1, 16, 16)
    moved = method._copies(params, x, x_val).x
    still = x_val.repeat(4, 1, 1, 1)
    assert (moved[3:] - still[3:]).abs().amax((1, 2, 3)).min() > 0.01
    assert torch.equal(method._copies(still_params, x, x_val).x, x_val)  # nothing to copy for
    fewer = x[:5]  # no room for a second round
    assert torch.equal(method._copies(params, fewer, x_val).x, x_val)
    assert len(method._copies(params, x[:6], x_val).x) == 6
    assert not torch.equal(replace(method, copies=1)._copies(params, x[:6], x_val).x, x_val)
    table, table_val = x.flatten(1), x_val.flatten(1)
    noisy = method._copies(still_params, table, table_val).x - table_val.repeat(4, 1)
    assert 0 < noisy[3:].abs().max() < 0.1


def evidence_of_images(augmented):
    """The noisy problem with images in place of numbers."""
    evidence, _ = noisy_evidence(n=200)
    images = evidence.x_train.view(-1, 1, 1, 1).expand(-1, 1, 16, 16)
    return replace(
        evidence, x_train=images, x_val=images[:5], y_val=evidence.y_train[:5],
        augmented=augmented, logits=lambda z: z[:, 0, 0, :2],
    )  # fmt: skip


@pytest.mark.parametrize("augmented", [True, False])
def test_copies_are_moved_where_training_moves_images(augmented):
    shown = evidence_of_images(augmented)
    assert (MOVED in GIWPlus().state(shown, None, {})) == augmented
    assert MOVED not in GIWPlus(augment=False).state(shown, None, {})


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


def test_weights_of_flipped_labels_are_small_and_close_to_the_truth():
    evidence, flipped = noisy_evidence()
    net = FunctionalNet(torch.nn.Linear(1, 2, bias=False))
    params = {"weight": torch.tensor([[-2.0], [2.0]])}
    method = GIWPlus(weights="steady")
    params |= method.state(evidence, None, params)
    batch = Batch(
        evidence.x_train, evidence.y_train, evidence.x_val, evidence.y_val,
        torch.ones(30), torch.ones(()), torch.zeros(()),
    )  # fmt: skip
    losses_ = torch.nn.functional.cross_entropy(net(params, batch.x), batch.y, reduction="none")
    weight, state = method._weigh(params, batch, 2, losses_, losses_[:30])
    truth = torch.where(flipped, 0.0, 1 / 0.6)
    assert weight.mean() == pytest.approx(1, abs=0.02)
    assert weight[flipped].mean() < 0.25
    assert (weight - truth).square().mean() < 0.3 * (1 - truth).square().mean()
    assert state.keys() == {HISTOGRAM, COUNTS}
    assert state[HISTOGRAM].sum() == pytest.approx(1, abs=1e-5)


def test_steady_weights_by_hand():
    """Class ratio times mode ratio; the mean over the histogram is one."""
    histogram = torch.zeros(2, BINS + 1)
    histogram[0, 0], histogram[0, BINS], histogram[1, 10] = 0.4, 0.4, 0.2
    modes = torch.tensor([1.5, 0.2])
    table = steady_weights(histogram, torch.tensor([0.5, 3.0]), modes, upper=50)
    raw = torch.tensor([0.5 * 1.5, 0.5 * 0.2, 3.0 * 1.5])  # low, high and low
    mean = 0.4 * raw[0] + 0.4 * raw[1] + 0.2 * raw[2]
    found = torch.stack([table[0, 0], table[0, BINS], table[1, 10]])
    torch.testing.assert_close(found, raw / mean)
    assert steady_weights(histogram, torch.tensor([0.5, 3.0]), modes, upper=2).max() == 2


def test_the_state_starts_at_the_pretrained_net_and_moves_with_it():
    method, data = GIWPlus(), toy_tensors(m=9)
    config = TrainingConfig(epochs=2, pretrain_epochs=1, batch_size=16, learning_rate=0.05)
    averaged = train(method, toy_net(), data, config)
    last = train(replace(method, average=0.0), toy_net(), data, config)
    assert averaged.history["loss"] == pytest.approx(last.history["loss"])  # the same descent
    assert averaged.history["test_accuracy"].shape == (2,)
    pairs = zip(averaged.module.parameters(), last.module.parameters(), strict=True)
    assert any((a - b).abs().max() > 1e-3 for a, b in pairs)


def test_every_step_moves_state_and_nothing_reads_the_future():
    method, module, batch = GIWPlus(weights="steady"), toy_net(), a_batch()
    params = start(method, module)
    _, logs = method.loss(FunctionalNet(module), params, batch)
    assert logs[STEP] == params[STEP] + 1
    for name in (AVERAGE + "0.weight", HISTOGRAM, COUNTS):
        assert logs[name].shape == params[name].shape
        assert not logs[name].requires_grad
    assert CLASSES not in logs
    assert FIRST_COUNTS not in logs  # estimated once, on a net that has seen neither side


def test_points_surely_inside_are_held_out_and_others_keep_a_share_of_their_risk():
    batch = a_batch()._replace(inside=torch.tensor([0.95, 0.5, 0.4, 0.0, 1.0, 0.1]))
    method = GIWPlus(handover=0.8)
    params = start(method, toy_net())
    torch.testing.assert_close(
        method._inside(params, batch), torch.tensor([1.0, 0.4, 0.32, 0.0, 1.0, 0.08])
    )
    soft = replace(method, hold_out=False)
    torch.testing.assert_close(soft._inside(start(soft, toy_net()), batch), 0.8 * batch.inside)


@pytest.mark.parametrize(("weights", "sure", "held"), [
    ("matched", MOST_HELD, True), ("matched", MOST_HELD + 1, False), ("steady", 500, True),
])  # fmt: skip
def test_many_points_surely_inside_are_trained_on_too(weights, sure, held):
    """Unless steady weights need them as witnesses."""
    method = GIWPlus(weights=weights, handover=0.8)
    membership = torch.cat([torch.full((sure,), 0.95), torch.full((900,), 0.5)])
    params = {HANDOVER: torch.tensor(0.8), HELD: method._holds(membership).float()}
    found = method._handed_over(membership, params)
    assert torch.all(found[:sure] == (1.0 if held else torch.tensor(0.8) * 0.95))
    torch.testing.assert_close(found[sure:], torch.full((900,), 0.4))


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
    method = GIWPlus(weights="matched", upper=1000)
    state = method.state(evidence, None, {})
    found, _ = method._weigh(state, batch, 2, *own)
    plain, _ = GIWPlus(weights="batch")._weigh({}, batch, 2, *own)
    mean = torch.stack([plain[evidence.y_train == c].mean() for c in range(2)])
    expected = plain * (state[CLASSES] / mean)[evidence.y_train]
    torch.testing.assert_close(found, expected / expected.mean() if rare else plain)
    # each class has the share that the ratio asks for
    share = torch.stack([found[evidence.y_train == c].sum() for c in range(2)]) / len(found)
    asked = state[CLASSES] * torch.bincount(evidence.y_train) / len(found)
    if rare:
        torch.testing.assert_close(share, asked / asked.sum())
    # classes that differ by no more than chance change nothing
    assert torch.allclose(found, plain, atol=1e-5) == (not rare)
    if rare:
        assert replace(method, upper=1.5)._weigh(state, batch, 2, *own)[0].max() <= 1.5


def test_trust_shrinks_the_ratio_of_losses_and_leaves_the_shares_of_classes():
    generator = torch.Generator().manual_seed(0)
    batch, module = a_batch(), toy_net()
    losses_ = [torch.rand(size, generator=generator) for size in (24, 6)]
    found = {}
    for trust in (0.0, 0.5, 1.0):
        method = GIWPlus(trust=trust)
        params = start(method, module) | {CLASSES: torch.ones(2)}
        found[trust] = method._weigh(params, batch, 2, *losses_)[0]
    assert found[1.0].std() > 0.01
    torch.testing.assert_close(found[0.5], (1 + found[1.0]) / 2)
    assert torch.equal(found[0.0], torch.ones(24))
    params = start(GIWPlus(trust=0.0), module) | {CLASSES: torch.tensor([0.5, 2.0])}
    rare = GIWPlus(trust=0.0)._weigh(params, batch, 2, *losses_)[0]
    ratio = rare[batch.y == 1].mean() / rare[batch.y == 0].mean()
    assert ratio == pytest.approx(4)


def test_alpha_is_the_mean_of_the_membership_in_use():
    evidence, _ = noisy_evidence(m=4)
    split = replace(
        SupportSplitter(random_state=0).fit(evidence.x_train).split(evidence.x_val),
        membership=torch.tensor([0.95, 0.3, 0.0, 0.6]),
    )
    held = GIWPlus(handover=0.8).state(evidence, split, {})
    assert held[ALPHA] == pytest.approx((1 + 0.24 + 0 + 0.48) / 4)
    soft = GIWPlus(handover=0.8, hold_out=False).state(evidence, split, {})
    assert soft[ALPHA] == pytest.approx(0.8 * (0.95 + 0.3 + 0 + 0.6) / 4)


def test_modes_are_followed_only_while_inside_points_are_held_out():
    """Validation losses are all small now; on the pretrained net half of them were large."""
    evidence, _ = noisy_evidence()
    params = {"weight": torch.tensor([[-2.0], [2.0]])}
    batch = Batch(
        evidence.x_train, evidence.y_train, evidence.x_val, evidence.y_val,
        torch.ones(30), torch.ones(()), torch.zeros(()),
    )  # fmt: skip
    logits = evidence.logits(evidence.x_train)
    losses_ = torch.nn.functional.cross_entropy(logits, evidence.y_train, reduction="none")
    found = {}
    for hold_out in (True, False):
        method = GIWPlus(weights="steady", hold_out=hold_out, window=1.0)
        state = params | method.state(evidence, None, params)
        state[FIRST_COUNTS] = torch.tensor([[15.0, 15.0], [18.0, 12.0]])
        _, new = method._weigh(state, batch, 2, losses_, torch.zeros(30))
        found[hold_out] = new[COUNTS]
    torch.testing.assert_close(found[True][0], torch.tensor([30.0, 0.0]))
    method = GIWPlus(weights="steady", window=1.0)
    state = params | method.state(evidence, None, params)
    unsure = batch._replace(inside=torch.full((30,), 0.6))
    _, new = method._weigh(state, unsure, 2, losses_, torch.zeros(30))
    assert torch.equal(new[COUNTS], state[COUNTS])  # all are trained on a little
    assert torch.equal(found[False], torch.tensor([[15.0, 15.0], [18.0, 12.0]]))


def test_the_upper_mode_gains_only_what_unseen_rows_said():
    """A net that has learnt the training points by heart makes validation losses look large."""
    evidence, _ = noisy_evidence(share=0.0)
    params = {"weight": torch.tensor([[-2.0], [2.0]])}
    method = GIWPlus(weights="steady", window=1.0)
    params |= method.state(evidence, None, params)
    batch = Batch(
        evidence.x_train, evidence.y_train, evidence.x_val, evidence.y_val,
        torch.ones(30), torch.ones(()), torch.zeros(()),
    )  # fmt: skip
    by_heart = torch.cat([torch.full((100,), 3.0), torch.zeros(1900)])
    weight, _ = method._weigh(params, batch, 2, by_heart, torch.full((30,), 5.0))
    assert weight[:100].max() < 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": "static"}, "matched, steady, batch, uniform"),
        ({"handover": 1.5}, "handover must lie between 0 and 1"),
        ({"trust": 1.1}, "trust must lie between 0 and 1"),
        ({"average": -0.1}, "average must lie between 0 and 1"),
        ({"align": -0.1}, "align must not be negative"),
        ({"copies": 0}, "copies must be at least 1"),
        ({"noise": -1.0}, "noise must not be negative"),
        ({"doubt": -0.1}, "doubt must not be negative"),
        ({"split_on": "loss"}, "auto, hidden, input"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        method_named("giw_plus", **settings)
