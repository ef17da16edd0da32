"""No step waits for the device: every loss is walked with tensors that hold no numbers.

``FakeTensorMode`` knows shapes and formats only. Whoever asks for a number (``.item()``,
``bool(...)``, ``if loss > 0``, numpy) would make the host wait for a GPU, and a CUDA graph cannot
record that; here it raises. No GPU is needed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from tests.nets.methods.steps import a_batch, learning, start
from tests.nets.training.toy import toy_net
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from giw.nets.methods import METHODS, TrainOnly
from giw.nets.training import sample_losses
from giw.objective import DynamicWeights

PUBLISHED = {"representation": "eval_loss", "weigh": DynamicWeights(bandwidth="paper")}
CASES = {
    **METHODS,
    "giw, published": lambda: METHODS["giw"](**PUBLISHED),
    "diw, published": lambda: METHODS["diw"](**PUBLISHED),
    "giw, hidden": lambda: METHODS["giw"](representation="hidden"),
    "r_diw, hidden": lambda: METHODS["r_diw"](representation="hidden"),
}


def walk(method):
    """Loss, logs and gradient of one step."""
    net, params, state = start(method, toy_net())
    batch, mode = a_batch(), FakeTensorMode()

    def faked(tensors):
        return {k: mode.from_tensor(p.detach()).requires_grad_(p.requires_grad)
                for k, p in tensors.items()}  # fmt: skip

    params, state = faked(params), state.with_tensors(faked(state.tensors()))
    batch = type(batch)(*map(mode.from_tensor, batch))
    with mode:
        value, _, logs = method.loss(net, params, state, batch)
        leaves = list(learning(params, state).values())
        return value, logs, torch.autograd.grad(value, leaves, allow_unused=True)


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_of_every_method_read_nothing_on_the_host(name):
    value, _, gradients = walk(CASES[name]())
    assert value.shape == ()
    assert any(g is not None for g in gradients)


@dataclass(frozen=True)
class Looking(TrainOnly):
    """A method that looks at its losses on the way."""

    look: Callable[[torch.Tensor], Any] = float

    def loss(self, net, params, state, batch):
        losses = sample_losses(net(params, batch.x), batch.y)
        self.look(losses)
        return losses.mean(), state, {}


LOOKS = {
    "item": lambda losses: losses.mean().item(),
    "float": lambda losses: float(losses.detach().max()),
    "branch": lambda losses: 1 if losses.mean() > 0 else 0,
    "numpy": lambda losses: losses.detach().numpy().max() > 0,
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_look_at_a_value_is_caught(look):
    walk(Looking(look=torch.clone))
    with pytest.raises((DataDependentOutputException, RuntimeError)):
        walk(Looking(look=look))
