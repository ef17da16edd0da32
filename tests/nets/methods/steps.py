"""A batch, what a method starts from, and steps of it without the whole run."""

import torch
from tests.nets.training.toy import toy_tensors
from torch.nn.functional import cross_entropy

from giw.nets.training import Batch, Evidence, FunctionalNet, predict_in_blocks


def a_batch(seed=0, n=24, m=6):
    data = toy_tensors(n=n, m=m, seed=seed)
    inside = (torch.arange(m) % 3 < 2).float()
    return Batch(
        data.x_train, data.y_train, data.x_val, data.y_val, inside, inside.mean(), torch.zeros(())
    )


def losses(net, params, batch):
    return (
        cross_entropy(net(params, batch.x), batch.y, reduction="none"),
        cross_entropy(net(params, batch.x_val), batch.y_val, reduction="none"),
    )


def start(method, module, random_state=0):
    """The net, its parameters, and what the method keeps beside them."""
    net = FunctionalNet(module)
    params = net.params()
    return net, params, method.state(an_evidence(net, params, random_state), None)


def a_loss(method, batch, module):
    """Loss and logs of one step from the start."""
    loss, _, logs = method.loss(*start(method, module), batch)
    return loss, logs


def learning(params, state):
    """All that gradients move, by name."""
    named = params | {f"state.{name}": p for name, p in state.tensors().items()}
    return {name: p for name, p in named.items() if p.requires_grad}


def an_evidence(net, params, random_state=0):
    data = toy_tensors(seed=random_state)
    seen = torch.arange(len(data.y_train)) % 2 > 0
    return Evidence(
        data.x_train, data.y_train, data.x_val, data.y_val, seen,
        lambda x: predict_in_blocks(net, params, x, hidden=True), random_state,
        logits=lambda x: predict_in_blocks(net, params, x),
    )  # fmt: skip


def descend(method, module, batch, steps, *, optimizer=torch.optim.Adam, learning_rate=0.01):
    """Parameters and state after some steps on one batch, progress running from 0 to 1."""
    net, params, state = start(method, module)
    leaves = list(learning(params, state).values())
    mover = optimizer(leaves, lr=learning_rate)
    for step in range(steps):
        now = batch._replace(progress=torch.tensor(step / steps))
        loss, state, _ = method.loss(net, params, state, now)
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
        for p, gradient in zip(leaves, gradients, strict=True):
            p.grad = gradient
        mover.step()
    return {name: p.detach() for name, p in params.items()}, state
