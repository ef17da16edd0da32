"""MNIST from its idx files, and Color-MNIST made from it."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from math import prod
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giw.paper.files import KNOWN_FILES, MAX_BYTES, checked, find_file, missing
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
    verify: bool = True,
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
        not.
    verify : bool, default=True
        Refuse files whose md5 sum is not the published one.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner, Proceedings of the IEEE 86:2278-2324, 1998.
    """
    if part not in _PREFIX or task not in ("odd_even", "digit"):
        raise ValueError(
            f"part is train or test and task is odd_even or digit, got {part!r} and {task!r}"
        )
    images = _read_idx(f"{_PREFIX[part]}-images-idx3-ubyte", data_dir, verify)  # (n, 28, 28)
    labels = _read_idx(f"{_PREFIX[part]}-labels-idx1-ubyte", data_dir, verify)  # (n,)
    if images.ndim != 3 or labels.shape != images.shape[:1] or labels.max(initial=0) > 9:
        raise ValueError(
            f"MNIST's {part} files do not fit together: images of shape {images.shape}, labels of "
            f"shape {labels.shape} up to {labels.max(initial=0)}; fetch all four again"
        )
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


def _read_idx(
    name: str, data_dir: str | os.PathLike[str] | None, verify: bool
) -> NDArray[np.uint8]:
    """The first of the gzipped and the plain file that is there."""
    for known in KNOWN_FILES:
        if known.dataset == "mnist" and known.name.removesuffix(".gz") == name:
            path = find_file(known, data_dir)
            if path is not None:
                return read_idx(checked(path, known.md5, verify=verify))
    raise missing("mnist", data_dir, f"MNIST file {name}[.gz]")


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An idx file of bytes, gzipped if its name ends in ``.gz``.

    Two zero bytes, the type (8 for bytes), the number of dimensions, each dimension as a big-endian
    32-bit integer, then the values. Dimensions are compared with what follows, and with a limit,
    before any memory is asked for.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return _parse_idx(cast(BinaryIO, stream), path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}; fetch it again") from error


def _at_most(stream: BinaryIO, size: int) -> bytearray:
    """Up to ``size`` bytes, piece by piece: one long read would reserve them all at once."""
    values = bytearray()
    while len(values) < size and (piece := stream.read(min(size - len(values), 2**18))):
        values += piece
    return values


def _parse_idx(stream: BinaryIO, path: Path) -> NDArray[np.uint8]:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:3] != b"\x00\x00\x08" or not 1 <= magic[3] <= 4:
        raise ValueError(f"{path} is not an idx file of bytes: it begins with {magic.hex(' ')}")
    header = stream.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise ValueError(f"{path} ends within its header; fetch it again")
    shape = struct.unpack(f">{magic[3]}I", header)
    size = prod(shape)
    if size > MAX_BYTES:
        raise ValueError(f"{path} claims shape {shape}, more than any file of these data sets")
    values = _at_most(stream, size + 1)
    if len(values) != size:
        comparison = "more" if len(values) > size else f"only {len(values)}"
        raise ValueError(
            f"{path} claims shape {shape}, {size} bytes, but holds {comparison}; fetch it again"
        )
    return np.frombuffer(values, dtype=np.uint8).reshape(shape)
