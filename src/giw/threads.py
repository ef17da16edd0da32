"""How many threads numerical libraries use while a fit runs, and how fits in threads keep apart."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# torch has one stream of random numbers for all threads: who seeds it keeps the others waiting
STREAM = threading.RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which numerical libraries use one thread; the caller's number is put back.

    Threads of many small fits wait for each other wherever other programs run; fits side by side
    (``n_jobs``) use the processors better. BLAS has one number for the whole process, so that only
    the main thread may change it: two threads would put back what the other one had set.
    """
    main = threading.current_thread() is threading.main_thread()
    libraries = _libraries("torch" in sys.modules)
    with (libraries if main else libraries.select(user_api="openmp")).limit(limits=1):
        yield


@cache
def _libraries(torch: bool) -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes a while
