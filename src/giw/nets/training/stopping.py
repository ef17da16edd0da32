"""Ctrl-C while a run is being saved: stop at the next step, keep what is done, say how to go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKED = threading.Event()


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and has stopped; the message says what was kept, and where."""


def ask_to_stop() -> None:
    """Let every run of this process stop at its next step; a thread may call it."""
    _ASKED.set()


def asked_to_stop() -> bool:
    """Whether a run should stop at its next step."""
    return _ASKED.is_set()


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
