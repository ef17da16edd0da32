from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giw.paper.bench.estimate import (
    EPOCH_SECONDS,
    OF_GIW,
    Pace,
    in_words,
    measured_seconds,
    run_seconds,
    speedup,
)
from giw.paper.bench.plan import Run
from giw.paper.bench.store import Result

RUN = Run("mnist", "iii", "support", "giw", 0, epochs=20)


def result(seconds, device="here", epochs=20):
    return Result(RUN, np.full(epochs, 0.5), seconds, about={"device": device})


def test_what_this_device_has_measured_counts():
    results = [result(2.0), result(4.0), result(600.0), result(1.0, device="elsewhere")]
    measured = measured_seconds(results, "here")
    assert measured == {("mnist", "giw"): 4.0 / 20}
    assert run_seconds(RUN, "cpu", measured) == pytest.approx(30 * 4.0 / 20)  # ten of pretraining


def test_without_a_measurement_the_known_figures_count():
    giw = run_seconds(RUN, "cuda", {})
    assert giw == pytest.approx(30 * EPOCH_SECONDS["cuda"]["mnist"])
    slow = run_seconds(replace(RUN, method="mw_net"), "cuda", {})
    assert slow == pytest.approx(giw * OF_GIW["cuda"]["mw_net"])


@given(st.floats(0.1, 1e4), st.floats(0.1, 10.0), st.integers(1, 99))
def test_time_left_follows_the_speed_so_far(expected, slowness, percent):
    """Work that takes `slowness` times what was expected goes on to do so."""
    pace = Pace(expected, speedup=3)
    assert pace.left(0.0) == pytest.approx(expected / 3)
    done = expected * percent / 100
    pace.advance(done)
    assert pace.left(slowness * done) == pytest.approx(slowness * (expected - done), rel=1e-6)


def test_nothing_left_is_zero():
    pace = Pace(10.0)
    pace.advance(10.0)
    assert pace.left(99.0) == 0
    assert Pace(10.0).left(99.0) == 0


@pytest.mark.parametrize(("seconds", "words"), [(5, "5 s"), (600, "10 min"), (7200, "2.0 h")])
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


def test_a_shared_gpu_is_not_as_many_gpus():
    assert speedup(14, "cuda", measured=False) < 14
    assert speedup(14, "cuda", measured=True) == 14  # measured while fourteen shared it
    assert speedup(2, "cpu", measured=False) == 2
