"""Arrays in zip files (npz, skops): is there really as much in them as their headers say?"""

from __future__ import annotations

import zipfile
from math import prod
from pathlib import Path

from numpy.lib import format as npy_format

DEFLATE_AT_MOST = 1032  # bytes that one compressed byte can stand for
OVERHEAD = 64  # of an empty member


def check_arrays(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse arrays that claim more bytes than the file can hold, before memory is asked for.

    Numpy reserves what the header of an array claims and reads afterwards; the zip file's own
    directory may lie as well, so that it is compared with what compression can do.

    Parameters
    ----------
    archive : ZipFile
    size : int
        Bytes of the whole file.
    """
    for info in archive.infolist():
        most = info.compress_size * (
            1 if info.compress_type == zipfile.ZIP_STORED else _ratio(info)
        )
        if info.compress_size > size or info.file_size > most + OVERHEAD:
            raise ValueError(
                f"{info.filename!r} claims {info.file_size} bytes, which {info.compress_size} "
                "compressed ones cannot hold"
            )
        if info.filename.endswith(".npy"):
            _check_array(archive, info)


def _ratio(info: zipfile.ZipInfo) -> int:
    if info.compress_type != zipfile.ZIP_DEFLATED:
        raise ValueError(f"{info.filename!r} is compressed in a way that numpy does not use")
    return DEFLATE_AT_MOST


def _check_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    with archive.open(info) as stream:
        major, _ = npy_format.read_magic(stream)
        if major == 1:
            shape, _, dtype = npy_format.read_array_header_1_0(stream)
        else:  # the third version differs in the encoding of names only
            shape, _, dtype = npy_format.read_array_header_2_0(stream)
        start = stream.tell()
    if dtype.hasobject:
        return  # refused by whoever reads it without pickle
    items = prod(shape)
    sound = all(length >= 0 for length in shape) and (dtype.itemsize > 0 or items == 0)
    if not sound or start + items * dtype.itemsize != info.file_size:
        raise ValueError(
            f"{info.filename!r} claims {dtype} of shape {shape}, which {info.file_size} bytes "
            "do not hold"
        )


def check_npz(path: Path) -> None:
    """The same for a file."""
    with zipfile.ZipFile(path) as archive:
        check_arrays(archive, path.stat().st_size)
