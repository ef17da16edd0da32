import pytest

from giw.training import TrainingConfig


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
    ],
)
def test_settings_without_a_meaning_are_refused_by_name(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        TrainingConfig(**setting)
