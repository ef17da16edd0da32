"""SIGKILL at moments that do not depend on how busy the machine is: after so many calls."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import giw

PACKAGE = str(Path(giw.__file__).parent)


def count_calls(work: Callable[..., Any], *arguments: Any) -> int:
    """How many functions of the package ``work`` calls in this thread."""
    counted = 0

    def one_more() -> None:
        nonlocal counted
        counted += 1

    _at_every_call(one_more, work, *arguments)
    return counted


def killed_after(calls: int, work: Callable[..., Any], *arguments: Any) -> None:
    """Do ``work``, but SIGKILL this process at so manyth call of a function of the package."""
    left = calls

    def one_less() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _at_every_call(one_less, work, *arguments)


def _at_every_call(do: Callable[[], None], work: Callable[..., Any], *arguments: Any) -> None:
    def entered(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            do()

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        work(*arguments)
    finally:
        sys.settrace(before)
