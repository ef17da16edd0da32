"""Lists of outside points for people."""

import numpy as np
import pytest

from giw.support.lists import benjamini_hochberg


def test_the_textbook_example():
    """q = 0.05, m = 5: lines 0.01, 0.02, 0.03, 0.04, 0.05; the third is the last below its line."""
    p_value = np.array([0.9, 0.029, 0.001, 0.045, 0.015])

    assert benjamini_hochberg(p_value, fdr=0.05).tolist() == [2, 4, 1]


def test_one_below_its_line_carries_those_before_it():
    assert benjamini_hochberg(np.array([0.04, 0.05]), fdr=0.05).tolist() == [0, 1]


def test_nothing_strange_gives_an_empty_list():
    assert len(benjamini_hochberg(np.array([0.3, 0.9]), fdr=0.1)) == 0


def test_the_rate_is_held_on_average():
    rng = np.random.default_rng(0)
    false_share = []
    for _ in range(300):
        p_value = np.concatenate([rng.uniform(size=80), np.zeros(20)])
        listed = benjamini_hochberg(p_value, fdr=0.2)
        false_share.append(np.mean(listed < 80))

    assert np.mean(false_share) < 0.2


def test_the_rate_lies_between_zero_and_one():
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg(np.array([0.1]), fdr=1.0)
