"""CIFAR's python files are pickles; this reads them without ever running what they name."""

from __future__ import annotations

import pickle
import pickletools
from io import BytesIO
from math import prod
from typing import Any

import numpy as np


def load_arrays(raw: bytes, name: str) -> dict[str, Any]:
    """A pickled dictionary of plain values and arrays of bytes; anything else is refused.

    A pickle may name any function of any module to be called while it is read. Here only four
    names are answered, and with stand-ins of our own: numpy is never asked to build anything, and
    an array is made only where its claimed shape has exactly the bytes that come with it.

    Parameters
    ----------
    raw : bytes
    name : str
        What the bytes are called in an error message.
    """
    try:
        _check_sizes(raw)
        found = _Reader(BytesIO(raw), encoding="bytes").load()
        if not isinstance(found, dict):
            raise pickle.UnpicklingError(f"it holds no dictionary but a {type(found).__name__}")
        return {_text(key): _unwrapped(value) for key, value in found.items()}
    except Exception as error:  # a broken pickle can raise nearly anything
        said = " ".join(str(error).split())[:200]
        raise ValueError(f"{name} cannot be read as a pickle of arrays: {said}") from error


def _check_sizes(raw: bytes) -> None:
    """Walk the instructions without following them; lengths and memo places must be credible.

    The reader would reserve whatever an instruction claims: the length of a string that is not
    there, which the walk itself refuses, or a place far up in the memo.
    """
    places = 0
    for instruction, argument, _ in pickletools.genops(raw):
        if "PUT" in instruction.name:
            places += 1
            if argument is None or argument > places:  # they are numbered one after the other
                raise pickle.UnpicklingError(f"memo place {argument} comes after {places - 1}")


class _Array:
    """Stands in for a numpy array until its state has been looked at."""

    value: np.ndarray[Any, np.dtype[np.uint8]] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, values = state
        if not isinstance(dtype, _Bytes) or not isinstance(values, bytes):
            raise pickle.UnpicklingError("only arrays of bytes are read")
        if fortran or min(shape, default=0) < 0 or prod(shape) != len(values):
            raise pickle.UnpicklingError(f"{len(values)} bytes do not fill shape {shape}")
        self.value = np.frombuffer(bytearray(values), dtype=np.uint8).reshape(shape)


class _Bytes:
    """Stands in for numpy's dtype; only ``u1`` has one."""

    def __init__(self, code: Any, *_: Any) -> None:
        if _text(code).lstrip("|") != "u1":
            raise pickle.UnpicklingError(f"only arrays of bytes are read, not {_text(code)}")

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment mean nothing for bytes."""


def _array(*_: Any) -> _Array:
    """Ignores the size it is called with, which could be anything."""
    return _Array()


def _latin1(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes in old pickle protocols."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes written as {encoding} are not read")
    return text.encode("latin1")


class _Reader(pickle.Unpickler):
    _STAND_INS: dict[tuple[str, str], Any] = {  # noqa: RUF012 - read only
        ("numpy.core.multiarray", "_reconstruct"): _array,
        ("numpy._core.multiarray", "_reconstruct"): _array,
        ("numpy", "ndarray"): None,  # only ever an argument, which is ignored
        ("numpy", "dtype"): _Bytes,
        ("_codecs", "encode"): _latin1,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Answer the few names a CIFAR file needs."""
        if (module, name) not in self._STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not allowed")
        return self._STAND_INS[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """No outside objects."""
        raise pickle.UnpicklingError("it refers to objects outside the file")


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _unwrapped(value: Any) -> Any:
    return value.value if isinstance(value, _Array) else value
