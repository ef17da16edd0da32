"""MNIST (LeCun, Bottou, Bengio and Haffner, Proceedings of the IEEE, 1998) from its idx files."""

from __future__ import annotations

import gzip
import struct
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from giw.paper import files
from giw.paper.files import Folder
from giw.paper.shifts import Sample

Part = Literal["train", "test"]
Task = Literal["odd_even", "digit"]


def mnist(part: Part = "train", *, task: Task = "odd_even", data_dir: Folder = None) -> Sample:
    """MNIST as ``uint8`` images of shape (n, 1, 28, 28); ``group`` is the digit.

    By task ``y`` is 1 for odd digits, or the digit itself. The four idx files may be gzipped or
    not; one whose md5 sum is not the published one is refused.
    """
    prefix = {"train": "train", "test": "t10k"}[part]
    images = _read_idx(f"{prefix}-images-idx3-ubyte", data_dir)  # (n, 28, 28)
    digit = _read_idx(f"{prefix}-labels-idx1-ubyte", data_dir).astype(np.int64)  # (n,)
    if task == "odd_even":
        return Sample(images[:, None], digit % 2, digit, ("even", "odd"))
    return Sample(images[:, None], digit, digit, tuple("0123456789"))


def _read_idx(name: str, data_dir: Folder) -> NDArray[np.uint8]:
    """The first of the gzipped and the plain file that is there.

    An idx file has two zero bytes, the type (8 for bytes), the number of dimensions, each dimension
    as a big-endian 32-bit integer, then the values.
    """
    for known in files.KNOWN_FILES:
        path = files.find_file(known, data_dir) if known.name.removesuffix(".gz") == name else None
        if path is not None:
            raw = files.whole_bytes(known, path)
            raw = gzip.decompress(raw) if known.name.endswith(".gz") else raw
            shape = struct.unpack_from(f">{raw[3]}I", raw, 4)
            return np.frombuffer(bytearray(raw[4 + 4 * raw[3] :]), np.uint8).reshape(shape)
    raise files.missing("mnist", data_dir, f"MNIST file {name}[.gz]")
