"""Recording a step: what is there of it without a GPU."""

import pytest
import torch
from tests.nets.training.toy import toy_net, toy_tensors

from giw.nets.methods import GIW
from giw.nets.training import TrainingConfig, step, train


def rerun(work, device, rewind):
    """Stands for a CUDA graph: the same trial runs, and a replay that runs the work."""
    for _ in range(3):
        rewind()
        work()
    return work


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_trial_runs_leave_no_trace_however_short_an_epoch(monkeypatch, steps):
    data = toy_tensors(n=32 * steps)
    config = TrainingConfig(epochs=2, pretrain_epochs=2, batch_size=32, learning_rate=0.01)
    plain = train(GIW(), toy_net(), data, config)

    built = step.Descent.__init__

    def recorded(self, *args, **settings):
        built(self, *args, **settings)
        self.captured = True

    monkeypatch.setattr(step.Descent, "__init__", recorded)
    monkeypatch.setattr(step, "captured", rerun)
    again = train(GIW(), toy_net(), data, config)
    assert again.history["loss"].tolist() == plain.history["loss"].tolist()
    for one, other in zip(again.module.parameters(), plain.module.parameters(), strict=True):
        assert torch.equal(one, other)
