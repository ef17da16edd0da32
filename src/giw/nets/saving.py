"""Tensors and nets among what is saved: parameters as arrays, our own nets by name and sizes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from giw.estimators.saving import exchanged
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
        if isinstance(value, Tensor | nn.Module) and id(value) not in held:
            held[id(value)] = _held(value, str(len(held)), arrays)
        return held.get(id(value), str(value) if isinstance(value, torch.device) else value)

    return exchanged(estimator, hold), {"net.safetensors": save(arrays)}


def _held(value: Any, key: str, arrays: dict[str, Tensor]) -> Held:
    is_net = isinstance(value, nn.Module)
    for name, tensor in (value.state_dict() if is_net else {"": value}).items():
        arrays[f"{key}/{name}"] = tensor.detach().cpu().contiguous().clone()
    sizes = value.sizes if type(value) in KINDS.values() else {}
    return Held(key, type(value).__qualname__, sizes, value.training) if is_net else Held(key)


def put_back(estimator: Any, files: Mapping[str, bytes], module: Any, folder: str) -> Any:
    """The estimator with its tensors and nets; ``module`` is the net where it is a user's own."""
    from safetensors.torch import load

    arrays, made = load(files["net"]), {}

    def give(value: Any) -> Any:
        if isinstance(value, Held) and value.key not in made:
            prefix = f"{value.key}/"
            state = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            made[value.key] = _net(value, state, module, folder) if value.net else state[""]
        return made[value.key] if isinstance(value, Held) else value

    return exchanged(estimator, give)


def _net(held: Held, state: dict[str, Tensor], module: Any, folder: str) -> Any:
    if held.sizes:
        kinds = {kind.__qualname__: kind for kind in KINDS.values()}
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
        said = f"{type(net).__name__}: {' '.join(str(error).split())}"
        raise ValueError(f"the parameters in {folder} do not fit {said}") from None
    return net.train(held.training)
