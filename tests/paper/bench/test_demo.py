import pytest

from giw.paper.bench import DemoSettings, run_demo


@pytest.mark.slow
def test_giw_beats_plain_importance_weighting_and_its_split_is_mostly_right():
    scores = run_demo(trials=5)
    mean = {
        m: sum(s.accuracy for s in scores if s.method == m) / 5
        for m in ("giw_plus", "giw", "diw", "val_only", "pretrain_val", "pooled")
    }
    assert mean["giw"] > mean["diw"] + 0.05
    assert mean["giw"] > mean["val_only"]
    assert mean["giw_plus"] > mean["diw"] + 0.05
    assert all(s.split_error <= 0.2 for s in scores if s.split_error is not None)


def test_the_demo_is_the_setting_it_says():
    settings = DemoSettings()
    assert settings.train_digits == (0, 1, 2, 3)
    assert settings.test_digits == tuple(range(10))
    assert settings.n_val == 20
