"""How long a grid takes, before and while it runs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giw.paper.parallel import Done
from giw.paper.plan import Job, Run, fill_in, group, plan
from giw.paper.progress import (
    EPOCH_SECONDS,
    OF_GIW,
    GridView,
    in_words,
    job_seconds,
    measured_seconds,
)
from giw.paper.progress import speedup as speedup_of
from giw.paper.rows import Result

RUN = Run("mnist", "iii", "support", "giw", 0, epochs=20)
JOB = Job((RUN,))
NOTHING = dict.fromkeys(["datasets", "cases", "shifts", "methods", "trials", "epochs", "scale"])


def result(seconds, device="here", epochs=20):
    return Result(RUN, np.full(epochs, 0.5), seconds, about={"device": device})


def test_what_this_device_has_measured_counts():
    results = [result(2.0), result(4.0), result(600.0), result(1.0, device="elsewhere")]
    measured = measured_seconds(results, "here")
    assert measured == {("mnist", "giw", "paper"): 4.0 / 20}


def test_the_first_job_on_its_data_carries_the_pretraining_and_no_other_does():
    measured = {("mnist", "giw", "paper"): 1.0, ("mnist", "pooled", "paper"): 0.5}
    second = Job((replace(RUN, method="pooled"),))
    seconds = job_seconds([JOB, second], "cpu", measured)
    assert seconds == {JOB: 20 * 1.0 + 10 * 0.5, second: 20 * 0.5}


def test_without_a_measurement_the_known_figures_count():
    slow = Job((replace(RUN, method="mw_net"),))
    seconds = job_seconds([JOB, slow], "cuda", {})
    epoch = EPOCH_SECONDS["cuda"]["mnist"]
    assert seconds[JOB] == pytest.approx(30 * epoch)
    assert seconds[slow] == pytest.approx(20 * epoch * OF_GIW["cuda"]["mw_net"])


@given(st.floats(0.1, 1e4), st.floats(0.1, 10.0))
def test_time_left_follows_the_speed_so_far(expected, slowness):
    """Work that takes `slowness` times what was expected goes on to do so."""
    jobs = {Job((replace(RUN, trial=t),)): expected for t in range(4)}
    view = GridView(jobs, speedup=3)
    assert view.seconds_left(0.0) == pytest.approx(4 * expected / 3)
    view.add(Done(view.jobs[0], 1, accuracy=(0.5,)))
    assert view.seconds_left(slowness * expected) == pytest.approx(3 * slowness * expected)
    for job in view.jobs[1:]:
        view.add(Done(job, 1, accuracy=(0.5,)))
    assert view.seconds_left(99.0) == 0


@pytest.mark.parametrize(("seconds", "words"), [(5, "5 s"), (600, "10 min"), (7200, "2.0 h")])
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


def test_a_shared_gpu_is_not_as_many_gpus():
    assert speedup_of(14, "cuda", measured=False) < 14
    assert speedup_of(14, "cuda", measured=True) == 14  # measured while fourteen shared it
    assert speedup_of(2, "cpu", measured=False) == 2


@pytest.mark.parametrize(("kind", "hours"), [("cpu", 0.25), ("cuda", 2.0)])
def test_what_nobody_asked_for_takes_reasonable_time(kind, hours):
    choice, words = fill_in(NOTHING, kind)
    seconds = sum(job_seconds(group(plan(**choice)), kind, {}).values())
    assert 60 < seconds < 3600 * hours
    assert f"--trials {choice['trials']}" in words
    assert "--dataset mnist" in words


def test_what_was_asked_for_is_kept_and_not_told_again():
    choice, words = fill_in(NOTHING | {"datasets": ["cifar20"], "trials": 1}, "cpu")
    assert choice["datasets"] == ["cifar20"]
    assert choice["trials"] == 1
    assert "cifar20" not in words
    assert "--trials" not in words


def test_all_is_all_there_is():
    everything = {key: ["all"] for key in ["datasets", "cases", "shifts", "methods"]}
    more = {"trials": 5, "epochs": 100, "scale": "paper"}
    choice, words = fill_in(NOTHING | everything | more, "cpu")
    assert words == ""
    assert plan(**choice) == plan()
