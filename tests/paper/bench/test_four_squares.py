import numpy as np
import pytest
from scipy.stats import ttest_rel

from giw.paper.bench.four_squares import run_four_squares


def accuracies(example, trials):
    scores = run_four_squares(example, trials=trials)
    return {
        m: np.array([s.accuracy for s in scores if s.method == m])
        for m in ("val_only", "diw", "giw")
    }


def test_importance_weighting_fails_where_the_right_half_contradicts_the_left_and_giw_does_not():
    found = accuracies(2, trials=2)
    assert found["diw"].mean() <= 0.60
    assert found["giw"].mean() > 0.85


@pytest.mark.slow
def test_first_example_twenty_seeds():
    found = accuracies(1, trials=20)
    assert found["diw"].mean() >= 0.95
    assert found["giw"].mean() >= 0.95


@pytest.mark.slow
def test_second_example_twenty_seeds():
    found = accuracies(2, trials=20)
    assert found["giw"].mean() > 0.90
    assert found["diw"].mean() <= 0.60
    assert found["giw"].mean() > found["val_only"].mean()
    assert ttest_rel(found["giw"], found["val_only"]).pvalue < 0.05
