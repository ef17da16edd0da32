"""A run on disk: one file, replaced whole or not at all.

The file is a safetensors file; what is not a tensor stands in its header as JSON. Nothing in it
is executed when it is read.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from giw.support import SupportSplit
from giw.training.config import TrainingConfig
from giw.training.protocol import Method, Params
from giw.training.tensors import Tensors
from giw.writing import write_whole

FORMAT = "giw-checkpoint-1"
HEADER = "giw"


@dataclass
class Saved:
    """The state of a run between two epochs.

    Attributes
    ----------
    phase : {"pretrain", "train"}
    epoch : int
        Epochs of this phase that are done.
    tensors : dict
        Named groups of tensors: parameters, Adam's memory, buffers, random states.
    values : dict
        Everything else that JSON can hold.
    """

    phase: str
    epoch: int
    tensors: dict[str, Params]
    values: dict[str, Any]


class Checkpoint:
    """Where a run is saved, and which run it is.

    Parameters
    ----------
    path : path
        A file; its folder is made where needed.
    identity : dict
        What must be the same for a saved run to be taken up again.
    every : int, default=1
        Epochs between two savings; the last epoch is saved in any case.
    """

    def __init__(
        self, path: str | os.PathLike[str], identity: dict[str, Any], every: int = 1
    ) -> None:
        if every < 1:
            raise ValueError(f"checkpoint_every must be at least 1 epoch, got {every}")
        self.path, self.every = Path(path), every
        self.identity = json.loads(json.dumps(identity))  # as it will be read back

    def due(self, epoch: int, epochs: int) -> bool:
        """Whether to save when ``epoch`` of ``epochs`` are done."""
        return epoch % self.every == 0 or epoch == epochs

    def save(self, saved: Saved) -> None:
        """Replace the file."""
        tensors = {f"{g}/{k}": v for g, part in saved.tensors.items() for k, v in part.items()}
        values = {
            "format": FORMAT,
            "identity": self.identity,
            "phase": saved.phase,
            "epoch": saved.epoch,
            "values": saved.values,
        }
        write_tensors(self.path, tensors, values)

    def load(self) -> Saved | None:
        """The saved run, or None where there is no file."""
        if not self.path.exists():
            return None
        tensors, values = read_tensors(self.path)
        if values.get("format") != FORMAT:
            raise ValueError(f"{self.path} is no checkpoint of a training run; give another path")
        self._check_identity(values["identity"])
        groups: dict[str, Params] = {}
        for key, tensor in tensors.items():
            group, _, name = key.partition("/")
            groups.setdefault(group, {})[name] = tensor
        return Saved(values["phase"], values["epoch"], groups, values["values"])

    def _check_identity(self, found: dict[str, Any]) -> None:
        for name, value in self.identity.items():
            if found.get(name) != value:
                raise ValueError(
                    f"{self.path} belongs to another run: {name} was {found.get(name)} there and "
                    f"is {value} here; give another path, or remove the file to start afresh"
                )


def write_tensors(path: Path, tensors: Params, values: dict[str, Any]) -> None:
    """Write tensors and JSON values to one file, atomically and to the disk.

    The new file is complete on the disk before it takes the old one's name: whoever is killed in
    between leaves the old file, whole.
    """
    from safetensors.torch import save

    on_host = {name: t.detach().to("cpu").contiguous().clone() for name, t in tensors.items()}
    write_whole(path, save(on_host, metadata={HEADER: json.dumps(values)}))


def read_tensors(path: Path) -> tuple[Params, dict[str, Any]]:
    """Tensors and JSON values of a file, on the host."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            header = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} cannot be read as a safetensors file: {error}") from error
    return tensors, json.loads(header.get(HEADER, "{}"))


def run_identity(
    method: Method, config: TrainingConfig, datas: Sequence[Tensors], random_states: Sequence[int]
) -> dict[str, Any]:
    """What makes two runs the same run."""
    described = repr(method)
    return {
        "method": method.name if " at 0x" in described else described,
        "random_states": list(random_states),
        "data": [_checksum(data) for data in datas],
        **config.as_dict(),
    }


def _checksum(data: Tensors) -> int:
    total = 0
    for tensor in (data.x_train, data.y_train, data.x_val, data.y_val):
        total = zlib.crc32(str(tuple(tensor.shape)).encode(), total)
        total = zlib.crc32(tensor.contiguous().cpu().numpy().data, total)
    return total


def split_parts(split: SupportSplit) -> tuple[Params, dict[str, Any]]:
    """A split as tensors and JSON values."""
    tensors: Params = {}
    values: dict[str, Any] = {}
    for field in fields(split):
        value = getattr(split, field.name)
        if isinstance(value, Tensor):
            tensors[field.name] = value
        elif isinstance(value, np.ndarray):
            tensors[f"numpy.{field.name}"] = torch.from_numpy(np.ascontiguousarray(value))
        else:
            values[field.name] = value
    return tensors, values


def split_from_parts(tensors: Params, values: dict[str, Any], device: torch.device) -> SupportSplit:
    """The split that :func:`split_parts` took apart."""
    parts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    for name, tensor in tensors.items():
        bare = name.removeprefix("numpy.")
        parts[bare] = tensor.to(device) if bare == name else tensor.numpy()
    return SupportSplit(**parts)
