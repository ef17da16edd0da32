"""MNIST from its idx files, and Color-MNIST made from it."""

from __future__ import annotations

import gzip
import os
import struct
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giw.paper import files
from giw.paper.sample import Sample

Part = Literal["train", "test"]
Task = Literal["odd_even", "digit"]
ODD_OR_EVEN = ("even", "odd")
DIGITS = tuple(str(digit) for digit in range(10))
COLORS = ("red", "green", "blue")
RED, GREEN, BLUE = range(3)
_PREFIX = {"train": "train", "test": "t10k"}


def mnist(
    part: Part = "train",
    *,
    task: Task = "odd_even",
    data_dir: str | os.PathLike[str] | None = None,
) -> Sample:
    """MNIST as ``uint8`` images of shape (n, 1, 28, 28); ``group`` is the digit.

    Parameters
    ----------
    part : {"train", "test"}
        60,000 or 10,000 images.
    task : {"odd_even", "digit"}
        ``y`` is 1 for odd digits, or the digit itself.
    data_dir : path, optional
        Data folder, see :func:`giw.paper.files.catalogue`. The four idx files may be gzipped or
        not; one whose md5 sum is not the published one is refused.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner, Proceedings of the IEEE 86:2278-2324, 1998.
    """
    if part not in _PREFIX or task not in ("odd_even", "digit"):
        raise ValueError(
            f"part is train or test and task is odd_even or digit, got {part!r} and {task!r}"
        )
    images = _read_idx(f"{_PREFIX[part]}-images-idx3-ubyte", data_dir)  # (n, 28, 28)
    labels = _read_idx(f"{_PREFIX[part]}-labels-idx1-ubyte", data_dir)  # (n,)
    digit = labels.astype(np.int64)
    label = digit % 2 if task == "odd_even" else digit
    return Sample(images[:, None], label, digit, ODD_OR_EVEN if task == "odd_even" else DIGITS)


def colored(sample: Sample, color: ArrayLike) -> Sample:
    """Grey images painted red, green or blue; the color becomes the group.

    Parameters
    ----------
    sample : Sample
        Images of shape (n, 1, height, width).
    color : integer array of shape (n,) or one integer
        0 red, 1 green, 2 blue: the channel that gets the grey values, the others stay zero.
    """
    grey = sample.x
    if grey.ndim != 4 or grey.shape[1] != 1:
        raise ValueError(f"need grey images of shape (n, 1, height, width), got {grey.shape}")
    n = len(sample)
    channel = np.broadcast_to(np.asarray(color), (n,))
    if n and not (channel.dtype.kind in "iu" and 0 <= channel.min() <= channel.max() <= 2):
        raise ValueError(f"color must be 0 (red), 1 (green) or 2 (blue), got {color!r}")
    painted = np.zeros((n, len(COLORS), *grey.shape[2:]), dtype=grey.dtype)
    painted[np.arange(n), channel] = grey[:, 0]
    return Sample(painted, sample.y, channel, sample.classes)


def _read_idx(name: str, data_dir: str | os.PathLike[str] | None) -> NDArray[np.uint8]:
    """The first of the gzipped and the plain file that is there.

    An idx file has two zero bytes, the type (8 for bytes), the number of dimensions, each dimension
    as a big-endian 32-bit integer, then the values.
    """
    for known in files.KNOWN_FILES:
        if known.dataset == "mnist" and known.name.removesuffix(".gz") == name:
            path = files.find_file(known, data_dir)
            if path is not None:
                raw = files.whole_bytes(known, path)
                raw = gzip.decompress(raw) if known.name.endswith(".gz") else raw
                shape = struct.unpack_from(f">{raw[3]}I", raw, 4)
                return np.frombuffer(bytearray(raw[4 + 4 * raw[3] :]), np.uint8).reshape(shape)
    raise files.missing("mnist", data_dir, f"MNIST file {name}[.gz]")
