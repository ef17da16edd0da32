"""Codes of hundreds of levels, and copies of rows: neither is a shift."""

import numpy as np
import pandas as pd
import pytest

import giw


def codes(seed, n=1_100, levels=400):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=n), "code": rng.integers(0, levels, n).astype(str)})
    return frame, np.where(frame.x + rng.normal(size=n) > 0, "u", "v")


@pytest.mark.parametrize("seed", range(2))
def test_a_new_code_among_hundreds_is_no_news(seed):
    """Ten of a hundred rows have one, as chance leads one to expect."""
    X, y = codes(seed)
    found = giw.diagnose(X[:1000], y[:1000], X[1000:], y[1000:], random_state=0)
    assert found.outside_rows == ()
    assert found.recommendation.remedy == "plain"


def test_copies_of_rows_are_counted_once():
    X, y = codes(0)
    twice = giw.diagnose(pd.concat([X[:1000]] * 2), np.tile(y[:1000], 2), X[1000:], y[1000:],
                         random_state=0)  # fmt: skip
    (told,) = (f for f in twice.findings if f.kind == "new category")
    assert not told.found
    assert "about 8.6 such rows" in told.text
    some = pd.concat([X[1000:1020]] * 5), np.tile(y[1000:1020], 5)
    once = giw.diagnose(X[:1000], y[:1000], X[1000:1020], y[1000:1020], random_state=0)
    often = giw.diagnose(X[:1000], y[:1000], *some, random_state=0)
    p_value = [
        next(f.p_value for f in d.findings if f.kind == "class prior") for d in (once, often)
    ]
    assert p_value[1] == pytest.approx(p_value[0], abs=0.05)


def test_rows_that_repeat_in_training_as_often_are_no_copies_of_it():
    """One row in three of either table has a twin among two thousand."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hour": rng.integers(0, 24, 2_150), "day": rng.integers(0, 120, 2_150)})
    y = rng.integers(0, 2, 2_150)
    found = giw.diagnose(X[:2000], y[:2000], X[2000:], y[2000:], random_state=0)
    assert "duplicates" not in {f.kind for f in found.findings if f.found}
