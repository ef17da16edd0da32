from dataclasses import replace

import pytest
import torch
from tests.methods.steps import a_batch, losses, start
from tests.training.toy import toy_net, toy_tensors

from giw.methods import GIW, GIWPlus, Pooled, PooledPlus, method_named
from giw.methods.giw_plus import (
    ALPHA,
    CLASSES,
    COUNTS,
    FIRST_COUNTS,
    HISTOGRAM,
    MOVED,
    MOVED_TOO,
    PHASE,
    STEP,
    steady_weights,
)
from giw.support import SupportSplitter
from giw.training import AVERAGE, Batch, Evidence, FunctionalNet, TrainingConfig, train
from giw.weights.loss_histogram import BINS

PLAIN = {
    "copies": 1,
    "mix": 0.0,
    "noise": 0.0,
    "average": 0.0,
    "soft": False,
    "handover": 1.0,
    "lean": 0.0,
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
        value(PooledPlus(copies=1, mix=0, noise=0, average=0), a_batch()),
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


def test_mixed_copies_have_both_labels_in_proportion():
    """Where all inputs are one point, a copy is that point and its loss is a mixture of two."""
    net = FunctionalNet(toy_net())
    zeros, ones = torch.zeros(24, dtype=torch.long), torch.ones(6, dtype=torch.long)
    batch = Batch(
        torch.ones(24, 2), zeros, torch.ones(6, 2), ones, torch.zeros(6), torch.zeros(()),
        torch.zeros(()),
    )  # fmt: skip
    of_train, of_val = (part.mean() for part in losses(net, net.params(), batch))
    method = GIWPlus(weights="uniform", **PLAIN | {"mix": 0.5})
    share = ((value(method, batch) - of_train) / (of_val - of_train)).item()
    assert 0.5 < share < 1
    assert share == pytest.approx(0.75, abs=0.12)
    # what training data do not carry, their labels do not teach
    alone = value(replace(method, handover=0.0), batch)
    torch.testing.assert_close(alone, share * of_val)


def test_no_more_copies_than_training_points_and_the_first_as_it_is():
    method, module = GIWPlus(copies=4, mix=0.5), toy_net()
    params, batch = start(method, module), a_batch(n=24, m=6)
    copies = method._copies(params, batch.x, batch.x_val)
    assert len(copies.x) == 24
    assert torch.equal(copies.x[:6], batch.x_val)
    assert (copies.share[:6] == 1).all()
    assert (copies.share[6:] < 1).all()
    few = a_batch(n=13, m=6)
    assert len(method._copies(params, few.x, few.x_val).x) == 12
    one = a_batch(n=7, m=6)
    assert (method._copies(params, one.x, one.x_val).share < 1).all()  # nothing but mixtures


def test_images_are_moved_and_tables_are_jittered():
    method = GIWPlus()
    still_params = start(method, toy_net())
    params = still_params | {MOVED: torch.ones(())}
    x, x_val = torch.rand(12, 1, 16, 16), torch.rand(3, 1, 16, 16)
    moved = method._copies(params, x, x_val).x
    still = x_val.repeat(4, 1, 1, 1)
    assert (moved[3:] - still[3:]).abs().amax((1, 2, 3)).min() > 0.01
    assert torch.equal(method._copies(still_params, x, x_val).x, x_val)  # nothing to copy for
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
    method = GIWPlus(handover=0.8, lean=0.0)
    torch.testing.assert_close(
        method._inside(batch), torch.tensor([1.0, 0.4, 0.32, 0.0, 1.0, 0.08])
    )
    torch.testing.assert_close(replace(method, hold_out=False)._inside(batch), 0.8 * batch.inside)


def test_leaning_gives_a_share_of_the_validation_term_to_training():
    """Membership kappa (tau + (1 - tau) s): what validation points lose, training gains."""
    net, batch = FunctionalNet(toy_net()), a_batch()
    train_loss, val_loss = losses(net, net.params(), batch)
    share = 0.8 * torch.where(batch.inside > 0, 1.0, 0.3)
    expected = share.mean() * train_loss.mean() + ((1 - share) * val_loss).mean()
    method = GIWPlus(weights="uniform", **PLAIN | {"lean": 0.3, "handover": 0.8})
    torch.testing.assert_close(value(method, batch), expected)


def test_training_images_are_moved_in_the_proportion_of_copies_where_asked_for():
    method = GIWPlus(augment_training=True, bend=0.2)
    x = torch.rand(16, 1, 16, 16)
    moved = method._moved_training({PHASE: torch.rand(12)}, x)
    assert torch.equal(moved[:4], x[:4])
    assert (moved[4:] - x[4:]).abs().amax((1, 2, 3)).min() > 0.01
    # what the loss descends has them moved
    still, module = start(method, toy_net()), torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(256, 2)
    )  # fmt: skip
    batch = a_batch(n=16, m=3)._replace(x=x, x_val=torch.rand(3, 1, 16, 16))
    net = FunctionalNet(module)
    params = net.params() | {k: v for k, v in still.items() if k.startswith("method.")}
    params = {k: v for k, v in params.items() if not k.startswith(AVERAGE)}
    plain = replace(method, weights="uniform", average=0.0)
    values = [plain.loss(net, params | extra, batch)[0] for extra in ({}, {MOVED_TOO: x[0, 0, 0]})]
    assert values[0] != values[1]


@pytest.mark.parametrize("augmented", [True, False])
def test_training_images_are_not_moved_twice(augmented):
    shown = evidence_of_images(augmented)
    state = GIWPlus(augment_training=True).state(shown, None, {})
    assert MOVED in state
    assert (MOVED_TOO in state) == (not augmented)


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


def test_alpha_is_the_mean_of_the_membership_in_use():
    evidence, _ = noisy_evidence(m=4)
    split = replace(
        SupportSplitter(random_state=0).fit(evidence.x_train).split(evidence.x_val),
        membership=torch.tensor([0.95, 0.3, 0.0, 0.6]),
    )
    held = GIWPlus(handover=0.8, lean=0.0).state(evidence, split, {})
    assert held[ALPHA] == pytest.approx((1 + 0.24 + 0 + 0.48) / 4)
    soft = GIWPlus(handover=0.8, lean=0.0, hold_out=False).state(evidence, split, {})
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
        ({"mix": -0.1}, "mix must lie between 0 and 1"),
        ({"lean": 2.0}, "lean must lie between 0 and 1"),
        ({"copies": 0}, "copies must be at least 1"),
        ({"noise": -1.0}, "noise must not be negative"),
        ({"doubt": -0.1}, "doubt must not be negative"),
        ({"split_on": "loss"}, "auto, hidden, input"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        method_named("giw_plus", **settings)
