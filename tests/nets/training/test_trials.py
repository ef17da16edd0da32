from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.nets.training.toy import toy_net, toy_tensors
from torch import nn

from giw.nets.images import Augmentation
from giw.nets.methods import GIW, METHODS, Pooled
from giw.nets.models import LeNet5, initialised
from giw.nets.training import (
    Tensors,
    TrainingConfig,
    can_stack,
    pretrain_trials,
    train,
    train_trials,
)
from giw.nets.training.step import JoinedData

CONFIG = TrainingConfig(
    epochs=3, pretrain_epochs=2, batch_size=16, learning_rate=0.01, weight_decay=1e-3
)
EVERY_METHOD = [make() for make in METHODS.values()]
by_name = pytest.mark.parametrize("method", EVERY_METHOD, ids=lambda method: method.name)
SEEDS = [7, 3, 11]


def trials():
    return [toy_net(seed) for seed in SEEDS], [toy_tensors(seed=seed) for seed in SEEDS]


def tiny_images(seed, n=100, m=6):
    """Random bytes with a bright corner for class one, 16 pixels wide."""
    generator = torch.Generator().manual_seed(seed)

    def draw(size):
        x = torch.randint(0, 100, (size, 1, 16, 16), generator=generator, dtype=torch.uint8)
        y = torch.arange(size) % 2
        x[y == 1, :, :6, :6] += 120
        return x, y

    return Tensors(*draw(n), *draw(m), *draw(10))


def tiny_lenet(seed):
    return initialised(lambda: LeNet5(2), seed)


def assert_same(together, alone, tolerance=1e-4):
    for name, p in alone.module.state_dict().items():
        torch.testing.assert_close(
            together.module.state_dict()[name], p, rtol=tolerance, atol=tolerance
        )
    assert together.history.keys() == alone.history.keys()
    for name, column in alone.history.items():
        np.testing.assert_allclose(together.history[name], column, rtol=1e-3, atol=1e-4)
    assert (together.split is None) == (alone.split is None)
    if alone.split is not None:
        assert torch.equal(together.split.inside, alone.split.inside)


@by_name
def test_trials_side_by_side_end_where_each_ends_alone(method):
    modules, datas = trials()
    together = train_trials(method, modules, datas, CONFIG, SEEDS, side_by_side=True)
    for t, seed in enumerate(SEEDS):
        assert_same(together[t], train(method, modules[t], datas[t], CONFIG, random_state=seed))


@pytest.mark.parametrize("augmentation", [None, Augmentation(rotations=(10.0,), translate=0.1)])
def test_convolutions_as_products_change_rounding_only(augmentation):
    """LeNet-5 takes another form when stacked, and images are moved by the same maps."""
    config = TrainingConfig(epochs=2, pretrain_epochs=1, batch_size=16, augmentation=augmentation)
    modules = [tiny_lenet(seed) for seed in SEEDS[:2]]
    datas = [tiny_images(seed) for seed in SEEDS[:2]]
    together = train_trials(GIW(), modules, datas, config, SEEDS[:2], side_by_side=True)
    for t, seed in enumerate(SEEDS[:2]):
        assert_same(together[t], train(GIW(), modules[t], datas[t], config, random_state=seed))


def test_one_after_the_other_is_train_bit_for_bit():
    modules, datas = trials()
    records = train_trials(Pooled(), modules, datas, CONFIG, SEEDS, side_by_side=False)
    for t, seed in enumerate(SEEDS):
        alone = train(Pooled(), modules[t], datas[t], CONFIG, random_state=seed)
        for name, p in alone.module.state_dict().items():
            assert torch.equal(records[t].module.state_dict()[name], p)


def test_shared_pretraining_changes_nothing():
    modules, datas = trials()
    shared = pretrain_trials(modules, datas, CONFIG, SEEDS)
    own = train_trials(GIW(), modules, datas, CONFIG, SEEDS)
    given = train_trials(GIW(), modules, datas, CONFIG, SEEDS, pretrained=shared)
    for first, second in zip(own, given, strict=True):
        for name, p in first.module.state_dict().items():
            assert torch.equal(second.module.state_dict()[name], p)


def test_trials_of_slightly_different_size_go_together():
    """As long as they take the same number of steps."""
    modules, datas = trials()[0][:2], [toy_tensors(n=120), toy_tensors(n=118)]
    together = train_trials(Pooled(), modules, datas, CONFIG, SEEDS[:2])
    assert_same(together[1], train(Pooled(), modules[1], datas[1], CONFIG, random_state=SEEDS[1]))


def test_every_trial_reports_its_epochs():
    seen = []
    modules, datas = trials()
    train_trials(
        Pooled(), modules, datas, CONFIG,
        on_epoch=lambda t: lambda phase, epoch, values: seen.append((t, phase, epoch)),
    )  # fmt: skip
    assert seen == [
        (t, phase, epoch)
        for phase, epochs in (("pretrain", 2), ("train", 3))
        for epoch in range(epochs)
        for t in range(3)
    ]


def test_large_nets_and_nets_with_buffers_or_dropout_run_one_after_the_other():
    assert can_stack(toy_net())
    assert not can_stack(nn.Sequential(nn.Linear(2, 2), nn.Dropout()))
    assert not can_stack(nn.Linear(2000, 2000))


def test_a_cpu_takes_convolutional_nets_one_after_the_other():
    assert can_stack(tiny_lenet(0), "cuda")
    assert not can_stack(tiny_lenet(0), "cpu")
    assert can_stack(toy_net(), "cpu")  # small products: a step is fewer operations


def test_batch_norm_statistics_stay_with_their_trial():
    modules = [nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)) for _ in SEEDS]
    datas = [toy_tensors(seed=seed) for seed in SEEDS]
    records = train_trials(Pooled(), modules, datas, CONFIG, SEEDS)
    alone = train(Pooled(), modules[2], datas[2], CONFIG, random_state=SEEDS[2])
    assert torch.equal(records[2].module[1].running_mean, alone.module[1].running_mean)
    with pytest.raises(ValueError, match="without batch normalisation"):
        train_trials(Pooled(), modules, datas, CONFIG, SEEDS, side_by_side=True)


UNLIKE = [
    (toy_net(), toy_tensors(n=60)),
    (toy_net(), toy_tensors(m=9)),
    (toy_net(), toy_tensors().without_test()),
    (nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)), toy_tensors()),
]


@pytest.mark.parametrize("other", UNLIKE, ids=["rows", "validation", "test", "net"])
def test_trials_that_differ_in_shape_run_one_after_the_other(other):
    modules, datas = zip((toy_net(), toy_tensors()), other, strict=True)
    records = train_trials(Pooled(), modules, datas, CONFIG, [0, 1])
    for t, record in enumerate(records):
        assert_same(record, train(Pooled(), modules[t], datas[t], CONFIG, random_state=t))
    with pytest.raises(ValueError, match="data of the same sizes"):
        train_trials(Pooled(), modules, datas, CONFIG, side_by_side=True)


def test_a_net_without_data_is_refused():
    with pytest.raises(ValueError, match="2 modules, 1 datas"):
        train_trials(Pooled(), [toy_net(), toy_net()], [toy_tensors()], CONFIG)


def test_training_data_that_trials_share_are_kept_once_and_splits_stay_with_their_trial():
    one, other = toy_tensors(m=5, seed=0), toy_tensors(m=5, seed=1)
    part = replace(one, x_val=one.x_val.flip(0), y_val=one.y_val.flip(0))
    joined = JoinedData.of([one, part, other, one])
    n = len(one.y_train)
    assert len(joined.x_train) == n + len(other.y_train)
    assert joined.train_start.tolist() == [0, 0, n, 0]
    assert joined.val_start.tolist() == [0, 5, 10, 15]
    assert torch.equal(joined.x_train[n:], other.x_train)
    assert torch.equal(joined.y_val[5:10], part.y_val)
    assert JoinedData.of([one, one]).x_train is one.x_train
