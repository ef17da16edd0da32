"""A run on disk: one file, replaced whole or not at all.

The file is a safetensors file; what is not a tensor stands in its header as JSON. Nothing in it
is executed when it is read.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from giw.nets.training.protocol import Params
from giw.support import SupportSplit
from giw.writing import write_whole

FORMAT = "giw-checkpoint-5"
HEADER, CHECKSUM = "giw", "crc32"
BY_NAME = "p_values:"  # before the name of a representation


@dataclass
class Saved:
    """The state of a run between two epochs."""

    phase: str  # "pretrain" or "train"
    epoch: int  # epochs of this phase that are done
    tensors: dict[str, Params]  # named groups: parameters, Adam's memory, buffers, random states
    values: dict[str, Any]  # everything else that JSON can hold


class UnusableCheckpoint(ValueError):
    """A file from which this run cannot go on: damaged, or of another run."""


class Checkpoint:
    """Where a run is saved, and which run it is: what must be the same to go on from there.

    At least ``seconds`` pass between two savings, for epochs that take less than a saving.
    """

    def __init__(
        self, path: str | os.PathLike[str], identity: dict[str, Any], seconds: float = 0.0
    ) -> None:
        self.path, self.seconds, self._last = Path(path), seconds, time.monotonic()
        self.identity = json.loads(json.dumps(identity))  # as it will be read back

    def due(self, epoch: int, epochs: int) -> bool:
        """Whether to save when ``epoch`` of ``epochs`` are done."""
        return epoch == epochs or time.monotonic() - self._last >= self.seconds

    def save(self, saved: Saved) -> None:
        """Replace the file."""
        rest = {name: value for name, value in vars(saved).items() if name != "tensors"}
        tensors = {f"{g}/{k}": v for g, part in saved.tensors.items() for k, v in part.items()}
        write_tensors(self.path, tensors, {"format": FORMAT, "identity": self.identity, **rest})
        self._last = time.monotonic()

    def load(self) -> Saved | None:
        """The saved run, or None where there is no file."""
        if not self.path.exists():
            return None
        tensors, rest = read_tensors(self.path)
        if rest.pop("format", None) != FORMAT:
            raise UnusableCheckpoint(
                f"{self.path} is no checkpoint of a training run by this version; give another "
                "path, or remove the file to start afresh"
            )
        groups: dict[str, Params] = {}
        for key, tensor in tensors.items():
            group, _, name = key.partition("/")
            groups.setdefault(group, {})[name] = tensor
        found = rest.pop("identity")
        for name, value in self.identity.items():
            if found.get(name) != value:
                raise UnusableCheckpoint(
                    f"{self.path} belongs to another run: {name} was {found.get(name)} there and "
                    f"is {value} here; give another path, or remove the file to start afresh"
                )
        return Saved(tensors=groups, **rest)


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
    return tensors, json.loads(text)


def _checksum_of(tensors: Params, text: str) -> int:
    """Of names, types, shapes and values: safetensors itself notices lengths only."""
    total = zlib.crc32(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.contiguous().flatten().view(torch.uint8).numpy().data, total)
    return total


def split_parts(splits: Sequence[SupportSplit | None]) -> tuple[dict[str, Params], list[Any]]:
    """Splits as groups of tensors and lists of numbers; p-values under names of their own."""
    tensors: dict[str, Params] = {}
    numbers: list[Any] = [None] * len(splits)
    for t, split in enumerate(splits):
        if split is not None:
            held = vars(split) | {f"{BY_NAME}{name}": p for name, p in split.p_values.items()}
            tensors[f"split {t}"] = {
                k: torch.as_tensor(v) for k, v in held.items() if isinstance(v, Tensor | np.ndarray)
            }
            numbers[t] = {k: float(v) for k, v in held.items() if isinstance(v, int | float)}
    return tensors, numbers


def saved_splits(saved: Saved, device: torch.device) -> list[SupportSplit | None]:
    """The splits that :func:`split_parts` took apart."""
    splits: list[SupportSplit | None] = []
    for t, numbers in enumerate(saved.values["splits"]):
        tensors = saved.tensors.get(f"split {t}", {})
        parts: dict[str, Any] = {k: z.to(device) for k, z in tensors.items()} | (numbers or {})
        named = {
            k.removeprefix(BY_NAME): parts.pop(k) for k in list(parts) if k.startswith(BY_NAME)
        }
        splits.append(None if numbers is None else SupportSplit(**parts, p_values=named))
    return splits


# Ctrl-C while a run is being saved: stop after the epoch, keep what is done, say how to go on ----

_ASKED = threading.Event()
ask_to_stop = _ASKED.set  # let every run of this process stop after its epoch; a thread may call it
asked_to_stop = _ASKED.is_set


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and has stopped; the message says what was kept, and where."""


@contextmanager
def stop_by_interrupt() -> Iterator[None]:
    """While this lasts, a first SIGINT only asks to stop; a second one stops at once.

    Does nothing outside the main thread, where Python hears no signals, and where the program has
    a handler of its own.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ask_to_stop()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _ASKED.clear()
