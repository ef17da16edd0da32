"""Ctrl-C: asked for in every epoch of a run, and sent as a real signal."""

import itertools
import os
import signal
import threading

import pytest
from tests.nets.training.test_checkpoint import equal
from tests.nets.training.toy import toy_net, toy_tensors
from torch import nn

from giw.nets.methods import GIW, Pooled
from giw.nets.training import Interrupted, TrainingConfig, ask_to_stop, run, train, train_trials
from giw.nets.training.checkpoint import asked_to_stop, read_tensors, stop_by_interrupt

CONFIG = TrainingConfig(epochs=2, pretrain_epochs=2, batch_size=32, learning_rate=0.01)


def stop_at(monkeypatch, call):
    """Ask to stop at the so-manyth time that the run asks whether to."""
    calls = itertools.count()
    monkeypatch.setattr(run, "asked_to_stop", lambda: next(calls) == call)


@pytest.mark.parametrize("epoch", range(4))
def test_a_run_stopped_after_any_epoch_goes_on_from_there(epoch, tmp_path, monkeypatch):
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 2))
    data, file = toy_tensors(m=9), tmp_path / "run"
    whole = train(GIW(), module, data, CONFIG)
    with monkeypatch.context() as patch:
        stop_at(patch, epoch)
        with pytest.raises(Interrupted, match=r"saved in .*run: start it again"):
            train(GIW(), module, data, CONFIG, checkpoint=file, checkpoint_seconds=1000)
    values = read_tensors(file)[1]
    before = 2 if values["phase"] == "train" else 0
    assert before + values["epoch"] == epoch + 1
    resumed = train(GIW(), module, data, CONFIG, checkpoint=file)
    equal(resumed, whole)
    assert list(resumed.history) == list(whole.history)


@pytest.mark.parametrize("side_by_side", [True, False])
def test_trials_stop_and_go_on_together(side_by_side, tmp_path, monkeypatch):
    modules, datas = [toy_net(0), toy_net(1)], [toy_tensors(seed=0), toy_tensors(seed=1)]
    call = (GIW(), modules, datas, CONFIG)
    whole = train_trials(*call, side_by_side=side_by_side)
    with monkeypatch.context() as patch:
        stop_at(patch, 2)
        with pytest.raises(Interrupted):
            train_trials(*call, checkpoint=tmp_path / "run", side_by_side=side_by_side)
    again = train_trials(*call, checkpoint=tmp_path / "run", side_by_side=side_by_side)
    for first, second in zip(again, whole, strict=True):
        equal(first, second)


def test_a_real_signal_stops_saves_and_leaves_the_handler_as_it_was(tmp_path):
    data, file = toy_tensors(), tmp_path / "run"

    def on_epoch(phase, epoch, values):
        if (phase, epoch) == ("train", 0):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match=r"after epoch 1 of 2 \(train\)"):
        train(Pooled(), toy_net(), data, CONFIG, checkpoint=file, on_epoch=on_epoch)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not asked_to_stop()
    equal(
        train(Pooled(), toy_net(), data, CONFIG, checkpoint=file),
        train(Pooled(), toy_net(), data, CONFIG),
    )


def test_a_signal_in_the_last_epoch_is_not_forgotten(tmp_path):
    def on_epoch(phase, epoch, values):
        if (phase, epoch) == ("train", CONFIG.epochs - 1):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="after epoch 2 of 2"):
        train(
            Pooled(), toy_net(), toy_tensors(), CONFIG,
            checkpoint=tmp_path / "run", on_epoch=on_epoch,
        )  # fmt: skip


def test_a_second_signal_stops_at_once():
    def twice():
        with stop_by_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            assert asked_to_stop()
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        twice()
    assert not asked_to_stop()


def test_without_a_checkpoint_a_signal_stops_at_once():
    def on_epoch(phase, epoch, values):
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("went on")

    with pytest.raises(KeyboardInterrupt) as stopped:
        train(Pooled(), toy_net(), toy_tensors(), CONFIG, on_epoch=on_epoch)
    assert not isinstance(stopped.value, Interrupted)


def test_other_threads_and_handlers_are_left_alone(tmp_path):
    mine = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        before = signal.getsignal(signal.SIGINT)
        with stop_by_interrupt():
            assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, mine)
    heard = []

    def elsewhere():
        with stop_by_interrupt():
            heard.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert heard == [signal.default_int_handler]


def test_a_thread_may_ask_too(tmp_path):
    def on_epoch(phase, epoch, values):
        ask_to_stop()

    with pytest.raises(Interrupted, match="after epoch 1 of 2"):
        train(
            Pooled(), toy_net(), toy_tensors(), CONFIG,
            checkpoint=tmp_path / "run", on_epoch=on_epoch,
        )  # fmt: skip
