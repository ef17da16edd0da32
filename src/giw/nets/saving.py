"""Tensors and nets among what is saved: parameters as arrays, our own nets by name and sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from giw.nets.models import KINDS


@dataclass(frozen=True)
class Held:
    """What a saved estimator holds in place of a tensor or a net, whose arrays are elsewhere."""

    key: str
    net: str = ""  # the class of a net
    sizes: dict[str, Any] = field(default_factory=dict)  # what a net of ours was made with
    training: bool = False


def set_apart(estimator: Any) -> tuple[Any, dict[str, bytes]]:
    """The estimator without tensors and nets, and a file of them, each of them once."""
    from safetensors.torch import save

    arrays: dict[str, Tensor] = {}
    held: dict[int, Held] = {}

    def hold(value: Any) -> Any:
        if isinstance(value, torch.device):
            return str(value)
        if id(value) in held or not isinstance(value, Tensor | nn.Module):
            return held.get(id(value), value)
        key = str(len(held))
        made, state = Held(key), {"": value}
        if isinstance(value, nn.Module):
            state = value.state_dict()
            sizes: Any = value.sizes if type(value) in KINDS.values() else {}
            made = Held(key, type(value).__qualname__, sizes, value.training)
        for name, tensor in dict[str, Any](state).items():
            arrays[f"{key}/{name}"] = tensor.detach().cpu().contiguous().clone()
        held[id(value)] = made
        return made

    return _exchanged(estimator, hold), {"net.safetensors": save(arrays)}


def put_back(estimator: Any, files: Mapping[str, bytes], module: Any, folder: str) -> Any:
    """The estimator with its tensors and nets; ``module`` is the net where it is a user's own."""
    from safetensors.torch import load

    arrays, made = load(files["net"]), {}

    def give(value: Any) -> Any:
        if not isinstance(value, Held):
            return value
        if value.key not in made:
            prefix = f"{value.key}/"
            state = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            made[value.key] = _net(value, state, module, folder) if value.net else state[""]
        return made[value.key]

    return _exchanged(estimator, give)


def _net(held: Held, state: dict[str, Tensor], module: Any, folder: str) -> nn.Module:
    kinds = {kind.__qualname__: kind for kind in KINDS.values()}
    if held.sizes:
        with torch.device("meta"):  # whatever sizes a file claims, no memory is taken for them
            net = kinds[held.net](**held.sizes)
    elif module is None:
        raise ValueError(
            f"{folder} holds the parameters of a {held.net}, a net of your own, and no code; build "
            f"the net and pass it: giw.load({folder!r}, module=net)"
        )
    else:
        net = copy.deepcopy(module)
    try:
        net.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise ValueError(
            f"the parameters in {folder} do not fit {type(net).__name__}: "
            f"{' '.join(str(error).split())}"
        ) from None
    trained: nn.Module = net.train(held.training)
    return trained


def _exchanged(estimator: Any, by: Callable[[Any], Any]) -> Any:
    """A shallow copy in which attributes, and items of their containers, went through ``by``."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(item) for name, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(walk, value))
        return by(value)

    made = copy.copy(estimator)
    vars(made).update(walk(vars(estimator)))
    return made
