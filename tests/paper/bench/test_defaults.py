import pytest

from giw.paper.bench.defaults import fill_in
from giw.paper.bench.estimate import run_seconds
from giw.paper.bench.plan import plan

NOTHING = dict.fromkeys(["datasets", "cases", "shifts", "methods", "trials", "epochs"])


@pytest.mark.parametrize(("kind", "hours"), [("cpu", 0.25), ("cuda", 2.0)])
def test_what_nobody_asked_for_takes_reasonable_time(kind, hours):
    choice, words = fill_in(NOTHING, kind)
    seconds = sum(run_seconds(run, kind, {}) for run in plan(**choice))
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
    choice, words = fill_in(NOTHING | everything | {"trials": 5, "epochs": 100}, "cpu")
    assert words == ""
    assert plan(**choice) == plan()
