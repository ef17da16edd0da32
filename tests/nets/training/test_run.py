from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.nets.methods.steps import a_batch, losses
from tests.nets.training.toy import toy_net, toy_tensors
from torch import nn

from giw.nets.images import Augmentation
from giw.nets.methods import GIW, METHODS, Pooled, PretrainVal, TrainOnly, ValOnly
from giw.nets.models import MLP, initialised
from giw.nets.training import (
    FunctionalNet,
    Tensors,
    TrainingConfig,
    losses_of_both,
    pretrain,
    train,
)

CONFIG = TrainingConfig(epochs=4, pretrain_epochs=2, batch_size=16, learning_rate=0.01)
EVERY_METHOD = [make() for make in METHODS.values()]
by_name = pytest.mark.parametrize("method", EVERY_METHOD, ids=lambda method: method.name)


def values(module):
    return torch.cat([p.flatten() for p in module.parameters()])


@by_name
def test_the_same_seed_gives_the_same_record_and_nothing_else_is_touched(method):
    """Neither the module nor torch's own stream of random numbers."""
    module, state = toy_net(), torch.random.get_rng_state()
    before = values(module).clone()
    first = train(method, module, toy_tensors(), CONFIG, random_state=3)
    assert torch.equal(values(module), before)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert {"loss", "learning_rate", "test_accuracy"} <= set(first.history)
    second = train(method, toy_net(), toy_tensors(), CONFIG, random_state=3)
    assert torch.equal(values(first.module), values(second.module))
    for name, column in first.history.items():
        assert column.shape == (4,)
        assert np.isfinite(column).all()
        np.testing.assert_array_equal(column, second.history[name])


@by_name
def test_another_seed_gives_another_net(method):
    if method.name == "val_only":
        pytest.skip("with all validation points in every step, Val-only has no randomness left")
    first = train(method, toy_net(), toy_tensors(), CONFIG, random_state=3)
    second = train(method, toy_net(), toy_tensors(), CONFIG, random_state=4)
    assert not torch.equal(values(first.module), values(second.module))


@by_name
def test_shared_pretraining_changes_nothing(method):
    module, data = toy_net(), toy_tensors()
    shared = pretrain(module, data, CONFIG, random_state=5)
    alone = train(method, module, data, CONFIG, random_state=5)
    given = train(method, module, data, CONFIG, random_state=5, pretrained=shared)
    assert torch.equal(values(alone.module), values(given.module))


def test_test_data_do_not_touch_training():
    with_test, data = toy_tensors(), toy_tensors().without_test()
    first = train(GIW(), toy_net(), with_test, CONFIG)
    second = train(GIW(), toy_net(), data, CONFIG)
    assert torch.equal(values(first.module), values(second.module))
    assert "test_accuracy" not in second.history
    with pytest.raises(ValueError, match="no test data"):
        second.final_accuracy()


def test_val_only_starts_from_scratch_and_pretrain_val_does_not():
    """With one step per epoch, the first loss is that of the net each of them starts from."""
    data, module = toy_tensors(), toy_net()
    config = TrainingConfig(epochs=1, pretrain_epochs=5, learning_rate=0.01)
    started = FunctionalNet(module)
    pretrained = pretrain(module, data, config).params
    for method, params in [(ValOnly(), started.params()), (PretrainVal(), pretrained)]:
        expected = nn.functional.cross_entropy(started(params, data.x_val), data.y_val)
        record = train(method, module, data, config)
        assert record.history["loss"][0] == pytest.approx(expected.item())


def test_pretraining_does_not_see_the_rows_kept_back():
    """Spoil those rows: pretraining must not feel it."""
    data = toy_tensors()
    clean = pretrain(toy_net(), data, CONFIG, random_state=1)
    x = data.x_train.clone()
    x[~clean.seen] = 1e3
    spoilt = pretrain(
        toy_net(), type(data)(x, data.y_train, data.x_val, data.y_val), CONFIG, random_state=1
    )
    assert int((~clean.seen).sum()) == 24
    for name, p in clean.params.items():
        assert torch.equal(p, spoilt.params[name])


def test_plain_training_equals_the_loop_written_by_hand():
    """Two roads: the loop with one batch per epoch, and Adam on the mean loss."""
    data, module = toy_tensors(n=20), toy_net()
    config = TrainingConfig(
        epochs=5, pretrain_epochs=0, batch_size=20, weight_decay=0.1, decay_every=2, decay=0.5
    )
    record = train(TrainOnly(), module, data, config)

    optimizer = torch.optim.Adam(module.parameters(), lr=5e-4, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(data.x_train), data.y_train).backward()
        optimizer.step()
        schedule.step()
    torch.testing.assert_close(values(record.module), values(module), rtol=1e-4, atol=1e-6)


def test_the_learning_rate_drops_after_pretraining_not_during():
    config = TrainingConfig(epochs=6, pretrain_epochs=9, decay_every=3, learning_rate=0.01)
    record = train(Pooled(), toy_net(), toy_tensors(), config)
    np.testing.assert_allclose(record.history["learning_rate"], [0.01] * 3 + [0.001] * 3)


def test_divergence_is_an_error_that_names_the_learning_rate():
    wild = TrainingConfig(epochs=3, pretrain_epochs=0, batch_size=16, learning_rate=1e30)
    with pytest.raises(ValueError, match="lower learning_rate"):
        train(Pooled(), toy_net(), toy_tensors(), wild)


def test_batch_norm_statistics_end_up_in_the_trained_copy():
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    record = train(GIW(), module, toy_tensors(), CONFIG)
    assert not torch.equal(record.module[1].running_mean, module[1].running_mean)
    assert int(module[1].num_batches_tracked) == 0
    assert int(record.module[1].num_batches_tracked) == 2 * 6 + 4 * 8


MOVED = TrainingConfig(
    epochs=1, pretrain_epochs=1, batch_size=16, augmentation=Augmentation(translate=0.2)
)


def bright_corners(n=100, m=6):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 100, (2 * n, 1, 8, 8), generator=generator, dtype=torch.uint8)
    y = torch.arange(2 * n) % 2
    x[y == 1, :, :3, :3] += 120
    return Tensors(x[:n], y[:n], x[n : n + m], y[n : n + m], x[-20:], y[-20:])


def image_net():
    return initialised(lambda: MLP(64, 2), 0)


def test_images_are_moved_about_in_training_but_not_in_pretraining():
    data, still = bright_corners(), replace(MOVED, augmentation=None)
    for name, p in pretrain(image_net(), data, MOVED).params.items():
        assert torch.equal(p, pretrain(image_net(), data, still).params[name])
    moved, unmoved = (train(GIW(), image_net(), data, config) for config in (MOVED, still))
    assert torch.equal(moved.split.p_value, unmoved.split.p_value)
    assert not torch.equal(values(moved.module), values(unmoved.module))


def test_validation_images_are_moved_about_too():
    """Val-only sees nothing else, so any change is theirs."""
    data = bright_corners()
    moved = train(ValOnly(), image_net(), data, MOVED)
    still = train(ValOnly(), image_net(), data, replace(MOVED, augmentation=None))
    assert not torch.equal(values(moved.module), values(still.module))


def test_only_square_images_can_be_moved_about():
    with pytest.raises(ValueError, match="square images"):
        train(Pooled(), toy_net(), toy_tensors(), MOVED)


def test_half_of_the_numbers_can_be_bfloat16_on_cpu():
    """Close to float32 after a few steps, and parameters stay float32."""
    config = replace(CONFIG, epochs=1, pretrain_epochs=1)
    mixed = train(Pooled(), toy_net(), toy_tensors(), replace(config, precision="bfloat16"))
    full = train(Pooled(), toy_net(), toy_tensors(), config)
    assert values(mixed.module).dtype == torch.float32
    assert not torch.equal(values(mixed.module), values(full.module))
    torch.testing.assert_close(values(mixed.module), values(full.module), rtol=0.1, atol=0.02)


def test_only_the_last_epochs_are_tested_where_no_more_is_asked():
    whole = train(Pooled(), toy_net(), toy_tensors(), CONFIG)
    late = train(Pooled(), toy_net(), toy_tensors(), replace(CONFIG, test_last=1))
    assert torch.equal(values(whole.module), values(late.module))
    assert np.isnan(late.history["test_accuracy"][:-1]).all()
    assert late.final_accuracy(1) == whole.final_accuracy(1)


def test_with_batch_statistics_batches_go_apart_and_weights_come_of_losses_at_rest():
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).train()
    batch, net = a_batch(), FunctionalNet(module)
    params = net.params()
    found = losses_of_both(net, params, batch, representation="eval_loss")
    again = FunctionalNet(module)
    again.set_buffers({name: torch.zeros_like(b) for name, b in net.buffers().items()})
    # in training mode a pass depends on its own batch alone, whatever the running statistics
    expected = losses(again, params, batch)
    torch.testing.assert_close((found.train, found.val), expected)
    assert not torch.allclose(found.train_z, found.train)
    assert not found.train_z.requires_grad
    assert module.training


def test_without_batch_statistics_losses_at_rest_are_the_losses():
    net, batch = FunctionalNet(toy_net()), a_batch()
    params = net.params()
    for left, right in zip(
        losses_of_both(net, params, batch, representation="eval_loss"),
        losses_of_both(net, params, batch, representation="loss"),
        strict=True,
    ):
        torch.testing.assert_close(left, right)
