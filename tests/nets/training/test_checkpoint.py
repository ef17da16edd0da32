import multiprocessing
import os
import random
import signal
import threading

import numpy as np
import pytest
import torch
from tests.killed import count_calls, killed_after
from tests.nets.training.toy import toy_net, toy_tensors
from torch import nn

from giw.nets.methods import GIW, METHODS, Pooled
from giw.nets.training import TrainingConfig, train, train_trials
from giw.nets.training.checkpoint import (
    Checkpoint,
    Saved,
    UnusableCheckpoint,
    read_tensors,
    write_tensors,
)

CONFIG = TrainingConfig(epochs=4, pretrain_epochs=3, batch_size=8, learning_rate=0.01)
EVERY_METHOD = [make() for make in METHODS.values()]
by_name = pytest.mark.parametrize("method", EVERY_METHOD, ids=lambda method: method.name)


class Stop(Exception):
    """Raised by a callback, as if the run had been stopped there."""


def stop_after(phase, epoch):
    def on_epoch(now, number, values):
        if (now, number) == (phase, epoch):
            raise Stop

    return on_epoch


def equal(first, second):
    """Nets, histories and splits, bit for bit."""
    one, other = first.module.state_dict(), second.module.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert first.history.keys() == second.history.keys()
    for name, column in first.history.items():
        np.testing.assert_array_equal(column, second.history[name])
    assert (first.split is None) == (second.split is None)
    if first.split is not None:
        assert repr(first.split) == repr(second.split)
        assert torch.equal(first.split.p_value, second.split.p_value)


@by_name
@pytest.mark.parametrize("stop", [("pretrain", 2), ("train", 1)])
def test_a_stopped_run_ends_as_if_it_had_never_stopped(method, stop, tmp_path):
    data, file = toy_tensors(m=9), tmp_path / "run.safetensors"  # walks through validation rows
    whole = train(method, toy_net(), data, CONFIG, random_state=3)
    if method.pretrains or stop[0] == "train":
        with pytest.raises(Stop):
            train(
                method, toy_net(), data, CONFIG,
                random_state=3, on_epoch=stop_after(*stop), checkpoint=file,
            )  # fmt: skip
        assert file.exists()
    equal(train(method, toy_net(), data, CONFIG, random_state=3, checkpoint=file), whole)


def test_dropout_and_batch_norm_are_resumed_too(tmp_path):
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 2))
    data, file = toy_tensors(), tmp_path / "run"
    whole = train(GIW(), module, data, CONFIG)
    for stop in [("pretrain", 0), ("train", 1)]:
        with pytest.raises(Stop):
            train(GIW(), module, data, CONFIG, on_epoch=stop_after(*stop), checkpoint=file)
    equal(train(GIW(), module, data, CONFIG, checkpoint=file), whole)


def test_trials_side_by_side_are_resumed_together(tmp_path):
    modules, datas = [toy_net(0), toy_net(1)], [toy_tensors(seed=0), toy_tensors(seed=1)]
    file = tmp_path / "trials"
    whole = train_trials(GIW(), modules, datas, CONFIG)
    with pytest.raises(Stop):
        train_trials(
            GIW(), modules, datas, CONFIG,
            on_epoch=lambda t: stop_after("train", 1), checkpoint=file,
        )  # fmt: skip
    for first, second in zip(
        train_trials(GIW(), modules, datas, CONFIG, checkpoint=file), whole, strict=True
    ):
        equal(first, second)


def test_a_finished_run_is_read_and_not_trained_again(tmp_path):
    data, file, seen = toy_tensors(), tmp_path / "run", []
    first = train(GIW(), toy_net(), data, CONFIG, checkpoint=file)
    again = train(
        GIW(), toy_net(), data, CONFIG,
        checkpoint=file, on_epoch=lambda *epoch: seen.append(epoch),
    )  # fmt: skip
    equal(first, again)
    assert not seen


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random_state": 1}, "random_states was"),
        ({"config": TrainingConfig(epochs=5, pretrain_epochs=3)}, "epochs was 4"),
        ({"data": toy_tensors(seed=9)}, "data was"),
        ({"method": GIW()}, "method was"),
    ],
)
def test_another_run_is_refused_by_what_differs(change, message, tmp_path):
    call = {"method": Pooled(), "data": toy_tensors(), "config": CONFIG, "random_state": 0}
    train(module=toy_net(), checkpoint=tmp_path / "run", **call)
    with pytest.raises(ValueError, match=message):
        train(module=toy_net(), checkpoint=tmp_path / "run", **(call | change))


def test_a_file_that_is_no_checkpoint_is_refused_by_name(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("not tensors")
    with pytest.raises(ValueError, match=r"notes\.txt cannot be read"):
        train(Pooled(), toy_net(), toy_tensors(), CONFIG, checkpoint=file)
    write_tensors(file, {"a": torch.ones(2)}, {})
    with pytest.raises(UnusableCheckpoint, match="no checkpoint"):
        train(Pooled(), toy_net(), toy_tensors(), CONFIG, checkpoint=file)


def test_what_is_written_is_read_back(tmp_path):
    store = Checkpoint(tmp_path / "new" / "folder" / "run", {"epochs": 3})
    tensors = {"params": {"a/b": torch.randn(3, 2)}, "random": {"cpu": torch.arange(4)}}
    store.save(Saved("train", 2, tensors, {"history": [0.1, float("inf")]}))
    found = store.load()
    assert (found.phase, found.epoch, found.values) == ("train", 2, {"history": [0.1, np.inf]})
    assert torch.equal(found.tensors["params"]["a/b"], tensors["params"]["a/b"])
    assert [path.name for path in store.path.parent.iterdir()] == ["run"]


def test_every_flipped_bit_is_noticed(tmp_path):
    """A checkpoint goes on to a wrong result if it is read with a wrong number in it."""
    file = tmp_path / "run"
    store = Checkpoint(file, {"epochs": 3})
    store.save(Saved("train", 2, {"params": {"a": torch.randn(3)}}, {"history": [0.1]}))
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(UnusableCheckpoint, match="run"):
            store.load()


def test_a_reader_never_mixes_two_checkpoints(tmp_path):
    """Header and tensors come from one file, however often it is replaced meanwhile."""
    file, done = tmp_path / "run", threading.Event()
    write_tensors(file, {"a": torch.zeros(50)}, {"is": 0})

    def replace_all_the_time():
        for number in range(200):
            write_tensors(file, {"a": torch.full((50,), float(number))}, {"is": number})
        done.set()

    writer = threading.Thread(target=replace_all_the_time)
    writer.start()
    while not done.is_set():
        tensors, values = read_tensors(file)
        assert (tensors["a"] == values["is"]).all()
    writer.join()


def test_savings_keep_the_pause_that_was_asked_for(tmp_path):
    seldom = Checkpoint(tmp_path / "run", {}, 1000.0)
    assert [seldom.due(epoch, 4) for epoch in (1, 2, 3, 4)] == [False, False, False, True]


def test_an_interrupted_writing_leaves_the_old_file_whole(tmp_path, monkeypatch):
    """Whatever fails before the new file takes the old one's name."""
    store = Checkpoint(tmp_path / "run", {})
    store.save(Saved("train", 1, {"a": {"x": torch.ones(3)}}, {}))
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, lambda *args: (_ for _ in ()).throw(Stop))
            with pytest.raises(Stop):
                store.save(Saved("train", 2, {"a": {"x": torch.zeros(3)}}, {}))
        assert store.load().epoch == 1


KILLED = TrainingConfig(epochs=12, pretrain_epochs=12, batch_size=4, learning_rate=0.01)


def run_to_be_killed(file):
    train(GIW(), toy_net(), toy_tensors(n=100), KILLED, checkpoint=file)


def progress(file):
    """Phase and epoch that a checkpoint has reached; (-1, 0) before there is one."""
    if not file.exists():
        return (-1, 0)
    values = read_tensors(file)[1]
    return (["pretrain", "train"].index(values["phase"]), values["epoch"])


def test_killed_at_random_moments_a_run_loses_nothing_and_ends_the_same(tmp_path):
    """SIGKILL leaves no time to tidy up: what was written must be whole at any moment."""
    file, moments = tmp_path / "run", random.Random(0)
    whole = train(GIW(), toy_net(), toy_tensors(n=100), KILLED)
    calls = count_calls(run_to_be_killed, tmp_path / "alone")
    context = multiprocessing.get_context("fork")
    reached, resumed = (-1, 0), 0
    for _ in range(4):
        moment = moments.randint(calls // 8, calls // 3)
        process = context.Process(target=killed_after, args=(moment, run_to_be_killed, file))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        now = progress(file)  # reads the file: never half written, never behind what it was
        assert now >= reached
        resumed += now > reached
        reached = now
    assert resumed >= 2  # killed and taken up again, more than once
    equal(train(GIW(), toy_net(), toy_tensors(n=100), KILLED, checkpoint=file), whole)
