"""Tensors and nets among what is saved: parameters as arrays, our own nets by name and sizes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from giw.nets.models import KINDS

KIND = "@"  # as in giw.estimators.saving
Arrays = dict[str, NDArray[Any]]


def describe(value: Any, key: str, arrays: Arrays) -> tuple[bool, Any]:
    """Whether it is torch's, and its description; arrays are put aside."""
    if isinstance(value, torch.device):
        return True, str(value)
    if isinstance(value, Tensor):
        arrays[key] = _plain(value)
        return True, {KIND: "tensor", "key": key}
    if not isinstance(value, nn.Module):
        return False, None
    for name, tensor in value.state_dict().items():
        arrays[f"{key}/{name}"] = _plain(tensor)
    known = {KIND: "net", "key": key, "training": value.training}
    for name, kind in KINDS.items():
        if type(value) is kind:
            return True, known | {"name": name, "sizes": value.sizes}
    return True, known | {"name": None, "class": type(value).__qualname__}


def build(
    value: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], module: Any, folder: Path
) -> Any:
    """The tensor or the net that was described."""
    if value[KIND] == "tensor":
        return torch.from_numpy(arrays[value["key"]].copy())
    prefix = f"{value['key']}/"
    state = {
        name.removeprefix(prefix): torch.from_numpy(array.copy())
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
    if value["name"] is not None:
        with torch.device("meta"):  # whatever sizes a file claims, no memory is taken for them
            net = KINDS[value["name"]](**value["sizes"])
    elif module is None:
        raise ValueError(
            f"{folder} holds the parameters of a {value['class']}, a net of your own, and "
            f"no code; build the net and pass it: giw.load({str(folder)!r}, module=net)"
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
    return net.train(value["training"])


def _plain(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().contiguous().clone().numpy()
