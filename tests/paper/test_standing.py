import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.pages.tables import summarize
from giw.paper.frame import paired, standings


def numbered(values):
    return dict(enumerate(values))


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 3), min_size=1, max_size=6))
@settings(deadline=None, max_examples=60)
def test_with_the_same_trials_throughout_it_is_the_ordinary_summary(trials):
    columns = {name: [t[k] for t in trials] for k, name in enumerate(("giw", "diw", "pooled"))}
    rows = standings({name: numbered(values) for name, values in columns.items()})
    for plain in summarize(columns):
        row = rows[plain.method]
        assert (row.best, row.tied, row.n) == (plain.best, plain.tied, plain.n)
        assert row.mean == plain.mean
        assert row.p_value == plain.p_value


def test_a_method_that_lacks_a_trial_is_tested_over_the_shared_ones():
    """Shared differences 0.2 and 0.4: t = 3 with one degree of freedom."""
    rows = standings({"giw": {0: 0.8, 1: 0.9, 2: 0.5}, "diw": {0: 0.6, 1: 0.5}})
    assert rows["giw"].best
    assert rows["giw"].n == 3
    assert rows["diw"].shared == 2
    assert rows["diw"].p_value == pytest.approx(1 - 2 * np.arctan(3) / np.pi)


def test_trials_are_matched_by_number_and_not_by_position():
    rows = standings({"giw": {0: 0.6, 1: 0.5, 2: 0.9}, "diw": {2: 0.8, 1: 0.4}})
    assert rows["diw"].p_value == 0.0  # 0.1 behind in each of the two that they share
    assert not rows["diw"].tied


def test_one_lucky_trial_wins_nothing_and_is_not_tested():
    rows = standings({"giw": numbered([0.8] * 5), "diw": {3: 0.99}})
    assert rows["giw"].best
    assert rows["diw"].p_value is None
    assert not rows["diw"].marked


def test_one_missing_trial_does_not_cost_the_first_place():
    five = numbered([0.5, 0.52, 0.51, 0.5, 0.49])
    rows = standings({"diw": five, "giw": {t: 0.9 for t in range(4)}})
    assert rows["giw"].best
    assert not rows["diw"].marked
    assert rows["diw"].shared == 4


def test_one_that_is_ahead_on_the_shared_trials_is_not_called_beaten():
    """Its two trials are hard ones: its own mean is lower, yet it wins both."""
    rows = standings({"giw": {0: 0.1, 1: 0.2, 2: 0.9, 3: 0.9, 4: 0.9}, "diw": {0: 0.2, 1: 0.3}})
    assert rows["giw"].best
    assert rows["diw"].p_value == 0.0
    assert rows["diw"].tied


def test_methods_without_trials_are_left_out():
    assert standings({"giw": {}}) == {}
    assert set(standings({"giw": {}, "diw": {0: 0.5}})) == {"diw"}


def test_a_single_trial_names_the_best_and_tests_nothing():
    rows = standings({"giw": {0: 0.9}, "diw": {0: 0.8}})
    assert rows["giw"].best
    assert rows["giw"].std is None
    assert rows["diw"].p_value is None
    assert not rows["diw"].tied


def test_trials_that_do_not_meet_are_not_compared():
    assert paired(pd.Series({0: 0.5}), pd.Series({1: 0.6})) == (None, 0.0, 0)
