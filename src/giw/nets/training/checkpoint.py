"""A run on disk: one file, replaced whole or not at all.

The file is a safetensors file; what is not a tensor stands in its header as JSON. Nothing in it
is executed when it is read.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from giw.nets.training.config import TrainingConfig
from giw.nets.training.protocol import Method, Params
from giw.nets.training.tensors import Tensors
from giw.support import SupportSplit
from giw.writing import write_whole

FORMAT = "giw-checkpoint-3"
HEADER, CHECKSUM = "giw", "crc32"
BY_NAME = "p_values:"  # before the name of a representation


@dataclass
class Saved:
    """The state of a run between two steps.

    Attributes
    ----------
    phase : {"pretrain", "train"}
    epoch : int
        Epochs of this phase that are done.
    step : int
        Steps of the next epoch that are done; 0 between epochs.
    tensors : dict
        Named groups of tensors: parameters, Adam's memory, buffers, random states.
    values : dict
        Everything else that JSON can hold.
    """

    phase: str
    epoch: int
    tensors: dict[str, Params]
    values: dict[str, Any]
    step: int = 0


class UnusableCheckpoint(ValueError):
    """A file from which this run cannot go on: damaged, or of another run."""


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
    seconds : float, default=0.0
        Time that passes at least between two savings, for epochs that take less than a saving.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: dict[str, Any],
        every: int = 1,
        seconds: float = 0.0,
    ) -> None:
        if every < 1:
            raise ValueError(f"checkpoint_every must be at least 1 epoch, got {every}")
        self.path, self.every, self.seconds = Path(path), every, seconds
        self._last = time.monotonic()
        self.identity = json.loads(json.dumps(identity))  # as it will be read back

    def due(self, epoch: int, epochs: int) -> bool:
        """Whether to save when ``epoch`` of ``epochs`` are done."""
        if epoch == epochs:
            return True
        return epoch % self.every == 0 and time.monotonic() - self._last >= self.seconds

    def save(self, saved: Saved) -> None:
        """Replace the file."""
        tensors = {f"{g}/{k}": v for g, part in saved.tensors.items() for k, v in part.items()}
        values = {
            "format": FORMAT,
            "identity": self.identity,
            "phase": saved.phase,
            "epoch": saved.epoch,
            "step": saved.step,
            "values": saved.values,
        }
        write_tensors(self.path, tensors, values)
        self._last = time.monotonic()

    def load(self) -> Saved | None:
        """The saved run, or None where there is no file."""
        if not self.path.exists():
            return None
        tensors, values = read_tensors(self.path)
        if values.get("format") != FORMAT:
            raise UnusableCheckpoint(
                f"{self.path} is no checkpoint of a training run by this version; give another path"
            )
        try:
            self._check_identity(values["identity"])
            state = values["phase"], int(values["epoch"]), int(values["step"]), values["values"]
        except (KeyError, TypeError, AttributeError) as error:
            raise UnusableCheckpoint(f"{self.path} lacks what a checkpoint has: {error}") from None
        phase, epoch, step, rest = state
        groups: dict[str, Params] = {}
        for key, tensor in tensors.items():
            group, _, name = key.partition("/")
            groups.setdefault(group, {})[name] = tensor
        return Saved(phase, epoch, groups, rest, step)

    def _check_identity(self, found: dict[str, Any]) -> None:
        for name, value in self.identity.items():
            if found.get(name) != value:
                raise UnusableCheckpoint(
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
    header = {HEADER: json.dumps(values)}
    header[CHECKSUM] = str(_checksum_of(on_host, header[HEADER]))
    write_whole(path, save(on_host, metadata=header))


def read_tensors(path: Path) -> tuple[Params, dict[str, Any]]:
    """Tensors and JSON values of a file, on the host; one with a flipped bit is refused."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    # read in one go: safe_open opens a file twice, and mixes two files where it is replaced between
    raw = path.read_bytes()
    try:
        tensors = load(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")]).get("__metadata__", {})
    except Exception as error:  # SafetensorError, and whatever torch says to strange shapes
        said = " ".join(str(error).split()) if isinstance(error, SafetensorError) else "damaged"
        raise UnusableCheckpoint(
            f"{path} cannot be read as a safetensors file: {said}; remove it to start afresh"
        ) from error
    text = header.get(HEADER, "")
    if header.get(CHECKSUM) != str(_checksum_of(tensors, text)):
        raise UnusableCheckpoint(
            f"{path} is no checkpoint, or was altered: its checksum is wrong; give another path, "
            "or remove it to start afresh"
        )
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise UnusableCheckpoint(f"{path} is no checkpoint of a training run; give another path")
    return tensors, values


def _checksum_of(tensors: Params, text: str) -> int:
    """Of names, types, shapes and values: safetensors itself notices lengths only."""
    total = zlib.crc32(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.contiguous().flatten().view(torch.uint8).numpy().data, total)
    return total


def run_identity(
    method: Method, config: TrainingConfig, datas: Sequence[Tensors], random_states: Sequence[int]
) -> dict[str, Any]:
    """What makes two runs the same run."""
    described = repr(method)
    return {
        "method": method.name if " at 0x" in described else described,
        "random_states": list(random_states),
        "data": [data.checksum for data in datas],
        **config.as_dict(),
    }


def split_parts(split: SupportSplit) -> tuple[Params, dict[str, Any]]:
    """A split as tensors and JSON values; p-values by representation under names of their own."""
    tensors: Params = {}
    values: dict[str, Any] = {}
    held = {field.name: getattr(split, field.name) for field in fields(split)}
    held |= {f"{BY_NAME}{name}": p for name, p in held.pop("p_values").items()}
    for name, value in held.items():
        if isinstance(value, Tensor):
            tensors[name] = value
        elif isinstance(value, np.ndarray):
            tensors[f"numpy.{name}"] = torch.from_numpy(np.ascontiguousarray(value))
        else:
            values[name] = value
    return tensors, values


def split_from_parts(tensors: Params, values: dict[str, Any], device: torch.device) -> SupportSplit:
    """The split that :func:`split_parts` took apart."""
    parts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    for name, tensor in tensors.items():
        bare = name.removeprefix("numpy.")
        parts[bare] = tensor.to(device) if bare == name else tensor.numpy()
    by_name = {k.removeprefix(BY_NAME): parts.pop(k) for k in list(parts) if k.startswith(BY_NAME)}
    return SupportSplit(**parts, p_values=by_name)
