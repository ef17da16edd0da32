"""Blocks of a net, and nets of which only one block learns."""

from __future__ import annotations

from giw.nets.training import Params, net_params


def parameter_blocks(params: Params) -> list[list[str]]:
    """Names of the net's parameters by the layer they belong to, the first one first.

    A block is a layer of the net, or a numbered part of a stack of layers: ``conv1`` is one, and
    so is ``stages.2`` with all that lies in it. Parameters that the user has frozen are in none.
    """
    blocks: dict[tuple[str, ...], list[str]] = {}
    of_net = net_params(params)
    # within vmap no tensor says that it learns; stacked nets have no frozen layers of their own
    learning = {name for name, p in of_net.items() if p.requires_grad} or set(of_net)
    for name in of_net:
        if name not in learning:
            continue
        parts = name.split(".")
        depth = 2 if len(parts) > 2 and parts[1].isdigit() else 1
        blocks.setdefault(tuple(parts[:depth]), []).append(name)
    return list(blocks.values())


def frozen_except(params: Params, names: list[str]) -> Params:
    """The same parameters, of which only the named ones carry a gradient."""
    return {name: p if name in names else p.detach() for name, p in params.items()}
