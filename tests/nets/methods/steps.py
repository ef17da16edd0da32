"""A batch, the parameters a method starts from, and steps of it without the whole loop."""

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
    """The net's parameters and the method's own, leaves of a graph."""
    net = FunctionalNet(module)
    params = net.params()
    own = method.own_params(net, params, a_batch().x[:2], random_state)
    memory = method.state(an_evidence(net, params, random_state), None, params)
    return params | {name: p.clone().requires_grad_() for name, p in (own.params | memory).items()}


def an_evidence(net, params, random_state=0):
    data = toy_tensors(seed=random_state)
    seen = torch.arange(len(data.y_train)) % 2 > 0
    return Evidence(
        data.x_train, data.y_train, data.x_val, data.y_val, seen, lambda x: x, random_state,
        logits=lambda x: predict_in_blocks(net, params, x),
    )  # fmt: skip


def descend(method, module, batch, steps, *, optimizer=torch.optim.Adam, learning_rate=0.01):
    """Parameters after some steps on one batch, progress running from 0 to 1."""
    net, params = FunctionalNet(module), start(method, module)
    mover = optimizer(params.values(), lr=learning_rate)
    for step in range(steps):
        loss, _ = method.loss(net, params, batch._replace(progress=torch.tensor(step / steps)))
        gradients = torch.autograd.grad(loss, list(params.values()), allow_unused=True)
        for p, gradient in zip(params.values(), gradients, strict=True):
            p.grad = gradient
        mover.step()
    return {name: p.detach() for name, p in params.items()}
