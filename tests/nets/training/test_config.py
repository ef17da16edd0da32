import json
from dataclasses import asdict

import pytest

from giw.nets.images import Augmentation
from giw.nets.training import TrainingConfig


def test_a_shorter_run_scales_the_schedule():
    assert TrainingConfig(epochs=400).drop_every == 100
    assert TrainingConfig(epochs=40).drop_every == 10
    assert TrainingConfig(epochs=40, decay_every=100).drop_every == 100


@pytest.mark.parametrize(
    "setting",
    [
        {"epochs": 0},
        {"epochs": 2.5},
        {"batch_size": 0},
        {"pretrain_epochs": -1},
        {"learning_rate": 0.0},
        {"weight_decay": -1.0},
        {"calibration_share": 1.0},
        {"decay_every": 0},
        {"test_last": 0},
        {"epoch_of": "test"},
        {"precision": "float64"},
    ],
)
def test_settings_without_a_meaning_are_refused_by_name(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        TrainingConfig(**setting)


def test_the_rate_drops_by_its_factor_each_time():
    config = TrainingConfig(epochs=8, decay=0.5)
    assert [config.rate_factor(epoch) for epoch in range(8)] == [1, 1, 0.5, 0.5, 0.25, 0.25] + [
        0.125
    ] * 2


def test_settings_are_plain_numbers_all_the_way_down():
    config = TrainingConfig(augmentation=Augmentation(translate=0.1))
    assert json.loads(json.dumps(asdict(config)))["augmentation"]["translate"] == 0.1
